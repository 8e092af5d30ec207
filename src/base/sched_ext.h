/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The functions of sched_ext that the scheduler calls, and whether a kernel's BTF shows all of
 * them in a form that programs can call. zerneld, `zernel doctor` and tools/kernel use the
 * same function, so they agree about every kernel.
 */
#include <stdbool.h>
#include <stddef.h>
#include <bpf/btf.h>
#include "base/macros.h"

DEFINE_CLEANUP(struct btf, btf__free);

enum sched_ext_gap_kind {
	SCHED_EXT_NO_OPS,  /* no struct sched_ext_ops: the kernel has no sched_ext */
	SCHED_EXT_ABSENT,  /* no function of that name, or of an older name for it */
	SCHED_EXT_HIDDEN,  /* the function shows the parameter that programs must not see */
	SCHED_EXT_REFUSED, /* found by zerneld only: the kernel refused a program */
};

struct sched_ext_gap {
	enum sched_ext_gap_kind kind;
	const char *name; /* of the struct or function; constant */
};

/*
 * Finds the next reason why the scheduler cannot be loaded. `position` is 0 before the first
 * call. Returns false when there is no further reason. `btf` may be NULL: a kernel without
 * BTF counts as one without sched_ext.
 */
bool sched_ext_next_gap(const struct btf *btf, size_t *position, struct sched_ext_gap *ret);

/* True if the kernel informs schedulers of cpu.max (since 6.17). `btf` may be NULL. */
bool sched_ext_tells_limits(const struct btf *btf);
