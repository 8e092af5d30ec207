/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Fixed-width types for the data that the kernel and user space share. These
 * headers compile for BPF and for user space, so nothing here may depend on libc.
 */
#include <linux/types.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s32 s32;
typedef __s64 s64;

/* Incremented when a shared struct changes. */
#define ABI_VERSION 1

/* The kernel's TASK_COMM_LEN. */
#define COMM_LEN 16

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_SEC  1000000000ULL
