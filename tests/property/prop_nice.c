/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "property/property.h"

#include "core/nice.h"

#define NR_SAMPLES 16

static void random_step(struct random *r, struct nice_sample *sample)
{
	u64 passed_ns = 1 + random_below(r, 2 * NSEC_PER_SEC), now = sample->view.now + passed_ns;
	u64 cpu_ns = random_below(r, passed_ns + 1), spin_ns = random_below(r, cpu_ns + 1);

	sample->view = (struct class_view){
		.now = now,
		.last_sync_ns = now - random_below(r, 4 * NSEC_PER_SEC),
		.role = (u32)random_below(r, ROLE_NR),
		.device_busy = random_below(r, 2),
		.in_collective = random_below(r, 2),
		.consumer_waits = random_below(r, 2),
		.consumer_waited = random_below(r, 2),
	};
	sample->cpu_ns += cpu_ns;
	sample->sync_spin_ns += spin_ns;
	sample->sync_sleep_ns += random_below(r, passed_ns - cpu_ns + 1);
}

/* The policy may only lower the nice value of a thread, and only one with a role and evidence. */
static bool only_promoted_classes_act_holds(struct random *r)
{
	struct nice_sample sample = { .view.now = 1000 * NSEC_PER_SEC };
	struct nice_state state = {};
	u32 rules_off = (u32)random_below(r, 1 << RULE_NR);
	u64 promoted_ns = 0, spun_ns = 0;

	for (u32 i = 0; i < NR_SAMPLES; i++) {
		struct nice_sample before = sample;
		const struct nice_rule *rule;
		struct class_view view;
		u64 now, spun, slept;

		random_step(r, &sample);
		now = sample.view.now;
		view = sample.view;
		view.woken = view.role == ROLE_COLLECTIVE_HELPER;
		if (class_rules[class_of(&view, rules_off)].rank > RANK_ORDINARY)
			promoted_ns = now;
		spun = sample.sync_spin_ns - before.sync_spin_ns;
		slept = sample.sync_sleep_ns - before.sync_sleep_ns;
		if (i > 0 && spun > slept && spun > (now - before.view.now) / NICE_SPIN_PART)
			spun_ns = now;
		rule = &nice_rules[nice_decide(&state, &sample, rules_off)];
		if (rule->nice > 0 || rule->nice < -20)
			return false;
		if (rule->nice && (!promoted_ns || now >= promoted_ns + NICE_HOLD_NS))
			return false;
		if (rule->nice && spun_ns && now < spun_ns + NICE_SPUN_HOLD_NS)
			return false;
	}
	return true;
}
PROPERTY(only_promoted_classes_act, NR_SAMPLES)

int main(void)
{
	const struct CMUnitTest nice_properties[] = {
		cmocka_unit_test(only_promoted_classes_act),
	};

	return cmocka_run_group_tests(nice_properties, NULL, NULL);
}
