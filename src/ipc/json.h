/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the JSON library lacks. */
#include <yyjson.h>
#include "base/macros.h"

DEFINE_CLEANUP(yyjson_doc, yyjson_doc_free);
