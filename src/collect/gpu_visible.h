/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which of the machine's devices a process means by its numbers: with
 * CUDA_VISIBLE_DEVICES=2,0 its device 0 is the machine's device 2. Devices that are
 * named by a UUID stay unknown, and so does what the process changed in its
 * environment after it was started.
 */
#include <sys/types.h>
#include "abi/signals.h"

/* Every device under the machine's own number. */
struct gpu_numbers gpu_visible_all(void);

/* Of the devices there are so far, those that the list names, in its order. */
struct gpu_numbers gpu_visible_by(const struct gpu_numbers *numbers, const char *list);

/* By the environment of the process, for the runtime that it uses. `proc` is normally "/proc". */
int gpu_visible_read(const char *proc, pid_t pid, enum runtime runtime, struct gpu_numbers *ret);
