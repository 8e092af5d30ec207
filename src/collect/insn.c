/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/insn.h"

#include <string.h>
#include "base/macros.h"

static const u8 landing_pad[] = { 0xf3, 0x0f, 0x1e, 0xfa }; /* endbr64 */

static u64 skip_landing_pad(const u8 *code, size_t size)
{
	if (size <= sizeof(landing_pad) || memcmp(code, landing_pad, sizeof(landing_pad)))
		return 0;
	return sizeof(landing_pad);
}

/* Opcodes of one byte that are emulated: from the first to the last. */
static const struct {
	u8 first, last;
} emulated[] = {
	{ 0x50, 0x57 }, /* push */
	{ 0x70, 0x7f }, /* conditional jump */
	{ 0x90, 0x90 }, /* nop */
	{ 0xe8, 0xe9 }, /* call, jump */
	{ 0xeb, 0xeb }, /* short jump */
};

static bool is_stepped_x86_64(const u8 *code, size_t size)
{
	/* push of r8 to r15; conditional jump with a long distance */
	if (size >= 2 && ((code[0] == 0x41 && (code[1] & 0xf8) == 0x50) ||
			  (code[0] == 0x0f && (code[1] & 0xf0) == 0x80)))
		return false;
	for (size_t i = 0; size && i < ARRAY_SIZE(emulated); i++)
		if (code[0] >= emulated[i].first && code[0] <= emulated[i].last)
			return false;
	return true;
}

u64 insn_skip_entry(enum insn_set set, const u8 *code, size_t size)
{
	return set == INSN_X86_64 ? skip_landing_pad(code, size) : 0;
}

bool insn_is_stepped(enum insn_set set, const u8 *code, size_t size)
{
	return set == INSN_X86_64 && is_stepped_x86_64(code, size);
}
