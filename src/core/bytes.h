/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Numbers in files: little endian, at any alignment. */
#include "abi/types.h"

static inline u32 get_u32(const u8 *at)
{
	return (u32)at[0] | (u32)at[1] << 8 | (u32)at[2] << 16 | (u32)at[3] << 24;
}

static inline u64 get_u64(const u8 *at)
{
	return get_u32(at) | (u64)get_u32(at + 4) << 32;
}

static inline void put_u32(u8 *at, u32 value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (u8)(value >> 8 * i);
}

static inline void put_u64(u8 *at, u64 value)
{
	put_u32(at, (u32)value);
	put_u32(at + 4, (u32)(value >> 32));
}
