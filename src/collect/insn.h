/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "abi/types.h"

/* Both instruction sets are decoded on every machine, so that every machine can test both. */
enum insn_set {
	INSN_X86_64,
	INSN_ARM64,
};

#ifdef __x86_64__
#define INSN_NATIVE INSN_X86_64
#else
#define INSN_NATIVE INSN_ARM64
#endif

/*
 * The number of bytes to skip at the start of a function so that a probe is on a cheap
 * instruction. The kernel emulates `push` and `nop` in the breakpoint handler, but it must
 * single-step `endbr64`, which compilers put at the start of a function for control-flow
 * protection. A probe on `endbr64` takes 5.8 to 8 us, and 0.53 us four bytes later, which
 * is eleven times cheaper. The stack is unchanged at that point, so arguments and return
 * probes still work.
 *
 * `size` is the number of known bytes of the function; nothing is skipped when the function
 * is shorter. The result is always 0 on arm64, where the first instruction is often `bti` or
 * `paciasp`. Both accept a probe. `paciasp` signs the return address: a return probe behind it
 * would replace a signed address with an unsigned one, and the process would crash at its return.
 */
u64 insn_skip_entry(enum insn_set set, const u8 *code, size_t size);

/*
 * Whether a probe on this instruction is single-stepped, which makes it about ten times as
 * expensive. All other instructions are emulated by every kernel that is supported: a push of
 * a register, a nop of one byte, and relative jumps and calls. Always false on arm64, where
 * nearly every function begins with an instruction that is single-stepped, and where that
 * costs about twice as much as emulation.
 */
bool insn_is_stepped(enum insn_set set, const u8 *code, size_t size);
