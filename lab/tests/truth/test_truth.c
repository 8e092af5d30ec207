/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests that records of the truth log are read back as written, also when the writer fails. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/macros.h"
#include "truth/check.h"
#include "truth/summary.h"

struct place {
	char dir[64];
	char path[160]; /* path of the log of this process */
};

static int place_make(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	strcpy(place->dir, "/tmp/truth-test-XXXXXX");
	if (!mkdtemp(place->dir))
		return -1;
	snprintf(place->path, sizeof(place->path), "%s/t.%d.truth", place->dir, getpid());
	*state = place;
	return 0;
}

static int place_remove(void **state)
{
	struct place *place = *state;
	DIR *dir = opendir(place->dir);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(place->dir);
	free(place);
	return 0;
}

static struct truth *log_open(const struct place *place, u32 capacity)
{
	struct truth *truth = NULL;

	assert_int_equal(truth_open(place->dir, "t", capacity, &truth), 0);
	return truth;
}

/* Returns the number of faults that `truth check` finds in the directory. */
static s64 faults_in(const struct place *place)
{
	struct truth_dir dir;
	s64 faults;

	assert_int_equal(truth_dir_read(place->dir, &dir), 0);
	faults = truth_check(&dir);
	truth_dir_done(&dir);
	return faults;
}

static void test_round_trip(void **state)
{
	const struct place *place = *state;
	struct truth *truth = log_open(place, 100);
	struct truth_file file;

	truth_log(truth, TRUTH_BUSY, TRUTH_WORK_COPY, 300, 400, 1, 2, 3);
	truth_log(truth, TRUTH_STEP, 0, 100, 200, 7, 1, 0);
	truth_log(NULL, TRUTH_STEP, 0, 1, 2, 3, 4, 5);
	truth = truth_free(truth);
	assert_null(truth_free(truth));

	assert_int_equal(truth_read(place->path, &file), 0);
	assert_int_equal(file.header.pid, getpid());
	assert_string_equal(file.header.writer, "t");
	assert_int_equal(file.nr_records, 2);
	assert_false(file.cut);
	assert_int_equal(file.records[0].kind, TRUTH_STEP); /* sorted by start */
	assert_int_equal(file.records[1].kind, TRUTH_BUSY);
	assert_int_equal(file.records[1].sub, TRUTH_WORK_COPY);
	assert_int_equal(file.records[1].end_ns, 400);
	assert_int_equal(file.records[1].a, 1);
	assert_int_equal(file.records[1].b, 2);
	assert_int_equal(file.records[1].c, 3);
	assert_int_equal(file.records[1].tid, gettid());
	truth_file_done(&file);
}

static void test_overflow_is_counted(void **state)
{
	const struct place *place = *state;
	struct truth *truth = log_open(place, 10);
	struct truth_file file;

	for (u64 i = 0; i < 25; i++)
		truth_log(truth, TRUTH_ALLOC, 0, i, i + 1, i, 0, 0);
	truth_free(truth);
	assert_int_equal(truth_read(place->path, &file), 0);
	assert_int_equal(file.nr_records, 10);
	assert_int_equal(file.header.nr_dropped, 15);
	truth_file_done(&file);
	assert_int_equal(faults_in(place), 1);
}

#define THREADS 4
#define EACH	200000

struct writers {
	struct truth *truth;
	pthread_barrier_t start; /* starts all threads at the same time */
};

static void *write_many(void *arg)
{
	struct writers *writers = arg;

	pthread_barrier_wait(&writers->start);
	for (u64 i = 0; i < EACH; i++)
		truth_log(writers->truth, TRUTH_ALLOC, 0, i, i + 1, i, ~i, i * 3);
	return NULL;
}

static void assert_whole(const struct truth_record *rec)
{
	assert_int_equal(rec->kind, TRUTH_ALLOC);
	assert_int_equal(rec->start_ns, rec->a);
	assert_int_equal(rec->end_ns, rec->a + 1);
	assert_int_equal(rec->b, ~rec->a);
	assert_int_equal(rec->c, rec->a * 3);
}

static void test_threads_share_a_log(void **state)
{
	const struct place *place = *state;
	struct writers writers = { .truth = log_open(place, THREADS * EACH) };
	pthread_t threads[THREADS];
	struct truth_file file;

	pthread_barrier_init(&writers.start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_many, &writers), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&writers.start);
	truth_free(writers.truth);
	assert_int_equal(truth_read(place->path, &file), 0);
	assert_int_equal(file.nr_records, THREADS * EACH);
	assert_int_equal(file.header.nr_dropped, 0);
	for (u64 i = 0; i < file.nr_records; i++) {
		assert_whole(&file.records[i]);
		assert_int_equal(file.records[i].a, i / THREADS);
	}
	truth_file_done(&file);
}

static void test_kill_leaves_complete_records(void **state)
{
	struct place *place = *state;
	struct truth_file file;
	struct stat st;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct truth *truth;

		if (truth_open(place->dir, "t", 8 << 20, &truth) == 0)
			for (u64 i = 0;; i++)
				truth_log(truth, TRUTH_ALLOC, 0, i, i + 1, i, ~i, i * 3);
		_exit(1);
	}
	snprintf(place->path, sizeof(place->path), "%s/t.%d.truth", place->dir, pid);
	/* Kill it while it writes, long before the log is full. */
	while (stat(place->path, &st) < 0 || st.st_blocks < 256)
		usleep(500);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(truth_read(place->path, &file), 0);
	assert_true(file.nr_records > 0);
	for (u64 i = 0; i < file.nr_records; i++) {
		assert_whole(&file.records[i]);
		assert_int_equal(file.records[i].a, i);
	}
	truth_file_done(&file);
}

static void test_unpublished_slot_is_skipped(void **state)
{
	const struct place *place = *state;
	struct truth *truth = log_open(place, 3000);
	off_t kind_at = sizeof(struct truth_header) + 1500 * sizeof(struct truth_record) +
			offsetof(struct truth_record, kind);
	struct truth_file file;
	const u16 none = TRUTH_NONE;
	FILE *stream;

	for (u64 i = 0; i < 3000; i++)
		truth_log(truth, TRUTH_ALLOC, 0, i, i + 1, i, 0, 0);
	truth_free(truth);
	stream = fopen(place->path, "r+");
	fseek(stream, kind_at, SEEK_SET);
	fwrite(&none, sizeof(none), 1, stream);
	fclose(stream);
	assert_int_equal(truth_read(place->path, &file), 0);
	assert_int_equal(file.nr_records, 2999);
	assert_int_equal(file.records[1500].a, 1501);
	truth_file_done(&file);
}

static void test_truncated_file_is_read_up_to_its_end(void **state)
{
	const struct place *place = *state;
	struct truth *truth = log_open(place, 100);
	struct truth_file file;

	for (u64 i = 0; i < 100; i++)
		truth_log(truth, TRUTH_ALLOC, 0, i, i + 1, i, ~i, i * 3);
	truth_free(truth);
	assert_int_equal(faults_in(place), 0);
	/* In the middle of the 42nd record. */
	assert_int_equal(truncate(place->path, sizeof(struct truth_header) +
						       41 * sizeof(struct truth_record) + 17),
			 0);
	assert_int_equal(truth_read(place->path, &file), 0);
	assert_int_equal(file.nr_records, 41);
	assert_true(file.cut);
	for (u64 i = 0; i < file.nr_records; i++)
		assert_whole(&file.records[i]);
	truth_file_done(&file);
	assert_int_equal(faults_in(place), 1);
}

static void test_invalid_file_is_rejected(void **state)
{
	const struct place *place = *state;
	struct truth_file file = { .nr_records = 77 };
	FILE *stream;

	assert_int_equal(truth_read(place->path, &file), -ENOENT);
	stream = fopen(place->path, "w");
	fputs("this is something else altogether, and longer than a header would have been",
	      stream);
	fclose(stream);
	assert_int_equal(truth_read(place->path, &file), -EBADMSG);
	assert_int_equal(truncate(place->path, 10), 0);
	assert_int_equal(truth_read(place->path, &file), -EBADMSG);
	assert_int_equal(file.nr_records, 77); /* untouched on failure */
	assert_int_equal(faults_in(place), 2); /* an unreadable log, and no other log found */
}

static void test_forked_child_does_not_write_to_the_parents_log(void **state)
{
	const struct place *place = *state;
	struct truth *truth = log_open(place, 10);
	struct truth_file file;
	pid_t pid;

	truth_log(truth, TRUTH_ALLOC, 0, 1, 2, 3, 0, 0);
	pid = fork();
	if (pid == 0) {
		/* Write two records, because the parent's next record would overwrite the first. */
		truth_log(truth, TRUTH_STEP, 0, 4, 5, 6, 0, 0);
		truth_log(truth, TRUTH_STEP, 0, 5, 6, 7, 0, 0);
		truth_free(truth);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	truth_log(truth, TRUTH_ALLOC, 0, 7, 8, 9, 0, 0);
	truth_free(truth);
	assert_int_equal(truth_read(place->path, &file), 0);
	assert_int_equal(file.nr_records, 2);
	assert_int_equal(file.records[0].kind, TRUTH_ALLOC);
	assert_int_equal(file.records[1].a, 9);
	truth_file_done(&file);
}

/* A consistent run, in which one number may be wrong. */
struct run {
	u64 life_end, phase2_start, phase2_end;
	u64 busy_seq, busy_device, busy_start, step2, did_ns;
	s64 faults;
};

static void test_check_finds_each_fault(void **state)
{
	static const struct run runs[] = {
		{ 300, 200, 300, 5, 0, 110, 1, 30, 0 }, /* consistent */
		{ 300, 201, 300, 5, 0, 110, 1, 30, 1 }, /* a gap */
		{ 300, 199, 300, 5, 0, 110, 1, 30, 1 }, /* an overlap */
		{ 301, 200, 300, 5, 0, 110, 1, 30, 1 }, /* no phase at the end */
		{ 300, 200, 150, 5, 0, 110, 1, 30,
		  2 }, /* ends before its start, and no phase at the end */
		{ 300, 200, 300, 6, 0, 110, 1, 30, 2 }, /* neither launch nor work has a partner */
		{ 300, 200, 300, 5, 1, 110, 1, 30, 2 }, /* the same, by device */
		{ 300, 200, 300, 5, 0, 90, 1, 30, 1 },	/* busy before the launch */
		{ 300, 200, 300, 5, 0, 110, 2, 30, 1 }, /* a step is missing */
		{ 300, 200, 300, 5, 0, 110, 1, 31,
		  2 }, /* times of launcher and loader exceed their span */
	};
	const struct place *place = *state;

	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		const struct run *run = &runs[i];
		struct truth *truth = log_open(place, 100);

		truth_log(truth, TRUTH_PHASE, PHASE_UNKNOWN, 50, 200, 0, 0, 0);
		truth_log(truth, TRUTH_PHASE, PHASE_GPU_COMPUTE, run->phase2_start, run->phase2_end,
			  0, 0, 0);
		truth_log(truth, TRUTH_LAUNCH, 0, 100, 105, 0, 9, 5);
		truth_log(truth, TRUTH_BUSY, 0, run->busy_start, 120, run->busy_device, 9,
			  run->busy_seq);
		truth_log(truth, TRUTH_IDLE, PHASE_UNKNOWN, 50, 100, run->did_ns, 20, 0);
		truth_log(truth, TRUTH_LOAD, TRUTH_LOAD_CPU, 50, 100, ~0ULL, 20, run->did_ns);
		truth_log(truth, TRUTH_STEP, 0, 60, 70, 0, 0, 0);
		truth_log(truth, TRUTH_STEP, 0, 70, 80, run->step2, 0, 0);
		truth_log(truth, TRUTH_THREAD, TRUTH_ROLE_LAUNCHER, 50, run->life_end, 0, 0, 0);
		truth_free(truth);
		assert_int_equal(faults_in(place), run->faults);
	}
}

/* A launch of a graph is busy several times; a blocked span is a part of its launch. */
static void test_check_of_graphs_and_full_queues(void **state)
{
	static const struct {
		u16 work;
		u64 second_seq, blocked_start, blocked_end, blocked_seq;
		s64 faults;
	} runs[] = {
		{ TRUTH_WORK_GRAPH, 5, 101, 104, 5, 0 },  /* right */
		{ TRUTH_WORK_KERNEL, 5, 101, 104, 5, 2 }, /* a kernel is busy once, with itself */
		{ TRUTH_WORK_GRAPH, 6, 101, 104, 5, 1 },  /* the second work has no launch */
		{ TRUTH_WORK_GRAPH, 5, 99, 104, 5, 1 },	  /* blocked before the launch */
		{ TRUTH_WORK_GRAPH, 5, 101, 106, 5, 1 },  /* blocked after it */
		{ TRUTH_WORK_GRAPH, 5, 101, 104, 4, 1 },  /* blocked without a launch */
	};
	const struct place *place = *state;

	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		struct truth *truth = log_open(place, 100);

		truth_log(truth, TRUTH_LAUNCH, runs[i].work, 100, 105, 0, 9, 5);
		truth_log(truth, TRUTH_BLOCKED, runs[i].work, runs[i].blocked_start,
			  runs[i].blocked_end, 0, 9, runs[i].blocked_seq);
		truth_log(truth, TRUTH_BUSY, TRUTH_WORK_COPY, 110, 120, 0, 9, 5);
		truth_log(truth, TRUTH_BUSY, TRUTH_WORK_COLLECTIVE, 115, 130, 0, 9,
			  runs[i].second_seq);
		truth_free(truth);
		assert_int_equal(faults_in(place), runs[i].faults);
	}
}

static void test_check_of_activities(void **state)
{
	static const struct {
		u64 start, end, cpu;
		s64 faults;
	} runs[] = {
		{ 200, 300, 60, 0 }, /* right */
		{ 201, 300, 59, 1 }, /* a gap */
		{ 199, 300, 60, 1 }, /* an overlap */
		{ 200, 299, 59, 1 }, /* the end of the thread is in no span */
		{ 200, 300, 61, 1 }, /* CPU time and delay exceed the span */
	};
	const struct place *place = *state;

	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		struct truth *truth = log_open(place, 100);

		truth_log(truth, TRUTH_DID, TRUTH_DID_COMPUTE, 50, 200, 150, 0, 0);
		truth_log(truth, TRUTH_DID, TRUTH_DID_DATA, runs[i].start, runs[i].end, runs[i].cpu,
			  40, 0);
		truth_log(truth, TRUTH_THREAD, TRUTH_ROLE_LAUNCHER, 50, 300, 0, 0, 0);
		truth_free(truth);
		assert_int_equal(faults_in(place), runs[i].faults);
	}
}

/* The roles of a thread cover its life, or it has one role; a wait is ended by a known thread. */
static void test_check_of_roles_and_waits(void **state)
{
	static const struct {
		u64 start, end;
		bool known;
		s64 faults;
	} runs[] = {
		{ 200, 300, true, 0 },	/* right */
		{ 0, 0, true, 0 },	/* right: one role for its life */
		{ 201, 300, true, 1 },	/* a gap */
		{ 199, 300, true, 1 },	/* an overlap */
		{ 200, 299, true, 1 },	/* the end of the thread is in no span */
		{ 200, 300, false, 1 }, /* ended by a thread that is in no log */
	};
	const struct place *place = *state;

	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		struct truth *truth = log_open(place, 100);

		if (runs[i].end) {
			truth_log(truth, TRUTH_ROLE, TRUTH_ROLE_OTHER, 50, 200, 0, 0, 0);
			truth_log(truth, TRUTH_ROLE, TRUTH_ROLE_FEEDER_PATH, runs[i].start,
				  runs[i].end, 0, 0, 0);
		}
		truth_log(truth, TRUTH_WAIT, 0, 60, 70, (u64)(u32)gettid() + !runs[i].known, 0, 0);
		truth_log(truth, TRUTH_THREAD, TRUTH_ROLE_LAUNCHER, 50, 300, 0, 0, 0);
		truth_free(truth);
		assert_int_equal(faults_in(place), runs[i].faults);
	}
}

static void test_quantiles(void **state)
{
	struct truth_quantiles q;
	u64 values[100], one = 3 * NSEC_PER_MSEC;

	for (u64 i = 0; i < 100; i++)
		values[i] = (100 - i) * NSEC_PER_MSEC;
	q = truth_quantiles_of(values, 100);
	assert_int_equal(q.nr, 100);
	assert_true(q.mean_ms == 50.5);
	assert_true(q.p50_ms == 51);
	assert_true(q.p99_ms == 100);
	q = truth_quantiles_of(&one, 1);
	assert_true(q.p50_ms == 3 && q.p99_ms == 3 && q.mean_ms == 3);
	q = truth_quantiles_of(NULL, 0);
	assert_true(q.nr == 0 && q.mean_ms == 0 && q.p99_ms == 0);
}

static void test_summary(void **state)
{
	const struct place *place = *state;
	struct truth *truth = log_open(place, 100);
	struct truth_summary summary;
	struct truth_dir dir;

	truth_log(truth, TRUTH_STEP, 0, 1000, 2000, 0, 0, 0);
	truth_log(truth, TRUTH_STEP, 0, 2000, 3000, 1, 0, 0);
	truth_log(truth, TRUTH_BUSY, 0, 500, 1100, 0, 0, 0);  /* 100 in the window */
	truth_log(truth, TRUTH_BUSY, 0, 1500, 1700, 0, 0, 1); /* 200 */
	truth_log(truth, TRUTH_BUSY, 0, 1600, 1800, 0, 1, 2); /* 100 more */
	truth_log(truth, TRUTH_BUSY, 0, 2900, 3500, 0, 0, 3); /* 100 */
	truth_log(truth, TRUTH_PHASE, PHASE_OPTIMIZER, 900, 1000, 0, 0, 0);
	truth_log(truth, TRUTH_PHASE, PHASE_OPTIMIZER, 1000, 1030, 0, 0, 0);
	truth_free(truth);
	assert_int_equal(truth_dir_read(place->dir, &dir), 0);
	assert_int_equal(truth_summarise_pid(&dir, (u32)getpid() + 1, &summary), -ENOENT);
	assert_int_equal(truth_summarise_pid(&dir, (u32)getpid(), &summary), 0);
	truth_dir_done(&dir);
	assert_int_equal(summary.steps.nr, 2);
	assert_int_equal(summary.ttft.nr, 0);
	assert_int_equal(summary.window_ns, 2000);
	assert_int_equal(summary.busy_ns, 500);
	assert_int_equal(summary.phase_ns[PHASE_OPTIMIZER], 130);
	assert_int_equal(summary.phase_ns[PHASE_UNKNOWN], 0);
}

#define PLACED(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACED(test_round_trip),
		PLACED(test_overflow_is_counted),
		PLACED(test_threads_share_a_log),
		PLACED(test_kill_leaves_complete_records),
		PLACED(test_unpublished_slot_is_skipped),
		PLACED(test_truncated_file_is_read_up_to_its_end),
		PLACED(test_invalid_file_is_rejected),
		PLACED(test_forked_child_does_not_write_to_the_parents_log),
		PLACED(test_check_finds_each_fault),
		PLACED(test_check_of_graphs_and_full_queues),
		PLACED(test_check_of_activities),
		PLACED(test_check_of_roles_and_waits),
		PLACED(test_summary),
		cmocka_unit_test(test_quantiles),
	};

	return cmocka_run_group_tests_name("truth", tests, NULL, NULL);
}
