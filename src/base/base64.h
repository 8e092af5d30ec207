/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Bytes as text (RFC 4648, with padding). */
#include <stddef.h>

/* Zero-terminated, to be freed; NULL for want of memory. */
char *base64_encode(const void *data, size_t size, size_t *ret_length);
/* -EBADMSG when it is no such text. */
int base64_decode(const char *text, size_t length, void **ret_data, size_t *ret_size);
