/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answers/numbers.h"
#include <errno.h>

int numbers_read(yyjson_val *object, const struct number *numbers)
{
	for (; numbers->key; numbers++) {
		yyjson_val *value = yyjson_obj_get(object, numbers->key);

		if (!yyjson_is_uint(value) || yyjson_get_uint(value) > numbers->max)
			return -EPROTO;
		*numbers->ret = yyjson_get_uint(value);
	}
	return 0;
}
