/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Additions to the JSON library. */
#include <yyjson.h>
#include "base/macros.h"

DEFINE_CLEANUP(yyjson_doc, yyjson_doc_free);
DEFINE_CLEANUP(yyjson_mut_doc, yyjson_mut_doc_free);
