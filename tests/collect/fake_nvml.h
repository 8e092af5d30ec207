/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* How a test steers the library fake_nvml.c makes, by its symbol `fake_nvml`. */
#include <stdatomic.h>

struct fake_nvml {
	atomic_int init_result;
	atomic_int hang_init;
	atomic_int hang_utilization;
	atomic_int fail; /* every question about a device gets this answer unless it is 0 */
	atomic_int nr_init;
	atomic_int nr_shutdown;
	atomic_int nr_utilization;
};
