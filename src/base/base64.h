/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Converts bytes to text and back (RFC 4648, with padding). */
#include <stddef.h>

/* Returns zero-terminated text that the caller frees; NULL when out of memory. */
char *base64_encode(const void *data, size_t size, size_t *ret_length);
/* Returns -EBADMSG for invalid text. */
int base64_decode(const char *text, size_t length, void **ret_data, size_t *ret_size);
