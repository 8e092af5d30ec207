/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "core/scope.h"

static bool is_loader(const char *name)
{
	char read[SCOPE_NAME_BYTES] = {};

	memcpy(read, name, strnlen(name, sizeof(read)));
	return scope_is_loader(read);
}

static void only_dataloader_scopes_are_waits_for_data(void **state)
{
	assert_true(is_loader("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"));
	assert_true(is_loader("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"));
	assert_false(is_loader("enumerate(DataLoader)"));
	assert_false(is_loader("enumerate(DataPipe)#Batcher"));
	assert_false(is_loader("Optimizer.step#SGD.step"));
	assert_false(is_loader(""));
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
		cmocka_unit_test(only_dataloader_scopes_are_waits_for_data),
		cmocka_unit_test(a_scope_contains_its_members),
	};

	return cmocka_run_group_tests_name("scope", tests, NULL, NULL);
}
