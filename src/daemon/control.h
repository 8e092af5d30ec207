/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Checks a policy that a client requests. Only src/collect/kernel*.c writes the policy to the
 * BPF programs.
 */
#include "abi/sched.h"
#include "ipc/protocol.h"

/*
 * Changes the members of the policy that `params` names. On -EINVAL, *ret_problem describes the
 * error and the policy is unchanged.
 */
int control_policy_change(yyjson_val *params, struct sched_policy *policy,
			  const char **ret_problem);

/* Returns the policy as a JSON object that the caller frees; NULL when out of memory. */
char *control_policy_text(const struct sched_policy *policy, size_t *ret_length);
