/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the output of zernel status for a known snapshot. */
#include "answers/capture.h"
#include "cli/status.h"

static void set(char *to, size_t size, const char *text)
{
	snapshot_set_text(to, size, text, strlen(text));
}

#define SET(member, text) set(member, sizeof(member), text)

static void add_rank(struct snapshot *snapshot, u32 rank, u32 job)
{
	struct snapshot_process *process = snapshot_add_process(snapshot, 1000 + rank);

	process->job = job;
	process->nr_ranks = 1;
	process->rank = (s32)rank;
	process->phase = rank ? PHASE_GPU_COMPUTE : PHASE_DATA_LOADING;
	process->phase_ns[PHASE_DATA_LOADING] = 250;
	process->phase_ns[PHASE_GPU_COMPUTE] = 700;
	process->phase_ns[PHASE_COLLECTIVE] = 40;
	process->phase_ns[PHASE_OPTIMIZER] = 10;
	process->nr_memory = 1;
	book_alloc(&process->memory[0].book, 3ULL << 30);
	SET(process->comm, "python3");
	snapshot_add_thread(snapshot, process->pid, ROLE_LAUNCHER)->pid = process->pid;
	for (u32 i = 1; i < 4; i++)
		snapshot_add_thread(snapshot, 100 * process->pid + i, ROLE_LOADER)->pid =
			process->pid;
}

static struct snapshot *make(u32 nr_ranks)
{
	const struct snapshot_limits limits = SNAPSHOT_LIMITS_DEFAULT;
	struct snapshot *snapshot;
	struct snapshot_gpu *gpu;
	u32 job;

	assert_int_equal(snapshot_new(&limits, &snapshot), 0);
	SET(snapshot->host, "node7");
	SET(snapshot->version, "0.1.0");
	SET(snapshot->kernel, "6.18.3");
	snapshot->sched.state = SCHED_ATTACHED;
	snapshot->sched.reserved_percent = 30;
	snapshot->learning.nr_profiles = 40;
	snapshot->learning.nr_confident = 30;
	snapshot->cost.cpu_ns = 2500 * NSEC_PER_MSEC;
	snapshot->cost.rss_bytes = 20ULL << 20;
	job = snapshot_add_job(snapshot, "/slurm/job_12", "slurm 12");
	for (u32 rank = 0; rank < nr_ranks; rank++)
		add_rank(snapshot, rank, job);
	gpu = snapshot_add_gpu(snapshot, 0);
	gpu->valid = SNAPSHOT_GPU_BUSY | SNAPSHOT_GPU_MEMORY_TOTAL;
	gpu->busy_percent = 61;
	gpu->memory_total_bytes = 80ULL << 30;
	return snapshot;
}

static char *print(const struct snapshot *snapshot, struct term term)
{
	struct capture capture = capture_begin();

	term.out = capture.out;
	assert_int_equal(status_print(snapshot, &term), 0);
	return capture_end(&capture);
}

static void assert_shows(struct snapshot *snapshot, const char *line)
{
	char *text = print(snapshot, (struct term){});

	if (!strstr(text, line))
		print_message("# '%s' is not in:\n%s", line, text);
	assert_non_null(strstr(text, line));
	free(text);
}

static void test_whole_output(void **state)
{
	struct snapshot *snapshot = make(2);

	assert_shows(snapshot, "node7  zerneld 0.1.0, Linux 6.18.3\n");
	assert_shows(snapshot,
		     "scheduler  attached, 30 % of each CPU is reserved for ordinary tasks\n");
	assert_shows(snapshot, "JOB       USER  PROCESSES  RANKS  NAMES  CGROUP\n"
			       "slurm 12  -             2      2         /slurm/job_12\n");
	assert_shows(snapshot, "RANK   PID  COMMAND  PHASE         DATA  GPU  COLL  OPT  DEVICE   "
			       "MEMORY  THREADS\n"
			       "   0  1000  python3  data_loading   25%  70%    4%   1%       -  "
			       "3.0 GiB  1 launcher, 3 loader\n");
	assert_shows(snapshot, "GPU  BUSY  MEM USED  MEM TOTAL  NUMA NODE  UUID\n"
			       "  0   61%         -   80.0 GiB          -  \n");
	snapshot->gpus[0].valid |= SNAPSHOT_GPU_NUMA_NODE;
	snapshot->gpus[0].numa_node = 1;
	assert_shows(snapshot, "  0   61%         -   80.0 GiB          1  \n");
	assert_shows(snapshot, "roles      2 launcher, 6 loader\n");
	assert_shows(snapshot, "learning   40 profiles (30 confident), 0 observations\n");
	assert_shows(snapshot, "dropped    none\n");
	assert_shows(snapshot, "own cost   2.5 s of CPU time, 20.0 MiB of memory\n");
	snapshot_free(snapshot);
}

/* The GPU of a process, a part of it, and a GPU that is not identified. */
static void test_the_gpu_of_a_process(void **state)
{
	struct snapshot *snapshot = make(1);
	struct snapshot_task *task = &snapshot->processes[0].task;

	*task = (struct snapshot_task){ .known = 1,
					.gpu = 5,
					.gpu_instance = SNAPSHOT_GPU_UNKNOWN };
	assert_shows(snapshot, "   1%       5  3.0 GiB");
	task->gpu_instance = 9;
	assert_shows(snapshot, "   1%     5/9  3.0 GiB");
	task->gpu = SNAPSHOT_GPU_UNKNOWN;
	assert_shows(snapshot, "   1%  unknown  3.0 GiB");
	snapshot->nr_gpu_conflicts = 2;
	assert_shows(snapshot,
		     "conflicts  2 times, a runtime and the driver named different GPUs\n");
	snapshot_free(snapshot);
}

static void test_problems_are_shown(void **state)
{
	struct snapshot *snapshot = make(0);

	snapshot->sched.state = SCHED_EJECTED;
	snapshot->sched.nr_ejected = 2;
	snapshot->sched.rules_off = 1U << RULE_TIER;
	SET(snapshot->sched.reason, "runnable task stall");
	snapshot->nr_dropped[DROP_EVENTS] = 7;
	assert_shows(snapshot, "ejected (runnable task stall), ");
	assert_shows(snapshot, ", rules disabled: tier, ejected 2 times\n");
	assert_shows(snapshot, "dropped    7 events\n");
	assert_shows(snapshot, "roles      none\n");
	assert_shows(snapshot, "No process uses a GPU.\n");
	snapshot_free(snapshot);
}

static void test_unproven_processes_are_marked(void **state)
{
	struct snapshot *snapshot = make(2);

	snapshot->processes[0].gpu_evidence = GPU_EVIDENCE_NONE;
	snapshot->processes[1].gpu_evidence = GPU_EVIDENCE_DEVICE;
	assert_shows(snapshot, "   0  1000  python3 (unproven)  data_loading");
	assert_shows(snapshot, "   1  1001  python3             gpu_compute");
	snapshot_free(snapshot);
}

static void test_names_of_jobs(void **state)
{
	struct snapshot *snapshot = make(1);
	struct job_names *names = &snapshot->jobs[0].names;

	snapshot->jobs[0].uid = 0;
	SET(names->claimed_name, "train");
	SET(names->claimed_account, "phys");
	SET(names->claimed_array, "100_3");
	assert_shows(snapshot, "slurm 12  root          1      1  claims the name train, account "
			       "phys, array 100_3  /slurm/job_12\n");
	*names = (struct job_names){ .namespace = "ml", .pod = "trainer-0" };
	SET(names->container_name, "main");
	snapshot->jobs[0].uid = 123456789;
	assert_shows(snapshot, "slurm 12  123456789          1      1  ml/trainer-0, container "
			       "main  /slurm/job_12\n");
	snapshot_free(snapshot);
}

static u32 count_lines(const char *text)
{
	u32 nr = 0;

	for (; *text; text++)
		nr += *text == '\n';
	return nr;
}

static void test_terminal_gets_one_screen_and_pipe_gets_all_rows(void **state)
{
	struct snapshot *snapshot = make(64);
	char *text = print(snapshot, (struct term){ .width = 80, .height = 24 });

	assert_true(count_lines(text) < 24);
	assert_non_null(strstr(text, "... and 61 more"));
	free(text);
	text = print(snapshot, (struct term){});
	assert_true(count_lines(text) > 64);
	assert_null(strstr(text, "more"));
	free(text);
	snapshot_free(snapshot);
}

static void test_color_shows_the_state(void **state)
{
	struct snapshot *snapshot = make(1);
	char *text = print(snapshot, (struct term){ .colour = true });

	assert_non_null(strstr(text, "\033[32mattached\033[0m"));
	free(text);
	snapshot_free(snapshot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_output),
		cmocka_unit_test(test_the_gpu_of_a_process),
		cmocka_unit_test(test_problems_are_shown),
		cmocka_unit_test(test_unproven_processes_are_marked),
		cmocka_unit_test(test_names_of_jobs),
		cmocka_unit_test(test_terminal_gets_one_screen_and_pipe_gets_all_rows),
		cmocka_unit_test(test_color_shows_the_state),
	};

	return cmocka_run_group_tests_name("zernel status", tests, NULL, NULL);
}
