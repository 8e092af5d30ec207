/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lets zerneld believe that the kernel does not inform schedulers of cpu.max, as kernels before
 * 6.17, so that one kernel can test both cases. The linker replaces the check by this function.
 */
#include "base/sched_ext.h"

bool __wrap_sched_ext_tells_limits(const struct btf *btf);

bool __wrap_sched_ext_tells_limits(const struct btf *btf)
{
	return false;
}
