/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A walk over a map ends, also if the processes change the map so that the kernel finds a next
 * key forever.
 */
#include "signals/native.h"

static u64 nr_steps;
static bool is_endless;
static const struct bpf_map *watched;
static u32 nr_watched; /* steps in this map */

int __real_bpf_map__get_next_key(const struct bpf_map *map, const void *at, void *next,
				 size_t size);
int __wrap_bpf_map__get_next_key(const struct bpf_map *map, const void *at, void *next,
				 size_t size);

/* The linker replaces the function by this one. */
int __wrap_bpf_map__get_next_key(const struct bpf_map *map, const void *at, void *next, size_t size)
{
	nr_watched += map == watched;
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

#define GONE 500

static struct gpu_kernel_key key_of(u32 tgid, u64 handle)
{
	return (struct gpu_kernel_key){ .start_ns = 1000 + tgid, .tgid = tgid, .handle = handle };
}

/* Processes end in any order, and a walk deletes what all of them have. */
static void test_entries_of_many_processes_are_deleted(void **state)
{
	struct kernel *kernel = native_kernel();
	const struct bpf_map *map = kernel->skel->maps.gpu_kernels;
	struct gpu_kernel value = {};

	for (u32 tgid = 0; tgid <= GONE; tgid++)
		for (u64 handle = 0; handle < 2; handle++) {
			struct gpu_kernel_key key = key_of(tgid, handle);

			assert_int_equal(bpf_map__update_elem(map, &key, sizeof(key), &value,
							      sizeof(value), BPF_ANY),
					 0);
		}
	/* All but the last one end. 7 is prime to their number. */
	for (u32 i = 0; i < GONE; i++) {
		struct process_state process = { .task.pid = i * 7 % GONE,
						 .start_ns = 1000 + i * 7 % GONE };

		assert_int_equal(kernel_note_gone(kernel, &process), 0);
	}
	watched = kernel->skel->maps.sequences;
	kernel_forget_gone(kernel);
	/* They were deleted when the process ended. */
	assert_int_equal(nr_watched, 0);
	for (u32 tgid = 0; tgid <= GONE; tgid++) {
		struct gpu_kernel_key key = key_of(tgid, 1);

		assert_int_equal(
			bpf_map__lookup_elem(map, &key, sizeof(key), &value, sizeof(value), 0),
			tgid < GONE ? -ENOENT : 0);
	}
	assert_int_equal(kernel_sweep(kernel), 0);
	assert_true(nr_watched > 0);
	kernel_free(kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walks_end),
		cmocka_unit_test(test_entries_of_many_processes_are_deleted),
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
