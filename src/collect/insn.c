/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/insn.h"

#include <string.h>

#ifdef __x86_64__
static const u8 landing_pad[] = { 0xf3, 0x0f, 0x1e, 0xfa }; /* endbr64 */

u64 insn_skip_entry(const u8 *code, size_t size)
{
	if (size <= sizeof(landing_pad) || memcmp(code, landing_pad, sizeof(landing_pad)))
		return 0;
	return sizeof(landing_pad);
}
#else
u64 insn_skip_entry(const u8 *code, size_t size)
{
	return 0;
}
#endif
