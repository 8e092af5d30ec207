/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A program that nvcc built is found, with the runtime in it and with the runtime beside it.
 * Its calls fail for lack of a GPU, and no memory, step, busy, open or idle time is booked.
 */
#include "discovery/support.h"
#include "signals/native.h"

#include "daemon/manager.h"

#define PATIENCE_NS (60 * NSEC_PER_SEC)
#define POLL_MS	    5

static void on_event(void *ctx, const struct event *event)
{
}

static void on_attach_error(void *ctx, const struct library *library, int err)
{
	print_message("# %s: %s\n", library->name, strerror(-err));
}

static void wait_until_found(struct manager *manager)
{
	u64 begin = time_now_ns();

	while (manager_libraries(manager).nr_libraries != 1) {
		assert_true(manager_poll(manager, POLL_MS) >= 0);
		assert_true(time_now_ns() - begin < PATIENCE_NS);
	}
}

static void assert_no_account(const struct process_state *state)
{
	static const struct memory_book empty[GPU_MAX];

	for (u32 level = 0; level < LEVEL_NR; level++) {
		assert_memory_equal(state->books[level], empty, sizeof(empty));
		assert_memory_equal(&state->host_books[level], empty, sizeof(empty[0]));
	}
	assert_int_equal(state->step.nr_steps, 0);
	assert_int_equal(state->idle.since_ns, 0);
	assert_int_equal(state->idle.busy_ns, 0);
	assert_int_not_equal(state->idle.gpu, IDLE_GPU_BUSY);
	for (u32 cause = 0; cause < IDLE_CAUSE_NR; cause++)
		assert_int_equal(idle_total(&state->idle, cause), 0);
}

static void test_program(void **state)
{
	static const struct manager_handler handler = { on_event, on_attach_error };
	struct kernel *kernel = native_kernel();
	struct manager *manager = NULL;
	struct process_state process;
	struct child child;
	char line[16];
	int err = manager_new(kernel, getpid(), false, &handler, NULL, &manager);

	if (err == -EACCES || err == -EPERM || err == -ENOENT) {
		print_message("# skipped: cannot open perf events: %s\n", strerror(-err));
		kernel_free(kernel);
		skip();
	}
	assert_int_equal(err, 0);
	child = child_start(*state);
	assert_non_null(fgets(line, sizeof(line), child.from));
	wait_until_found(manager);
	print_message("# probes: %llu\n", (unsigned long long)manager_libraries(manager).nr_probes);
	fputs("go\n", child.to);
	fflush(child.to);
	assert_non_null(fgets(line, sizeof(line), child.from));
	/* With a GPU, the calls succeed, and there is nothing to test. */
	if (strcmp(line, "0\n") == 0) {
		process = native_state(kernel, child.pid);
		/* The calls were seen. */
		assert_int_equal(process.nr_syncs[LEVEL_RUNTIME], 1);
		assert_no_account(&process);
	}
	child_end(&child);
	manager_free(manager);
	kernel_free(kernel);
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[2];

	if (argc != 3)
		return 2;
	for (int i = 0; i < 2; i++)
		tests[i] = (struct CMUnitTest){ .name = argv[i + 1],
						.test_func = test_program,
						.initial_state = argv[i + 1] };
	return cmocka_run_group_tests_name("nvcc", tests, NULL, NULL);
}
