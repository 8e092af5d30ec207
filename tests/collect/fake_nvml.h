/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The controls of the library fake_nvml.c; a test finds them by the symbol `fake_nvml`. */
#include <stdatomic.h>

struct fake_nvml {
	atomic_int init_result;
	atomic_int hang_init;
	atomic_int hang_utilization;
	atomic_int fail; /* unless 0, every call about a device returns this error */
	atomic_int nr_init;
	atomic_int nr_shutdown;
	atomic_int nr_utilization;
	atomic_int no_graphics; /* unless 0, the error of the metric GRAPHICS_UTIL */
	/* The utilization samples of the first device, written while no call is under way. */
	int nr_samples;
	unsigned long long sample_us[16];
	unsigned int sample_percent[16];
};
