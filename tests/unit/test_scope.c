/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/scope.h"

/* As the BPF programs read it: zero at the end. */
static u32 scope_named(const char *name)
{
	char read[SCOPE_NAME_BYTES] = {};

	memcpy(read, name, strnlen(name, sizeof(read) - 1));
	return scope_of(read);
}

static void scopes_are_known_by_their_prefix(void **state)
{
	static const struct {
		const char *name;
		u32 scope;
	} rows[] = {
		{ "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", SCOPE_LOADER },
		{ "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", SCOPE_LOADER },
		{ "enumerate(DataLoader)#", SCOPE_LOADER },
		{ "enumerate(DataLoader)", SCOPE_NR },
		{ "enumerate(DataPipe)#Batcher", SCOPE_NR },
		{ "Optimizer.step#SGD.step", SCOPE_STEP },
		{ "Optimizer.step#AdamW.step", SCOPE_STEP },
		{ "Optimizer.step", SCOPE_NR },
		{ "Optimizer.steps#SGD.step", SCOPE_NR },
		{ "MyOptimizer.step#SGD.step", SCOPE_NR },
		{ "Optimizer.zero_grad#SGD.zero_grad", SCOPE_ZERO_GRAD },
		{ "Optimizer.zero_grad", SCOPE_NR },
		{ "", SCOPE_NR },
	};

	for (u32 i = 0; i < ARRAY_SIZE(rows); i++)
		if (scope_named(rows[i].name) != rows[i].scope)
			fail_msg("%s: %u", rows[i].name, scope_named(rows[i].name));
}

static void a_scope_inside_another_is_not_the_outermost(void **state)
{
	assert_true(scope_is_outermost(0, 0x1000));
	assert_false(scope_is_outermost(0x1000, 0x2000));
	assert_true(scope_is_outermost(0x1000, 0x1000));
}

static void a_scope_contains_its_members(void **state)
{
	const u64 object = 0x2287c9e0;

	assert_true(scope_holds(object, object));
	assert_true(scope_holds(object, object + 16));
	assert_false(scope_holds(object, object - 8));
	assert_false(scope_holds(object, object + SCOPE_OBJECT_BYTES));
	assert_false(scope_holds(object, 0x7ffe87c0ec20));
	assert_false(scope_holds(0, 16));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scopes_are_known_by_their_prefix),
		cmocka_unit_test(a_scope_contains_its_members),
		cmocka_unit_test(a_scope_inside_another_is_not_the_outermost),
	};

	return cmocka_run_group_tests_name("scope", tests, NULL, NULL);
}
