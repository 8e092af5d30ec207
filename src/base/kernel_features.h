/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which features a kernel lacks, by its BTF. zerneld and `zernel doctor` use the same function, so
 * they agree about every kernel. The verifier can still refuse a program, which only zerneld finds
 * out.
 */
#include <bpf/btf.h>
#include "abi/feature.h"
#include "abi/types.h"

/* The set of missing features; all of them if `btf` is NULL. */
u32 features_missing(const struct btf *btf);

/* The value of a kernel enumerator, or 0 if the kernel does not have it. */
u32 btf_enumerator(const struct btf *btf, const char *type, const char *name);
