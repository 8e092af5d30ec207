/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include "abi/types.h"

/*
 * The number of bytes to skip at the start of a function so that a probe is on a cheap
 * instruction. The kernel emulates `push` and `nop` in the breakpoint handler, but it must
 * single-step `endbr64`, which compilers put at the start of a function for control-flow
 * protection. A probe on `endbr64` takes 5.8 to 8 us, and 0.53 us four bytes later, which
 * is eleven times cheaper. The stack is unchanged at that point, so arguments and return
 * probes still work.
 *
 * `size` is the number of known bytes of the function; nothing is skipped when the function
 * is shorter. The result is always 0 on arm64, where no such expensive first instruction is
 * known.
 */
u64 insn_skip_entry(const u8 *code, size_t size);

/*
 * Whether a probe on this instruction is single-stepped, which makes it about ten times as
 * expensive. All other instructions are emulated by every kernel that is supported: a push of
 * a register, a nop of one byte, and relative jumps and calls. Always false on arm64.
 */
bool insn_is_stepped(const u8 *code, size_t size);
