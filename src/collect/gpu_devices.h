/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the numbers of the character devices that are GPUs on this machine. */
#include "core/gpu_device.h"

/*
 * `proc` is normally "/proc". `files` is a comma-separated list of device files that count as
 * GPUs beside the ones that are known. The number of a driver or of a file can change, so call
 * this again from time to time. Returns the number of `files` that are no character devices.
 */
int gpu_devices_find(const char *proc, const char *files, struct gpu_devices *ret);
