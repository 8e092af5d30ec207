/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "property/property.h"

#include "core/tier.h"

static bool averages_agree_with_128_bit_arithmetic_holds(struct random *r)
{
	u64 a = random_any(r), b = random_any(r);

	return tier_average(a, b) == (u64)(((unsigned __int128)7 * a + b) / 8);
}
PROPERTY(averages_agree_with_128_bit_arithmetic, 1)

int main(void)
{
	const struct CMUnitTest tier_properties[] = {
		cmocka_unit_test(averages_agree_with_128_bit_arithmetic),
	};

	return cmocka_run_group_tests(tier_properties, NULL, NULL);
}
