/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Starts many short processes in a small range of pids, so that every pid has hundreds of
 * owners. Some owners launch a known number of times; most do not. No owner may have state
 * of an earlier owner, and no state may be left at the end.
 *
 * It limits the pids of the whole machine and watches all processes, so it only runs in a
 * guest.
 */
#include "signals/native.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/file.h"
#include "daemon/manager.h"

#define PID_MAX	     400
#define BATCH	     48
#define ONE_LAUNCHES 5 /* one owner out of this many launches */
#define ONE_FORKS    20
#define STACK_BYTES  8192
#define MAX_LAUNCHES 20

/* tests/discovery/fixtures/calls.c */
int cudaLaunchKernel(const void *function);
int cudaDeviceSynchronize(void);

static u32 nr_processes;

struct owner {
	pid_t pid;
	u32 nr_launches; /* launches that it makes */
	u32 nr_told;	 /* how often the BPF programs reported its end */
};

struct batch {
	struct owner owners[BATCH];
	u32 nr_strangers; /* reported ends of processes that never made a call */
	u32 nr_inherited; /* processes with more calls than they made */
	/* Totals of all batches: */
	u64 nr_missing; /* calls that were not counted */
	u64 nr_unheard; /* ends that were not reported */
};

static void on_event(void *ctx, const struct event *event)
{
	const struct process_state *process = &((const struct exit_event *)event)->process;
	struct batch *batch = ctx;
	u64 made, counted;

	if (event->kind != EVENT_EXIT)
		return;
	for (u32 i = 0; i < BATCH; i++) {
		struct owner *owner = &batch->owners[i];

		if (owner->pid != (pid_t)event->tgid || !owner->nr_launches)
			continue;
		owner->nr_told++;
		made = owner->nr_launches + 1;
		counted = process->nr_launches[LEVEL_RUNTIME] + process->nr_syncs[LEVEL_RUNTIME];
		batch->nr_inherited += counted > made;
		batch->nr_missing += counted < made ? made - counted : 0;
		return;
	}
	batch->nr_strangers++;
}

static void on_attach_error(void *ctx, const struct library *library, int err)
{
	print_message("# %s: %s\n", library->name, strerror(-err));
}

/* The runtime is part of this program, so a call costs only its probes. */
static int owner_run(void *arg)
{
	u32 nr_launches = *(const u32 *)arg;

	for (u32 i = 0; i < nr_launches; i++)
		cudaLaunchKernel(NULL);
	if (nr_launches)
		cudaDeviceSynchronize();
	return 0;
}

/*
 * Most owners share the memory of their parent, like a process between vfork() and exec;
 * each has its own stack there. They are normal processes, and cost a tenth of a fork in
 * an emulated guest.
 */
static pid_t owner_start(u32 *nr_launches, char stack[STACK_BYTES])
{
	pid_t pid;

	if (rand() % ONE_FORKS)
		return clone(owner_run, stack + STACK_BYTES, CLONE_VM | SIGCHLD, nr_launches);
	pid = fork();
	if (pid == 0)
		_exit(owner_run(nr_launches));
	return pid;
}

/* A pid occurs only once in a batch, because no process is reaped until all have started. */
static void batch_run(struct batch *batch, struct manager *manager, u32 *owners_of_pid)
{
	static char stacks[BATCH][STACK_BYTES] __attribute__((aligned(16)));

	for (u32 i = 0; i < BATCH; i++) {
		struct owner *owner = &batch->owners[i];

		*owner = (struct owner){};
		if (rand() % ONE_LAUNCHES == 0)
			owner->nr_launches = 1 + (u32)rand() % MAX_LAUNCHES;
		owner->pid = owner_start(&owner->nr_launches, stacks[i]);
		assert_in_range(owner->pid, 1, PID_MAX);
		owners_of_pid[owner->pid]++;
	}
	for (u32 i = 0; i < BATCH; i++)
		assert_int_equal(waitpid(batch->owners[i].pid, NULL, 0), batch->owners[i].pid);
	assert_true(manager_poll(manager, 0) >= 0);
	for (u32 i = 0; i < BATCH; i++)
		batch->nr_unheard += batch->owners[i].nr_launches && !batch->owners[i].nr_told;
	assert_int_equal(batch->nr_inherited, 0);
	assert_int_equal(batch->nr_strangers, 0);
}

static void check_nothing_is_left(struct kernel *kernel, struct manager *manager)
{
	struct kernel_snapshot snapshot;

	assert_int_equal(kernel_snapshot_read(kernel, &snapshot), 0);
	assert_int_equal(snapshot.nr_processes, 0);
	assert_int_equal(snapshot.nr_threads, 0);
	kernel_snapshot_done(&snapshot);
	/* The state of processes whose end was not reported. */
	assert_int_equal(kernel_sweep(kernel), 0);
	assert_int_equal(kernel_nr_entries(kernel), 0);
	assert_int_equal(manager_nr_lost_maps(manager), 0);
	assert_int_equal(manager_libraries(manager).nr_processes, 1);
}

static void test_recycled_pid_inherits_no_state(void **state)
{
	static const struct manager_handler handler = { on_event, on_attach_error };
	static u32 owners_of_pid[PID_MAX + 1];
	static struct batch batch;
	struct kernel *kernel = native_kernel();
	u32 nr_pids = 0, most = 0;
	struct manager *manager;
	struct kernel_drops drops;

	assert_int_equal(manager_new(kernel, -1, false, &handler, &batch, &manager), 0);
	assert_int_equal(manager_wait(manager), 0);
	for (u32 i = 0; i < nr_processes; i += BATCH)
		batch_run(&batch, manager, owners_of_pid);
	check_nothing_is_left(kernel, manager);
	for (u32 pid = 0; pid <= PID_MAX; pid++) {
		nr_pids += owners_of_pid[pid] > 0;
		most = owners_of_pid[pid] > most ? owners_of_pid[pid] : most;
	}
	drops = kernel_drops(kernel);
	print_message(
		"# %u processes had %u pids, at most %u owners of one pid; %llu calls not counted, "
		"%llu ends not reported; dropped: %llu events, %llu frames, %llu samples\n",
		nr_processes, nr_pids, most, batch.nr_missing, batch.nr_unheard, drops.nr_events,
		drops.nr_frames, drops.nr_samples);
	assert_true(most > 1);
	/* Missed calls are counted as drops. */
	assert_in_range(batch.nr_missing, 0, drops.nr_processes);
	assert_in_range(batch.nr_unheard, 0, drops.nr_bpf_program_runs);
	assert_int_equal(drops.nr_events + drops.nr_frames, 0);
	/* The kernel may have no free memory for a distribution: counted, and rare. */
	assert_in_range(drops.nr_samples, 0, nr_processes / 1000);
	manager_free(manager);
	kernel_free(kernel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recycled_pid_inherits_no_state),
	};
	FILE *pid_max;

	if (argc != 2)
		return 2;
	if (!getenv("ZERNEL_IN_GUEST")) {
		puts("1..0 # SKIP limits the pids of the whole machine: run `./dev test signals`");
		return 0;
	}
	pid_max = fopen("/proc/sys/kernel/pid_max", "we");
	if (!pid_max || fprintf(pid_max, "%d\n", PID_MAX) < 0 || fclose(pid_max))
		return 1;
	nr_processes = (u32)atoi(argv[1]);
	return cmocka_run_group_tests_name("pids", tests, NULL, NULL);
}
