/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs the workloads on a virtual GPU and checks their truth. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "runs.h"
#include "truth/summary.h"

/* Paths of the built programs, because cmocka passes no arguments to tests. */
static struct {
	const char *train, *serve, *truth;
} programs;

static struct truth_dir truth_of(const struct place *place)
{
	struct truth_dir dir;

	assert_int_equal(truth_dir_read(place->truth, &dir), 0);
	assert_int_equal(dir.nr_unreadable, 0);
	return dir;
}

static u64 count(const struct truth_dir *dir, enum truth_kind kind)
{
	struct truth_event *events;
	u64 nr;

	assert_int_equal(truth_dir_collect(dir, kind, &events, &nr), 0);
	free(events);
	return nr;
}

/* Counts the threads of one role; the collective library also has helper threads. */
static u64 count_role(const struct truth_dir *dir, enum truth_role role)
{
	struct truth_event *events;
	u64 nr, nr_role = 0;

	assert_int_equal(truth_dir_collect(dir, TRUTH_THREAD, &events, &nr), 0);
	for (u64 i = 0; i < nr; i++)
		nr_role += events[i].rec.sub == role;
	free(events);
	return nr_role;
}

static void test_truth_of_training_is_consistent(void **state)
{
	const struct place *place = *state;
	struct truth_dir dir;
	struct truth_summary *ranks;
	u64 nr, nr_ranks = 0;

	assert_int_equal(RUN(place, (char *)programs.train, "--ranks", "2", "--loaders", "2",
			     "--steps", "30", "--launches", "4", "--kernel-us", "500",
			     "--allreduce-bytes", "65536", "--optimizer-us", "200",
			     "--checkpoint-every", "10", "--checkpoint-bytes", "100000", "--truth",
			     (char *)place->truth),
			 0);
	assert_true(output_number(place, "steps") == 30);
	assert_true(output_number(place, "step_p50_ms") >= 2);
	assert_true(output_number(place, "gpu_busy") > 0);
	assert_true(output_number(place, "gpu_busy") <= 1);
	assert_int_equal(RUN(place, (char *)programs.truth, "check", (char *)place->truth), 0);

	dir = truth_of(place);
	assert_int_equal(count(&dir, TRUTH_STEP), 2 * 30);
	assert_int_equal(count(&dir, TRUTH_CHECKPOINT), 3);
	assert_int_equal(count_role(&dir, TRUTH_ROLE_LAUNCHER), 2);
	assert_int_equal(count_role(&dir, TRUTH_ROLE_LOADER), 2 * 2);
	assert_int_equal(count(&dir, TRUTH_COLLECTIVE), 2 * 30);
	assert_int_equal(count(&dir, TRUTH_LAUNCH), 2 * 30 * (4 + 1 + 1));
	assert_int_equal(truth_summarise(&dir, &ranks, &nr), 0);
	for (u64 i = 0; i < nr; i++) {
		if (ranks[i].steps.nr == 0)
			continue;
		nr_ranks++;
		assert_true(ranks[i].busy_ns >= 30 * 4 * 500 * NSEC_PER_USEC);
		assert_true(ranks[i].phase_ns[PHASE_OPTIMIZER] >= 30 * 200 * NSEC_PER_USEC);
		assert_true(ranks[i].phase_ns[PHASE_COLLECTIVE] > 0);
		assert_true(ranks[i].phase_ns[PHASE_GPU_COMPUTE] > 0);
	}
	assert_int_equal(nr_ranks, 2);
	free(ranks);
	truth_dir_done(&dir);
	assert_int_equal(
		RUN(place, (char *)programs.truth, "summary", (char *)place->truth, "--json"), 0);
	assert_true(output_number(place, "processes") == 0); /* the key exists and is a list */
}

/* Median length of the spans of a phase; a busy machine makes some spans long. */
static double usual_ms(const struct truth_dir *dir, enum phase phase)
{
	struct truth_event *events;
	u64 nr, nr_spans = 0;
	u64 *spans_ns;
	double ms;

	assert_int_equal(truth_dir_collect(dir, TRUTH_PHASE, &events, &nr), 0);
	spans_ns = calloc(nr + 1, sizeof(*spans_ns));
	assert_non_null(spans_ns);
	for (u64 i = 0; i < nr; i++)
		if (events[i].rec.sub == phase)
			spans_ns[nr_spans++] = events[i].rec.end_ns - events[i].rec.start_ns;
	ms = truth_quantiles_of(spans_ns, nr_spans).p50_ms;
	free(spans_ns);
	free(events);
	return ms;
}

/* Slow loaders keep the launcher waiting, and the truth contains that wait. */
static void test_slow_loaders_show_as_data_loading(void **state)
{
	const struct place *place = *state;
	struct truth_dir dir;
	struct truth_summary *ranks;
	u64 nr;

	assert_int_equal(RUN(place, (char *)programs.train, "--loaders", "1", "--loader-kind",
			     "thread", "--load-cpu-us", "20000", "--steps", "25", "--launches", "1",
			     "--kernel-us", "100", "--sync", "block", "--load-io-bytes", "10000",
			     "--load-io-file", "/proc/self/exe", "--truth", (char *)place->truth),
			 0);
	assert_true(output_number(place, "step_mean_ms") >= 16);
	assert_int_equal(RUN(place, (char *)programs.truth, "check", (char *)place->truth), 0);
	dir = truth_of(place);
	assert_int_equal(truth_summarise(&dir, &ranks, &nr), 0);
	assert_int_equal(nr, 1);
	assert_true(ranks[0].phase_ns[PHASE_DATA_LOADING] > 0);
	for (int phase = 0; phase < PHASE_NR; phase++)
		if (phase != PHASE_DATA_LOADING)
			assert_true(usual_ms(&dir, PHASE_DATA_LOADING) > usual_ms(&dir, phase));
	free(ranks);
	truth_dir_done(&dir);
}

static void test_training_runs_for_the_given_seconds(void **state)
{
	const struct place *place = *state;

	assert_int_equal(RUN(place, (char *)programs.train, "--seconds", "0.2"), 0);
	assert_true(output_number(place, "seconds") >= 0.2);
	assert_true(output_number(place, "steps") >= 1);
}

static void test_truth_of_serving_is_consistent(void **state)
{
	const struct place *place = *state;
	struct truth_dir dir;

	assert_int_equal(RUN(place, (char *)programs.serve, "--rate", "200", "--requests", "50",
			     "--tokens", "3", "--launches", "5", "--tokenize-us", "500",
			     "--prefill-us", "1000", "--decode-us", "200", "--sync", "block",
			     "--truth", (char *)place->truth),
			 0);
	assert_true(output_number(place, "requests") == 50);
	assert_true(output_number(place, "ttft_p50_ms") >= 1.4); /* tokenize and prefill, -20 % */
	assert_true(output_number(place, "ttft_p99_ms") >= output_number(place, "ttft_p50_ms"));
	assert_true(output_number(place, "gpu_busy") > 0);
	assert_int_equal(RUN(place, (char *)programs.truth, "check", (char *)place->truth), 0);
	dir = truth_of(place);
	assert_int_equal(count(&dir, TRUTH_REQUEST), 50);
	assert_int_equal(count_role(&dir, TRUTH_ROLE_LAUNCHER), 1);
	assert_int_equal(count_role(&dir, TRUTH_ROLE_LOADER), 2);
	assert_int_equal(count_role(&dir, TRUTH_ROLE_OTHER), 1);
	truth_dir_done(&dir);
}

/* A batch of one request: every token but the first is a round of its own. */
static void test_serving_logs_each_further_token(void **state)
{
	const struct place *place = *state;
	struct truth_dir dir;

	assert_int_equal(RUN(place, (char *)programs.serve, "--rate", "200", "--requests", "10",
			     "--tokens", "5", "--batch", "1", "--prefill-us", "1000", "--decode-us",
			     "200", "--sync", "block", "--truth", (char *)place->truth),
			 0);
	assert_int_equal(RUN(place, (char *)programs.truth, "check", (char *)place->truth), 0);
	dir = truth_of(place);
	assert_int_equal(count(&dir, TRUTH_TOKEN), 10 * (5 - 1));
	truth_dir_done(&dir);
}

/* The gaps between arrivals of a run, by request. */
static void arrivals(const struct place *place, const char *seed, u64 *ret_ns, u64 nr_wanted)
{
	struct truth_event *events;
	struct truth_dir dir;
	u64 nr, first = ~0ULL;

	assert_int_equal(RUN(place, (char *)programs.serve, "--rate", "1000", "--requests", "20",
			     "--tokens", "1", "--seed", (char *)seed, "--truth",
			     (char *)place->truth),
			 0);
	dir = truth_of(place);
	assert_int_equal(truth_dir_collect(&dir, TRUTH_REQUEST, &events, &nr), 0);
	assert_int_equal(nr, nr_wanted);
	for (u64 i = 0; i < nr; i++)
		if (events[i].rec.a == 0)
			first = events[i].rec.start_ns;
	for (u64 i = 0; i < nr; i++)
		ret_ns[events[i].rec.a] = events[i].rec.start_ns - first;
	free(events);
	truth_dir_done(&dir);
	remove_all(place->truth);
}

static void test_arrivals_depend_on_the_seed_only(void **state)
{
	u64 one[20], again[20], other[20];

	arrivals(*state, "7", one, 20);
	arrivals(*state, "7", again, 20);
	arrivals(*state, "8", other, 20);
	assert_memory_equal(one, again, sizeof(one));
	assert_memory_not_equal(one, other, sizeof(one));
}

/* Moves the end of one record by a nanosecond, in the first log with a record of this kind. */
static void spoil(const struct place *place, enum truth_kind kind)
{
	struct truth_dir dir = truth_of(place);
	struct truth_record rec;
	char path[512];
	FILE *stream = NULL;

	for (u64 i = 0; i < dir.nr_files && !stream; i++) {
		u64 nr = 0;

		for (u64 j = 0; j < dir.files[i].nr_records; j++)
			nr += dir.files[i].records[j].kind == kind;
		if (nr == 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", place->truth, dir.names[i]);
		stream = fopen(path, "r+");
	}
	assert_non_null(stream);
	fseek(stream, sizeof(struct truth_header), SEEK_SET);
	do {
		assert_int_equal(fread(&rec, sizeof(rec), 1, stream), 1);
	} while (rec.kind != kind);
	rec.end_ns++;
	rec.c++;
	fseek(stream, -(long)sizeof(rec), SEEK_CUR);
	fwrite(&rec, sizeof(rec), 1, stream);
	fclose(stream);
	truth_dir_done(&dir);
}

static void test_inconsistent_truth_is_detected(void **state)
{
	static const enum truth_kind kinds[] = { TRUTH_PHASE, TRUTH_BUSY, TRUTH_THREAD };
	const struct place *place = *state;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_int_equal(RUN(place, (char *)programs.train, "--steps", "3", "--truth",
				     (char *)place->truth),
				 0);
		assert_int_equal(RUN(place, (char *)programs.truth, "check", (char *)place->truth),
				 0);
		spoil(place, kinds[i]);
		assert_int_equal(RUN(place, (char *)programs.truth, "check", (char *)place->truth),
				 1);
		remove_all(place->truth);
	}
}

/* Counts live processes of a run; the log of each process has its pid in the name. */
static u64 nr_alive(const struct place *place)
{
	DIR *dir = opendir(place->truth);
	struct dirent *entry;
	u64 nr = 0;

	while (dir && (entry = readdir(dir))) {
		const char *dot = strchr(entry->d_name, '.');
		char path[64], state_line[512];
		FILE *stream;

		if (!dot || atoi(dot + 1) == 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/stat", atoi(dot + 1));
		stream = fopen(path, "r");
		if (!stream)
			continue;
		/* A zombie counts as dead; its new parent may be slow to reap it. */
		if (fgets(state_line, sizeof(state_line), stream) &&
		    strrchr(state_line, ')')[2] != 'Z')
			nr++;
		fclose(stream);
	}
	if (dir)
		closedir(dir);
	return nr;
}

static void test_no_process_outlives_a_killed_job(void **state)
{
	const struct place *place = *state;
	pid_t pid = START(place, (char *)programs.train, "--ranks", "2", "--loaders", "2",
			  "--seconds", "600", "--sync", "block", "--truth", (char *)place->truth);

	/* Two ranks and four loaders. The virtual GPU writes a second log for each rank. */
	for (int i = 0; i < HANG_SECONDS * 100 && nr_alive(place) < 6; i++)
		usleep(10000);
	assert_true(nr_alive(place) >= 6);
	kill(pid, SIGKILL);
	assert_int_equal(run_finish(pid), 128 + SIGKILL);
	for (int i = 0; i < HANG_SECONDS * 100 && nr_alive(place) > 0; i++)
		usleep(10000);
	assert_int_equal(nr_alive(place), 0);
}

static pid_t start_joined(const struct place *place, const char *rank)
{
	char file[96];

	snprintf(file, sizeof(file), "%s/joined", place->dir);
	setenv("SLURM_PROCID", rank, 1);
	return START(place, (char *)programs.train, "--join", file, "--ranks", "2", "--loaders",
		     "0", "--steps", "10", "--launches", "1", "--allreduce-bytes", "4096",
		     "--truth", (char *)place->truth);
}

/* As Slurm starts the ranks: each is a process of its own. */
static void test_ranks_that_were_started_separately_join(void **state)
{
	const struct place *place = *state;
	pid_t ranks[] = { start_joined(place, "0"), start_joined(place, "1") };
	struct truth_dir dir;

	assert_int_equal(run_finish(ranks[0]), 0);
	assert_int_equal(run_finish(ranks[1]), 0);
	assert_true(output_number(place, "steps") == 10);
	assert_int_equal(RUN(place, (char *)programs.truth, "check", (char *)place->truth), 0);
	dir = truth_of(place);
	assert_int_equal(count(&dir, TRUTH_STEP), 2 * 10);
	assert_int_equal(count(&dir, TRUTH_COLLECTIVE), 2 * 10);
	truth_dir_done(&dir);
	assert_int_equal(run_finish(start_joined(place, "2")), 1);
}

static void test_job_without_its_data_fails(void **state)
{
	const struct place *place = *state;

	assert_int_equal(RUN(place, (char *)programs.train, "--ranks", "2", "--load-io-bytes",
			     "4096", "--load-io-file", "/does/not/exist"),
			 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		PLACED(test_truth_of_training_is_consistent),
		PLACED(test_slow_loaders_show_as_data_loading),
		PLACED(test_training_runs_for_the_given_seconds),
		PLACED(test_truth_of_serving_is_consistent),
		PLACED(test_serving_logs_each_further_token),
		PLACED(test_arrivals_depend_on_the_seed_only),
		PLACED(test_inconsistent_truth_is_detected),
		PLACED(test_no_process_outlives_a_killed_job),
		PLACED(test_ranks_that_were_started_separately_join),
		PLACED(test_job_without_its_data_fails),
	};

	if (argc != 4)
		return 2;
	programs.train = argv[1];
	programs.serve = argv[2];
	programs.truth = argv[3];
	return cmocka_run_group_tests_name("workloads", tests, NULL, NULL);
}
