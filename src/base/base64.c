/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/base64.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const void *data, size_t size, size_t *ret_length)
{
	size_t length = (size + 2) / 3 * 4;
	const uint8_t *bytes = data;
	char *text = malloc(length + 1), *to = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < size; i += 3) {
		uint32_t group = (uint32_t)bytes[i] << 16;

		if (i + 1 < size)
			group |= (uint32_t)bytes[i + 1] << 8;
		if (i + 2 < size)
			group |= bytes[i + 2];
		*to++ = digits[group >> 18];
		*to++ = digits[group >> 12 & 63];
		*to++ = i + 1 < size ? digits[group >> 6 & 63] : '=';
		*to++ = i + 2 < size ? digits[group & 63] : '=';
	}
	*to = '\0';
	*ret_length = length;
	return text;
}

static int digit_value(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -EBADMSG;
}

int base64_decode(const char *text, size_t length, void **ret_data, size_t *ret_size)
{
	size_t nr_padding = 0, size = length / 4 * 3;
	CLEANUP_FREE uint8_t *data = malloc(size + 1);
	uint8_t *to = data;

	if (!data)
		return -ENOMEM;
	if (length % 4)
		return -EBADMSG;
	while (nr_padding < 2 && nr_padding < length && text[length - 1 - nr_padding] == '=')
		nr_padding++;
	for (size_t i = 0; i < length; i += 4) {
		uint32_t group = 0;

		for (size_t k = 0; k < 4; k++) {
			int value = i + k < length - nr_padding ? digit_value(text[i + k]) : 0;

			if (value < 0)
				return value;
			group = group << 6 | (uint32_t)value;
		}
		*to++ = (uint8_t)(group >> 16);
		*to++ = (uint8_t)(group >> 8);
		*to++ = (uint8_t)group;
	}
	*ret_size = size - nr_padding;
	*ret_data = TAKE_PTR(data);
	return 0;
}
