/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/oom.h"
#include "core/snapshot.h"

#define GIB (1ULL << 30)

static void devices_are_decoded(void **state)
{
	static const struct {
		u64 argument;
		bool is_gpu;
		u32 device;
	} rows[] = {
		{ 0x0001, true, 0 },	   { 0x0301, true, 3 },
		{ 0x0f06, true, 15 },	   { 0x1001, true, GPU_MAX },
		{ 0xff01, true, GPU_MAX }, { 0xff00, false, GPU_MAX },
		{ 0x0000, false, 0 },	   { 0xdead0000ULL | 0x0201, true, 2 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(oom_is_gpu(rows[i].argument), rows[i].is_gpu);
		assert_int_equal(oom_device(rows[i].argument), rows[i].device);
	}
}

static void events_are_limited_by_time(void **state)
{
	struct oom_report all = {}, one = { .time_ns = 5 * NSEC_PER_SEC, .asked_bytes = 1 };

	assert_true(oom_add(&all, &one));
	one.time_ns += OOM_EVENT_NS - 1;
	one.asked_bytes = 2;
	assert_false(oom_add(&all, &one));
	assert_int_equal(all.asked_bytes, 2);
	one.time_ns++;
	assert_true(oom_add(&all, &one));
	one.time_ns++;
	assert_false(oom_add(&all, &one));
	assert_int_equal(all.nr, 4);
}

static struct snapshot_process *add(struct snapshot *s, u32 pid, u32 uid, u32 gpu, u64 bytes)
{
	struct snapshot_process *process = snapshot_add_process(s, pid);

	process->uid = uid;
	process->nr_memory = 1;
	process->memory[0].gpu = gpu;
	process->memory[0].book.current_bytes = bytes;
	snapshot_set_text(process->comm, sizeof(process->comm), "python3", 7);
	return process;
}

static struct snapshot *make(struct snapshot_process **ret)
{
	struct snapshot *s;

	assert_int_equal(snapshot_new(&SNAPSHOT_LIMITS_DEFAULT, &s), 0);
	s->monotonic_ns = 77;
	*ret = add(s, 1, 1000, 0, 30 * GIB);
	(*ret)->oom = (struct snapshot_oom){ .nr = 1, .gpu = 0 };
	add(s, 2, 1000, 0, 2 * GIB);
	add(s, 3, 1001, 0, 8 * GIB);
	add(s, 4, 1000, 1, 50 * GIB);
	add(s, 5, 1000, 0, 0);
	add(s, 6, 1000, 0, 60 * GIB)->ended_ms = 1;
	return s;
}

static void others_are_on_the_same_gpu(void **state)
{
	struct snapshot_process *process;
	struct snapshot *s = make(&process);

	snapshot_oom_find_others(s, process);
	assert_int_equal(process->oom.others_ns, 77);
	assert_int_equal(process->oom.others_bytes, 10 * GIB);
	assert_int_equal(process->oom.nr_holders, 2);
	assert_int_equal(process->oom.nr_others, 2);
	assert_int_equal(process->oom.others[0].pid, 3);
	assert_int_equal(process->oom.others[1].pid, 2);
	assert_string_equal(process->oom.others[1].comm, "python3");
	snapshot_free(s);
}

static void only_the_largest_are_listed(void **state)
{
	struct snapshot_process *process;
	struct snapshot *s = make(&process);

	for (u32 i = 0; i < 100; i++)
		add(s, 100 + i, 1000, 0, (1 + i * 37 % 100) * GIB);
	snapshot_oom_find_others(s, process);
	assert_int_equal(process->oom.nr_holders, 102);
	assert_int_equal(process->oom.nr_others, OOM_OTHERS_MAX);
	assert_int_equal(process->oom.others_bytes, (10 + 5050) * GIB);
	for (u32 i = 0; i < OOM_OTHERS_MAX; i++)
		assert_int_equal(process->oom.others[i].bytes, (100 - i) * GIB);
	snapshot_free(s);
}

static void others_on_an_unknown_gpu_are_not_known(void **state)
{
	struct snapshot_process *process;
	struct snapshot *s = make(&process);

	add(s, 7, 1000, SNAPSHOT_GPU_UNKNOWN, GIB);
	process->oom.gpu = SNAPSHOT_GPU_UNKNOWN;
	snapshot_oom_find_others(s, process);
	assert_int_equal(process->oom.others_ns, 0);
	assert_int_equal(process->oom.nr_others, 0);
	snapshot_free(s);
}

static void names_of_other_users_are_hidden(void **state)
{
	struct snapshot_process *process;
	struct snapshot *s = make(&process);

	snapshot_oom_find_others(s, process);
	snapshot_oom_hide_others(process);
	assert_int_equal(process->oom.others[0].pid, 0);
	assert_int_equal(process->oom.others[0].uid, SNAPSHOT_UID_UNKNOWN);
	assert_string_equal(process->oom.others[0].comm, "");
	assert_int_equal(process->oom.others[0].bytes, 8 * GIB);
	assert_int_equal(process->oom.others[1].pid, 2);
	snapshot_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_decoded),
		cmocka_unit_test(events_are_limited_by_time),
		cmocka_unit_test(others_are_on_the_same_gpu),
		cmocka_unit_test(only_the_largest_are_listed),
		cmocka_unit_test(others_on_an_unknown_gpu_are_not_known),
		cmocka_unit_test(names_of_other_users_are_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
