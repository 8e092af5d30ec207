/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a process gives up before it handles data that it does not trust. These functions use
 * only system calls, because a forked process of a program with threads may not allocate memory.
 */
#include <sys/types.h>
#include "abi/types.h"
#include "base/macros.h"

/*
 * For a program that another process of Zernel starts: sets its name, lets it end with that
 * process, and forbids other processes of the same user to trace it.
 */
int sandbox_enter(const char *name);

/*
 * Forks a process that runs `run`. It has no file of the caller but one end of a SOCK_SEQPACKET
 * socket, as its standard input: descriptors of the caller would keep BPF programs attached. It
 * should end when that socket is closed. *ret_socket is the other end. Returns its pid.
 */
pid_t sandbox_fork(const char *name, void (*run)(void), int *ret_socket);

#define SANDBOX_CAP(cap) (1ULL << (cap))

/*
 * Shrinks the bounding set. Without CAP_SETPCAP, the kernel refuses this, and the bounding set
 * matters little.
 */
void sandbox_bound_capabilities(u64 mask);

/*
 * Keeps the capabilities of the mask, as far as the process has them, in its permitted, effective
 * and bounding set. Empties its inheritable and ambient sets, and sets no_new_privs. Concerns only
 * the calling thread.
 */
int sandbox_keep_capabilities(u64 mask);

/*
 * Allows the system calls of a list only. Another call ends the process, or fails with `error`
 * unless it is 0. A process that was built with a sanitizer is not restricted: the sanitizer makes
 * calls of its own.
 */
int sandbox_allow_calls(const int *calls, u32 nr, int error);

/*
 * Limits memory and open files, and forbids core dumps. A limit that is already lower stays.
 * Processes that were built with a sanitizer need more memory and are not limited in it.
 */
int sandbox_limit(u64 memory_bytes, u64 nr_files);
