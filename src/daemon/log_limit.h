/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A limit for log lines of one kind that any user can cause: one line for each user in 10 s, and at
 * most LOG_LIMIT_USERS lines in 10 s. Lines that are left out are counted, and the next line says
 * how many.
 */
#include <stdbool.h>
#include "abi/types.h"

#define LOG_LIMIT_USERS 16
#define LOG_LIMIT_NS	(10 * NSEC_PER_SEC)

/* Initialize it with zeros. */
struct log_limit {
	struct {
		u32 uid;
		u64 logged_ns; /* the last line; 0: the row is unused */
		u64 nr_left_out;
	} users[LOG_LIMIT_USERS];
	u64 nr_left_out; /* of users without a row */
};

/* Whether to log a line. *ret_left_out is the number of lines that were left out before it. */
bool log_limit_allows(struct log_limit *limit, u32 uid, u64 now_ns, u64 *ret_left_out);
