/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/crc32c.h"
#include "core/bytes.h"

#define POLYNOMIAL 0x82f63b78U /* bit-reversed, because the register shifts to the right */

/*
 * CRC is linear: the CRC of the XOR of two bytes is the XOR of their CRCs. So it is enough
 * to compute the entries of the single bits, which are successive states of the register,
 * starting with the last bit of the last byte. All other entries are XORs of these.
 */
void crc32c_table_fill(struct crc32c_table *t)
{
	u32 crc = POLYNOMIAL;

	for (u32 k = 0; k < 8; k++) {
		u32 *lane = t->lane[k];

		lane[0] = 0;
		for (u32 bit = 0x80; bit; bit >>= 1) {
			lane[bit] = crc;
			crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
		}
		for (u32 bit = 2; bit <= 0x80; bit <<= 1)
			for (u32 rest = 1; rest < bit; rest++)
				lane[bit + rest] = lane[bit] ^ lane[rest];
	}
}

u32 crc32c_add(const struct crc32c_table *t, u32 crc, const void *data, size_t size)
{
	const u8 *at = data;

	for (; size >= 8; at += 8, size -= 8) {
		u32 low = crc ^ get_u32(at), high = get_u32(at + 4);

		/* Unrolled by hand: gcc does not unroll a loop, which is three times slower. */
		crc = t->lane[7][low & 0xff] ^ t->lane[6][low >> 8 & 0xff] ^
		      t->lane[5][low >> 16 & 0xff] ^ t->lane[4][low >> 24] ^
		      t->lane[3][high & 0xff] ^ t->lane[2][high >> 8 & 0xff] ^
		      t->lane[1][high >> 16 & 0xff] ^ t->lane[0][high >> 24];
	}
	for (; size > 0; at++, size--)
		crc = crc >> 8 ^ t->lane[0][(crc ^ *at) & 0xff];
	return crc;
}
