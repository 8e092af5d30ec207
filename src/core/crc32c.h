/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* CRC-32C (Castagnoli), eight bytes per iteration. */
#include <stddef.h>

#include "abi/types.h"

/* lane[k][b] is the CRC of byte b followed by k zero bytes. */
struct crc32c_table {
	u32 lane[8][256];
};

void crc32c_table_fill(struct crc32c_table *t);

/* Start with ~0, pass on the result of each call, and invert the last result. */
u32 crc32c_add(const struct crc32c_table *t, u32 crc, const void *data, size_t size);
