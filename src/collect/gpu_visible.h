/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Maps the device numbers of a process to the GPU numbers of the machine: with
 * CUDA_VISIBLE_DEVICES=2,0, device 0 of the process is GPU 2 of the machine. Devices that
 * are listed by UUID stay unknown. A change of the environment after the start of the
 * process is not seen.
 */
#include <sys/types.h>
#include "abi/signals.h"

/* All GPUs, with the numbers of the machine. */
struct gpu_numbers gpu_visible_all(void);

/* The devices of `numbers` that the list names, in the order of the list. */
struct gpu_numbers gpu_visible_by(const struct gpu_numbers *numbers, const char *list);

/*
 * Reads the environment of a process, for the runtime that it uses. `proc` is normally "/proc".
 * -E2BIG: the environment is too large to be read.
 */
int gpu_visible_read(const char *proc, pid_t pid, enum runtime runtime, struct gpu_numbers *ret);
