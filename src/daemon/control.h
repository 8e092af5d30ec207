/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The edge that points back: what somebody asks of the kernel side is checked here and
 * becomes a policy. Only src/collect/kernel.c writes it down.
 */
#include "abi/sched.h"
#include "ipc/protocol.h"

/*
 * Changes what `params` names and leaves the rest of the policy as it is. -EINVAL, and
 * *ret_problem says what is wrong; the policy is untouched then.
 */
int control_policy_change(yyjson_val *params, struct sched_policy *policy,
			  const char **ret_problem);

/* The policy as a JSON object, to be freed; NULL for want of memory. */
char *control_policy_text(const struct sched_policy *policy, size_t *ret_length);
