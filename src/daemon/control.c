/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/control.h"
#include <errno.h>
#include <string.h>
#include "base/macros.h"
#include "core/snapshot.h"
#include "config/config.h"

static int change_rules(yyjson_val *value, struct sched_policy *policy)
{
	u32 bits = 0, rule;
	yyjson_val *name;
	size_t i, nr;

	if (!yyjson_is_arr(value))
		return -EINVAL;
	yyjson_arr_foreach(value, i, nr, name) {
		if (!yyjson_is_str(name) ||
		    sched_rule_find(yyjson_get_str(name), yyjson_get_len(name), &rule) < 0)
			return -EINVAL;
		bits |= 1U << rule;
	}
	policy->rules_off = bits;
	return 0;
}

static int change_reserved(yyjson_val *value, struct sched_policy *policy)
{
	if (!yyjson_is_uint(value) || yyjson_get_uint(value) > CONFIG_RESERVED_PERCENT_MAX)
		return -EINVAL;
	policy->reserved_percent = (u32)yyjson_get_uint(value);
	return 0;
}

static const struct {
	const char *name;
	int (*change)(yyjson_val *value, struct sched_policy *policy);
	const char *problem;
} members[] = {
	{ "rules_off", change_rules, "rules_off must be a list of these rules: " SCHED_RULE_NAMES },
	{ "reserved_percent", change_reserved,
	  "reserved_percent must be a whole number from 0 to 90" },
};
#define NR_MEMBERS ARRAY_SIZE(members)

int control_policy_change(yyjson_val *params, struct sched_policy *policy, const char **ret_problem)
{
	struct sched_policy changed = *policy;
	yyjson_val *key, *value;
	size_t i, nr, m;

	yyjson_obj_foreach(params, i, nr, key, value) {
		for (m = 0; m < NR_MEMBERS && !yyjson_equals_str(key, members[m].name); m++)
			;
		*ret_problem = m < NR_MEMBERS ? members[m].problem
					      : "a policy has only rules_off and reserved_percent";
		if (m == NR_MEMBERS || members[m].change(value, &changed) < 0)
			return -EINVAL;
	}
	*policy = changed;
	return 0;
}

char *control_policy_text(const struct sched_policy *policy, size_t *ret_length)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc), *rules;
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	rules = yyjson_mut_obj_add_arr(doc, root, "rules_off");
	for (u32 rule = 0; rule < RULE_NR; rule++)
		if (policy->rules_off & (1U << rule))
			yyjson_mut_arr_add_str(doc, rules, sched_rule_label(rule));
	yyjson_mut_obj_add_uint(doc, root, "reserved_percent", policy->reserved_percent);
	text = yyjson_mut_write(doc, 0, ret_length);
	yyjson_mut_doc_free(doc);
	return text;
}
