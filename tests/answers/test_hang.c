/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the answer of zernel hang for snapshots whose ranks wait in known places. */
#include <errno.h>
#include <yyjson.h>

#include "answers/capture.h"
#include "answers/hang.h"
#include "base/cleanup.h"
#include "cli/hang/hang_print.h"

#define FIRST_PID 4711
#define NR_RANKS  4
#define NOW_NS	  (1000 * NSEC_PER_SEC)
#define PERIOD_NS (100 * NSEC_PER_MSEC)
#define WAIT_NS	  (30 * NSEC_PER_SEC)
#define BYTES	  (4 << 20)
#define WORLD	  "00000000000000aa"
#define PAIR	  "00000000000000bb"

#define OPERATION(name)	  (DETAIL_##name - COLLECTIVE_FIRST)
#define SET(member, text) snapshot_set_text(member, sizeof(member), text, strlen(text))

static struct snapshot_comm *add_comm(struct snapshot *s, u32 pid, const char *identity,
				      u32 nr_ranks, u32 rank, u64 number, u64 entered_ns)
{
	struct snapshot_comm *comm = snapshot_add_comm(s, pid);

	SET(comm->identity, identity);
	comm->is_world = strcmp(identity, WORLD) == 0;
	comm->nr_ranks = nr_ranks;
	comm->rank = rank;
	comm->nr = number;
	comm->made_ns = NSEC_PER_SEC;
	comm->nr_calls = SEQUENCE_KEPT;
	for (u32 i = 0; i < SEQUENCE_KEPT; i++)
		comm->calls[i] = (struct snapshot_call){
			.entered_ns = entered_ns - i * PERIOD_NS,
			.returned_ns = entered_ns - i * PERIOD_NS + 1000,
			.bytes = BYTES,
		};
	return comm;
}

static struct snapshot_process *add_rank(struct snapshot *s, u32 rank)
{
	struct snapshot_process *process = snapshot_add_process(s, FIRST_PID + rank);

	process->job = snapshot_add_job(s, "/slurm/job_12", "slurm-12");
	process->start_ns = 7;
	process->nr_ranks = NR_RANKS;
	process->rank = (s32)rank;
	process->phase = PHASE_COLLECTIVE;
	process->launcher_tid = process->pid;
	process->launcher_doing = THREAD_SLEEPING;
	process->launcher_call_since_ns = NOW_NS - PERIOD_NS / 2;
	SET(process->launcher_call, "cudaStreamSynchronize");
	SET(process->comm, "python3");
	return process;
}

static struct snapshot *make_empty(void)
{
	const struct snapshot_limits limits = SNAPSHOT_LIMITS_DEFAULT;
	struct snapshot *s;

	assert_int_equal(snapshot_new(&limits, &s), 0);
	s->monotonic_ns = NOW_NS;
	s->time_ms = 1700000000000;
	return s;
}

/* All ranks entered number 813 just now. */
static struct snapshot *make(u64 number)
{
	struct snapshot *s = make_empty();

	for (u32 rank = 0; rank < NR_RANKS; rank++) {
		add_rank(s, rank);
		add_comm(s, FIRST_PID + rank, WORLD, NR_RANKS, rank, number, NOW_NS - PERIOD_NS);
	}
	return s;
}

/* Moves all that is known of calls into the past, as if the job had stopped then. */
static void stop(struct snapshot *s, u64 ago_ns)
{
	for (u32 i = 0; i < s->nr_comms; i++)
		for (u32 k = 0; k < s->comms[i].nr_calls; k++) {
			s->comms[i].calls[k].entered_ns -= ago_ns;
			s->comms[i].calls[k].returned_ns -= ago_ns;
		}
	for (u32 i = 0; i < s->nr_processes; i++)
		s->processes[i].launcher_call_since_ns -= ago_ns;
}

/* The rank has not made its last `nr` calls. */
static void keep_back(struct snapshot_comm *comm, u32 nr)
{
	comm->nr -= nr;
	comm->nr_calls -= nr;
	memmove(comm->calls, comm->calls + nr, comm->nr_calls * sizeof(comm->calls[0]));
}

static void be_stopped(struct snapshot_process *process)
{
	process->phase = PHASE_GPU_COMPUTE;
	process->launcher_doing = THREAD_STOPPED;
	process->launcher_call_since_ns = 0;
	process->launcher_call[0] = '\0';
}

static struct hang *ask(const struct snapshot *s, const char *who)
{
	struct hang *hang = NULL;

	assert_int_equal(hang_new(s, who, &hang), 0);
	return hang;
}

/* The answer about the only job. Frees the snapshot. */
static void assert_answer(struct snapshot *s, u32 verdict, const char *expected)
{
	CLEANUP(hang_free_cleanup) struct hang *hang = ask(s, NULL);
	struct hang_job job = hang_job(hang, 0);
	char sentence[HANG_SENTENCE_LEN];

	assert_int_equal(job.nr, hang->nr_comms);
	hang_sentence(&job, sentence);
	assert_string_equal(sentence, expected);
	assert_int_equal(job.comms[job.subject].verdict, verdict);
	snapshot_free(s);
}

static void test_a_running_job(void **state)
{
	assert_answer(make(813), HANG_NONE,
		      "slurm-12: no rank hangs: 4 of 4 ranks that are seen here entered all_reduce "
		      "number 813, the last one 100.0 ms ago (a hang is 5.0 s). No rank is late in "
		      "the last 8 collectives.");
}

static void test_a_rank_that_is_a_little_behind(void **state)
{
	struct snapshot *s = make(813);

	keep_back(&s->comms[2], 1);
	assert_answer(s, HANG_NONE,
		      "slurm-12: no rank hangs: 3 of 4 ranks that are seen here entered all_reduce "
		      "number 813, the last one 100.0 ms ago (a hang is 5.0 s). No rank is late in "
		      "the last 7 collectives.");
}

static void test_a_rank_that_does_not_arrive(void **state)
{
	struct snapshot *s = make(813);

	keep_back(&s->comms[2], 1);
	stop(s, WAIT_NS);
	be_stopped(&s->processes[2]);
	assert_answer(
		s, HANG_MISSING,
		"slurm-12: rank 2 (python3 4713) has not entered all_reduce number 813. 3 ranks "
		"have waited in it for 30.1 s. In rank 2 (python3 4713), launching thread "
		"4713 is stopped by a signal or a debugger, in no call that Zernel follows; "
		"phase gpu_compute.");
}

/* The others have queued more collectives than the ledger has. */
static void test_a_rank_that_is_far_behind(void **state)
{
	struct snapshot *s = make(813);

	keep_back(&s->comms[2], 1);
	s->comms[2].nr = 713;
	stop(s, WAIT_NS);
	assert_answer(s, HANG_MISSING,
		      "slurm-12: rank 2 (python3 4713) has not entered number 714. 3 ranks have "
		      "waited in it for at least 30.8 s. In rank 2 (python3 4713), launching "
		      "thread 4713 sleeps, for 30.1 s in cudaStreamSynchronize; phase "
		      "nccl_collective.");
}

static void test_two_ranks_that_do_not_arrive(void **state)
{
	struct snapshot *s = make(813);

	keep_back(&s->comms[1], 1);
	keep_back(&s->comms[3], 1);
	stop(s, WAIT_NS);
	s->processes[1].launcher_tid = 0;
	assert_answer(s, HANG_MISSING,
		      "slurm-12: rank 1 (python3 4712), rank 3 (python3 4714) have not entered "
		      "all_reduce number 813. 2 ranks have waited in it for 30.1 s. In rank 1 "
		      "(python3 4712), no GPU work was launched yet.");
}

static void test_a_rank_before_its_first_collective(void **state)
{
	struct snapshot *s = make(1);

	for (u32 i = 0; i < s->nr_comms; i++)
		s->comms[i].nr_calls = 1;
	s->comms[0].nr = s->comms[0].nr_calls = 0;
	stop(s, WAIT_NS);
	be_stopped(&s->processes[0]);
	assert_answer(
		s, HANG_MISSING,
		"slurm-12: rank 0 (python3 4711) has not entered all_reduce number 1. 3 ranks "
		"have waited in it for 30.1 s. In rank 0 (python3 4711), launching thread "
		"4711 is stopped by a signal or a debugger, in no call that Zernel follows; "
		"phase gpu_compute.");
}

/* Steps of a minute: 30 s are no hang. */
static void test_long_steps_are_no_hang(void **state)
{
	struct snapshot *s = make(813);

	hist_record(snapshot_add_hist(s, &s->processes[1].hists, HIST_STEP), 60 * NSEC_PER_SEC);
	keep_back(&s->comms[2], 1);
	stop(s, WAIT_NS);
	CLEANUP(hang_free_cleanup) struct hang *hang = ask(s, NULL);

	assert_int_equal(hang->comms[0].verdict, HANG_NONE);
	assert_true(hang->comms[0].limit_ns > 9 * 60 * NSEC_PER_SEC);
	snapshot_free(s);
}

static void test_collectives_that_are_far_apart_are_no_hang(void **state)
{
	struct snapshot *s = make(813);

	s->comms[1].calls[7].entered_ns -= 20 * NSEC_PER_SEC;
	keep_back(&s->comms[2], 1);
	stop(s, WAIT_NS);
	CLEANUP(hang_free_cleanup) struct hang *hang = ask(s, NULL);

	assert_int_equal(hang->comms[0].verdict, HANG_NONE);
	snapshot_free(s);
}

static void test_other_bytes(void **state)
{
	struct snapshot *s = make(813);

	for (u32 i = 0; i < 3; i++)
		s->comms[1].calls[i].bytes = 1 << 20;
	assert_answer(
		s, HANG_DISAGREE,
		"slurm-12: ranks disagree at number 811: rank 1 (python3 4712) entered "
		"all_reduce with 1.0 MiB (1048576 bytes), the other 3 ranks all_reduce with 4.0 "
		"MiB (4194304 bytes).");
}

/* One rank skipped a collective, and then the others wait for it. */
static void test_other_operation_of_a_rank_that_is_behind(void **state)
{
	struct snapshot *s = make(813);

	s->comms[3].calls[1].operation = OPERATION(BROADCAST);
	keep_back(&s->comms[3], 1);
	stop(s, WAIT_NS);
	assert_answer(
		s, HANG_DISAGREE,
		"slurm-12: ranks disagree at number 812: rank 3 (python3 4714) entered "
		"broadcast with 4.0 MiB (4194304 bytes), the other 3 ranks all_reduce with 4.0 "
		"MiB (4194304 bytes).");
}

static void test_two_against_two(void **state)
{
	struct snapshot *s = make(813);

	s->comms[2].calls[0].bytes = s->comms[3].calls[0].bytes = 8;
	assert_answer(
		s, HANG_DISAGREE,
		"slurm-12: ranks disagree at number 813: rank 2 (python3 4713), rank 3 (python3 "
		"4714) entered all_reduce with 8 B (8 bytes), rank 0 (python3 4711) all_reduce "
		"with 4.0 MiB (4194304 bytes). It is not known which one is wrong.");
}

/* At the oldest number, only two ranks are known. A later number shows which of them is wrong. */
static void test_ranks_that_forgot_the_oldest_numbers(void **state)
{
	struct snapshot *s = make(813);

	for (u32 i = 0; i < SEQUENCE_KEPT; i++)
		s->comms[0].calls[i].bytes = 1 << 20;
	s->comms[2].nr_calls = s->comms[3].nr_calls = SEQUENCE_KEPT - 2;
	assert_answer(
		s, HANG_DISAGREE,
		"slurm-12: ranks disagree at number 808: rank 0 (python3 4711) entered "
		"all_reduce with 1.0 MiB (1048576 bytes), the other 3 ranks all_reduce with 4.0 "
		"MiB (4194304 bytes).");
}

static void test_a_late_rank(void **state)
{
	struct snapshot *s = make(813);

	for (u32 i = 0; i < SEQUENCE_KEPT; i++)
		s->comms[2].calls[i].entered_ns += i == 5 ? 0 : 20 * NSEC_PER_MSEC;
	assert_answer(
		s, HANG_NONE,
		"slurm-12: no rank hangs: 4 of 4 ranks that are seen here entered all_reduce "
		"number 813, the last one 80.0 ms ago (a hang is 5.0 s). rank 2 (python3 4713) "
		"is late: it was last in 7 of 8 collectives, and the others waited 20.0 ms for "
		"it each time.");
}

/* A rank is not late if the last one changes, or if it is late by little. */
static void test_noise_is_not_late(void **state)
{
	struct snapshot *s = make(813);
	CLEANUP(hang_free_cleanup) struct hang *hang = NULL;

	for (u32 i = 0; i < SEQUENCE_KEPT; i++)
		s->comms[i % NR_RANKS].calls[i].entered_ns += 20 * NSEC_PER_MSEC;
	hang = ask(s, NULL);
	assert_int_equal(hang->comms[0].late.nr_numbers, SEQUENCE_KEPT);
	assert_int_equal(hang->comms[0].late.nr_last, 2);
	assert_false(hang->comms[0].late.is_late);
	snapshot_free(s);
	hang_free(hang);
	s = make(813);
	for (u32 i = 0; i < SEQUENCE_KEPT; i++)
		s->comms[1].calls[i].entered_ns += 500 * NSEC_PER_USEC;
	hang = ask(s, NULL);
	assert_int_equal(hang->comms[0].late.nr_last, SEQUENCE_KEPT);
	assert_int_equal(hang->comms[0].late.mean_ns, 500 * NSEC_PER_USEC);
	assert_false(hang->comms[0].late.is_late);
	snapshot_free(s);
}

/* The process of rank 3 is gone; the others wait. */
static void leave(struct snapshot *s)
{
	s->nr_processes--;
	s->nr_comms--;
	stop(s, WAIT_NS);
}

static void test_a_rank_that_ended(void **state)
{
	struct snapshot *s = make(813);

	leave(s);
	s->jobs[0].gone_ranks.nr = 2;
	/* An earlier process of a rank that is there has ended, too. */
	s->jobs[0].gone_ranks.ranks[0] = (struct snapshot_rank){ .is_known = 1, .rank = 1 };
	s->jobs[0].gone_ranks.ranks[1] = (struct snapshot_rank){ .is_known = 1, .rank = 3 };
	assert_answer(
		s, HANG_UNSEEN,
		"slurm-12: all 3 ranks that are seen here entered all_reduce number 813 and have "
		"waited for 30.1 s. Rank 3 has ended.");
}

static void test_a_rank_without_probes(void **state)
{
	CLEANUP(hang_free_cleanup) struct hang *hang = NULL;
	struct snapshot *s = make(813);

	s->nr_comms--;
	s->processes[3].nr_ranks = 0;
	s->processes[3].task.collective_mapped = 1;
	stop(s, WAIT_NS);
	hang = ask(s, NULL);
	assert_int_equal(hang->nr_unknown, 1);
	assert_ptr_equal(hang->unknown[0], &s->processes[3]);
	assert_answer(
		s, HANG_UNSEEN,
		"slurm-12: all 3 ranks that are seen here entered all_reduce number 813 and have "
		"waited for 30.1 s. 1 rank is not seen here: on another node, or without probes "
		"on the calls.");
}

static void test_all_ranks_wait(void **state)
{
	struct snapshot *s = make(813);

	stop(s, WAIT_NS);
	assert_answer(
		s, HANG_INCOMPLETE,
		"slurm-12: all 4 ranks entered all_reduce number 813 and have waited for 30.1 s. "
		"No rank is missing: look at the GPUs and the network.");
}

/* A server without requests: no rank waits in a call. */
static void test_idle_ranks_do_not_hang(void **state)
{
	struct snapshot *s = make(813);
	CLEANUP(hang_free_cleanup) struct hang *hang = NULL;

	stop(s, WAIT_NS);
	s->processes[3].launcher_call_since_ns = 0;
	hang = ask(s, NULL);
	assert_int_equal(hang->comms[0].verdict, HANG_NONE);
	snapshot_free(s);
}

/*
 * Ranks 0 and 1 are a pair. Rank 1 stops, so rank 0 waits for it in the pair, and ranks 2 and 3
 * wait in the world for both.
 */
static void test_two_communicators(void **state)
{
	CLEANUP(hang_free_cleanup) struct hang *hang = NULL;
	struct snapshot *s = make(813);

	keep_back(&s->comms[0], 1);
	keep_back(&s->comms[1], 1);
	add_comm(s, FIRST_PID, PAIR, 2, 0, 50, NOW_NS - PERIOD_NS);
	keep_back(add_comm(s, FIRST_PID + 1, PAIR, 2, 1, 50, NOW_NS - PERIOD_NS), 1);
	stop(s, WAIT_NS);
	be_stopped(&s->processes[1]);
	hang = ask(s, NULL);
	assert_int_equal(hang->nr_comms, 2);
	assert_int_equal(hang->comms[1].verdict, HANG_MISSING);
	assert_answer(
		s, HANG_MISSING,
		"slurm-12: rank 1 (python3 4712) has not entered all_reduce number 813. 2 ranks "
		"have waited in it for 30.1 s. In rank 1 (python3 4712), launching thread "
		"4712 is stopped by a signal or a debugger, in no call that Zernel follows; "
		"phase gpu_compute.");
}

/* The same, but rank 1 is not part of the world: rank 0 is missing there because it waits. */
static void test_a_wait_that_follows_from_another(void **state)
{
	CLEANUP(hang_free_cleanup) struct hang *hang = NULL;
	struct snapshot *s = make(813);

	keep_back(&s->comms[0], 1);
	s->comms[1].nr_ranks = 1;
	add_comm(s, FIRST_PID, PAIR, 2, 0, 50, NOW_NS - PERIOD_NS);
	keep_back(add_comm(s, FIRST_PID + 1, PAIR, 2, 1, 50, NOW_NS - PERIOD_NS), 1);
	stop(s, WAIT_NS);
	be_stopped(&s->processes[1]);
	hang = ask(s, NULL);
	assert_int_equal(hang->comms[0].verdict, HANG_FOLLOWS);
	assert_answer(
		s, HANG_MISSING,
		"slurm-12: rank 1 (python3 4712) has not entered all_reduce number 50. 1 rank "
		"has waited in it for 30.1 s. In rank 1 (python3 4712), launching thread "
		"4712 is stopped by a signal or a debugger, in no call that Zernel follows; "
		"phase gpu_compute.");
}

/* Rank 0 is first in the world, rank 1 is first in the pair. */
static void test_ranks_wait_for_each_other(void **state)
{
	struct snapshot *s = make_empty();

	for (u32 rank = 0; rank < 2; rank++) {
		add_rank(s, rank)->nr_ranks = 2;
		add_comm(s, FIRST_PID + rank, WORLD, 2, rank, 813, NOW_NS - PERIOD_NS);
		add_comm(s, FIRST_PID + rank, PAIR, 2, rank, 50, NOW_NS - PERIOD_NS);
	}
	keep_back(&s->comms[1], 1);
	keep_back(&s->comms[2], 1);
	stop(s, WAIT_NS);
	assert_answer(
		s, HANG_FOLLOWS,
		"slurm-12: ranks wait for each other in different communicators, so each "
		"entered its collectives in another order. In one of them, rank 1 (python3 "
		"4712) has not entered all_reduce number 813. 1 rank has waited in it for 30.1 "
		"s. That rank waits in another communicator. In rank 1 (python3 4712), launching "
		"thread 4712 sleeps, for 30.1 s in cudaStreamSynchronize; phase "
		"nccl_collective.");
}

/* Rank 2 is behind although its number is larger. */
static void test_numbers_that_wrapped(void **state)
{
	struct snapshot *s = make(2);

	keep_back(&s->comms[2], 4);
	assert_int_equal(s->comms[2].nr, ~0ULL - 1);
	stop(s, WAIT_NS);
	be_stopped(&s->processes[2]);
	assert_answer(
		s, HANG_MISSING,
		"slurm-12: rank 2 (python3 4713) has not entered all_reduce number "
		"18446744073709551615. 3 ranks have waited in it for 30.4 s. In rank 2 (python3 "
		"4713), launching thread 4713 is stopped by a signal or a debugger, in no "
		"call that Zernel follows; phase gpu_compute.");
}

static void test_jobs_are_not_mixed(void **state)
{
	struct snapshot *s = make(813);
	CLEANUP(hang_free_cleanup) struct hang *hang = NULL, *one = NULL;

	s->processes[2].job = s->processes[3].job =
		snapshot_add_job(s, "/slurm/job_13", "slurm-13");
	keep_back(&s->comms[2], 1);
	keep_back(&s->comms[3], 1);
	stop(s, WAIT_NS);
	hang = ask(s, NULL);
	assert_int_equal(hang->nr_comms, 2);
	assert_int_equal(hang_job(hang, 0).nr, 1);
	assert_int_equal(hang->comms[0].verdict, HANG_UNSEEN);
	one = ask(s, "slurm-13");
	assert_int_equal(one->nr_comms, 1);
	assert_int_equal(one->comms[0].members->process->pid, FIRST_PID + 2);
	snapshot_free(s);
}

static void test_a_pid_selects_its_job(void **state)
{
	struct snapshot *s = make(813);
	CLEANUP(hang_free_cleanup) struct hang *hang = ask(s, "4712"), *none = ask(s, "nobody");

	assert_int_equal(hang->nr_members, NR_RANKS);
	assert_int_equal(none->nr_members, 0);
	snapshot_free(s);
}

/* `stack` is that of rank 2, or NULL. */
static char *print_with(const struct snapshot *s, const struct lines_stack *stack, bool json,
			int expected)
{
	CLEANUP(hang_free_cleanup) struct hang *hang = ask(s, NULL);
	struct capture capture = capture_begin();

	for (u32 i = 0; i < hang->nr_members; i++)
		if (hang->members[i].process->rank == 2)
			hang->members[i].stack = stack;
	assert_int_equal(hang_print(hang, json, &(struct term){ .out = capture.out }), expected);
	return capture_end(&capture);
}

static char *print(const struct snapshot *s, bool json, int expected)
{
	return print_with(s, NULL, json, expected);
}

static void test_text(void **state)
{
	struct snapshot *s = make(813);
	CLEANUP_FREE char *text = NULL;

	keep_back(&s->comms[2], 1);
	stop(s, WAIT_NS);
	be_stopped(&s->processes[2]);
	s->nr_dropped[DROP_COMMS] = 5;
	text = print(s, false, 0);
	assert_string_equal(
		text,
		"slurm-12: rank 2 (python3 4713) has not entered all_reduce number 813. 3 ranks "
		"have "
		"waited in it for 30.1 s. In rank 2 (python3 4713), launching thread 4713 is "
		"stopped "
		"by a signal or a debugger, in no call that Zernel follows; phase gpu_compute.\n"
		"\n"
		"communicator 00000000000000aa, 4 of 4 ranks are seen here\n"
		"RANK   PID  ENTERED  OPERATION     BYTES     AGO  CALL      PHASE            "
		"LAUNCHER  IN\n"
		"   0  4711      813  all_reduce  4.0 MiB  30.1 s  returned  nccl_collective  "
		"sleeping  cudaStreamSynchronize\n"
		"   1  4712      813  all_reduce  4.0 MiB  30.1 s  returned  nccl_collective  "
		"sleeping  cudaStreamSynchronize\n"
		"   2  4713      812  all_reduce  4.0 MiB  30.2 s  returned  gpu_compute      "
		"stopped   \n"
		"   3  4714      813  all_reduce  4.0 MiB  30.1 s  returned  nccl_collective  "
		"sleeping  cudaStreamSynchronize\n"
		"A call that returned has queued its work. Whether the GPU has finished it is not "
		"known.\n"
		"5 communicators were dropped: there were too many\n");
	snapshot_free(s);
}

static const struct lines_frame frames[] = {
	{ "<module>", "/home/a/train.py", 120, LINES_PYTHON },
	{ "?", "", 0, LINES_UNKNOWN },
	{ "Batches.__next__", "/home/a/data\033.py", 31, LINES_PYTHON },
};

static void test_the_stack_of_a_missing_rank(void **state)
{
	struct lines_stack stack = { .tid = 4713, .nr_frames = 3, .frames = frames };
	struct snapshot *s = make(813);
	CLEANUP_FREE char *text = NULL, *cut = NULL, *unknown = NULL, *runs = NULL;

	/* It does not hang yet. */
	runs = print_with(s, &stack, false, 0);
	assert_null(strstr(runs, "Stack of"));
	keep_back(&s->comms[2], 1);
	stop(s, WAIT_NS);
	text = print_with(s, &stack, false, 0);
	assert_non_null(strstr(text, "Stack of process 4713, thread 4713, innermost call first:\n"
				     "  Batches.__next__() data?.py:31\n"
				     "  [unknown]\n"
				     "  <module> train.py:120\n"
				     "A call that returned"));
	stack.is_cut = true;
	cut = print_with(s, &stack, false, 0);
	assert_non_null(strstr(cut, "train.py:120\n  further calls are cut\n"));
	stack.frames = &frames[1];
	stack.nr_frames = 1;
	unknown = print_with(s, &stack, false, 0);
	assert_null(strstr(unknown, "innermost call first"));
	assert_non_null(strstr(unknown, "The stack of process 4713 cannot be read"));
	snapshot_free(s);
}

static void test_json_of_a_stack(void **state)
{
	const struct lines_stack stack = { .tid = 4713, .nr_frames = 3, .frames = frames };
	struct snapshot *s = make(813);
	CLEANUP_FREE char *text = NULL;

	keep_back(&s->comms[2], 1);
	stop(s, WAIT_NS);
	text = print_with(s, &stack, true, 0);
	assert_non_null(
		strstr(text, "\"stack\":[{\"function\":\"<module>\",\"file\":\"/home/a/train.py\","
			     "\"line\":120,\"kind\":\"python\"},{\"function\":\"?\",\"file\":\"\","
			     "\"line\":0,\"kind\":\"unknown\"}"));
	assert_non_null(strstr(text, "\"stack_is_cut\":false"));
	snapshot_free(s);
}

static void test_text_without_ranks(void **state)
{
	struct snapshot *s = make_empty();
	char *text = print(s, false, -ENOENT);

	assert_string_equal(text, "No process uses a GPU.\n");
	free(text);
	add_rank(s, 0)->nr_ranks = 1;
	text = print(s, false, -ENOENT);
	assert_string_equal(text, "No matching process or job has several ranks.\n");
	free(text);
	s->processes[0].nr_ranks = 2;
	text = print(s, false, -ENOENT);
	assert_non_null(strstr(text, "rank 0 (python3 4711): no ledger. It uses MPI, "));
	free(text);
	snapshot_free(s);
}

static void test_json(void **state)
{
	struct snapshot *s = make(813);
	CLEANUP_FREE char *text = NULL;
	yyjson_doc *doc;
	yyjson_val *job, *comm, *rank;

	keep_back(&s->comms[2], 1);
	s->comms[3].calls[0].returned_ns = 0;
	stop(s, WAIT_NS);
	be_stopped(&s->processes[2]);
	text = print(s, true, 0);
	doc = yyjson_read(text, strlen(text), 0);
	job = yyjson_arr_get(yyjson_obj_get(yyjson_doc_get_root(doc), "jobs"), 0);
	assert_string_equal(yyjson_get_str(yyjson_obj_get(job, "name")), "slurm-12");
	assert_string_equal(yyjson_get_str(yyjson_obj_get(job, "verdict")), "missing");
	comm = yyjson_arr_get(yyjson_obj_get(job, "communicators"), 0);
	assert_int_equal(yyjson_get_uint(yyjson_obj_get(comm, "number")), 813);
	assert_int_equal(yyjson_get_uint(yyjson_obj_get(comm, "waited_ns")), WAIT_NS + PERIOD_NS);
	assert_true(yyjson_get_bool(yyjson_obj_get(comm, "waited_is_exact")));
	assert_int_equal(yyjson_arr_size(yyjson_obj_get(comm, "ranks")), NR_RANKS);
	for (u32 i = 0; i < NR_RANKS; i++) {
		rank = yyjson_arr_get(yyjson_obj_get(comm, "ranks"), i);
		assert_int_equal(yyjson_get_bool(yyjson_obj_get(rank, "missing")), i == 2);
		assert_int_equal(yyjson_get_uint(yyjson_obj_get(rank, "entered")), 813 - (i == 2));
	}
	rank = yyjson_arr_get(yyjson_obj_get(comm, "ranks"), 2);
	assert_string_equal(
		yyjson_get_str(yyjson_obj_get(yyjson_obj_get(rank, "launcher"), "state")),
		"stopped");
	yyjson_doc_free(doc);
	snapshot_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_running_job),
		cmocka_unit_test(test_a_rank_that_is_a_little_behind),
		cmocka_unit_test(test_a_rank_that_does_not_arrive),
		cmocka_unit_test(test_a_rank_that_is_far_behind),
		cmocka_unit_test(test_two_ranks_that_do_not_arrive),
		cmocka_unit_test(test_a_rank_before_its_first_collective),
		cmocka_unit_test(test_long_steps_are_no_hang),
		cmocka_unit_test(test_collectives_that_are_far_apart_are_no_hang),
		cmocka_unit_test(test_other_bytes),
		cmocka_unit_test(test_other_operation_of_a_rank_that_is_behind),
		cmocka_unit_test(test_two_against_two),
		cmocka_unit_test(test_ranks_that_forgot_the_oldest_numbers),
		cmocka_unit_test(test_a_late_rank),
		cmocka_unit_test(test_noise_is_not_late),
		cmocka_unit_test(test_a_rank_that_ended),
		cmocka_unit_test(test_a_rank_without_probes),
		cmocka_unit_test(test_all_ranks_wait),
		cmocka_unit_test(test_idle_ranks_do_not_hang),
		cmocka_unit_test(test_two_communicators),
		cmocka_unit_test(test_a_wait_that_follows_from_another),
		cmocka_unit_test(test_ranks_wait_for_each_other),
		cmocka_unit_test(test_numbers_that_wrapped),
		cmocka_unit_test(test_jobs_are_not_mixed),
		cmocka_unit_test(test_a_pid_selects_its_job),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_without_ranks),
		cmocka_unit_test(test_the_stack_of_a_missing_rank),
		cmocka_unit_test(test_json_of_a_stack),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
