/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A walk over a map ends, also if the processes change the map so that the kernel finds a next
 * key forever.
 */
#include "signals/native.h"

static u64 nr_steps;
static bool is_endless;

int __real_bpf_map__get_next_key(const struct bpf_map *map, const void *at, void *next,
				 size_t size);
int __wrap_bpf_map__get_next_key(const struct bpf_map *map, const void *at, void *next,
				 size_t size);

/* The linker replaces the function by this one. */
int __wrap_bpf_map__get_next_key(const struct bpf_map *map, const void *at, void *next, size_t size)
{
	if (!is_endless)
		return __real_bpf_map__get_next_key(map, at, next, size);
	nr_steps++;
	memset(next, 1, size);
	return 0;
}

static void count_quota(void *ctx, u32 uid, const u64 nr_refused[TENANT_TABLE_NR])
{
	u32 *nr = ctx;

	*nr += 1;
}

static void test_walks_end(void **state)
{
	struct kernel *kernel = native_kernel();
	u32 nr = 0;

	is_endless = true;
	assert_true(kernel_nr_entries(kernel) > 0);
	print_message("# %llu steps to count all entries\n", nr_steps);
	assert_int_equal(kernel_sweep(kernel), 0);
	kernel_read_quotas(kernel, count_quota, &nr);
	assert_int_equal(nr, 0);
	print_message("# %llu steps in all\n", nr_steps);
	is_endless = false;
	kernel_free(kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walks_end),
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
