/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/*
 * The edge that points back: what somebody asks of the kernel side is checked here and
 * becomes a policy. Only src/collect/kernel.c writes it down.
 */
#include "abi/sched.h"
#include "export/protocol.h"

/* The promoted get something, whatever anybody asks for. */
#define CONTROL_OTHERS_PERMILLE_MAX 900

/* A rule by its name; -EINVAL when there is none. */
int control_rule(const char *name, size_t length, u32 *ret_rule);

/* Names of rules with commas between them, as bits; an empty text is none. */
int control_rules(const char *names, u32 *ret_bits);

/*
 * Changes what `params` names and leaves the rest of the policy as it is. -EINVAL, and
 * *ret_problem says what is wrong; the policy is untouched then.
 */
int control_policy_change(yyjson_val *params, struct sched_policy *policy,
			  const char **ret_problem);

/* The policy as a JSON object, to be freed; NULL for want of memory. */
char *control_policy_text(const struct sched_policy *policy, size_t *ret_length);
