/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Numbers of a reply of zerneld, which a client checks. */
#include <yyjson.h>
#include "abi/types.h"

struct number {
	const char *key;
	u64 max;
	u64 *ret;
};

/* An empty row ends the list. -EPROTO: a number is missing or too large. */
int numbers_read(yyjson_val *object, const struct number *numbers);
