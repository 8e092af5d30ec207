/* SPDX-License-Identifier: GPL-2.0-only */
/* The workloads, run for real on a virtual GPU of their own, judged by their truth. */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "truth/summary.h"

#define HANG_SECONDS 120

/* Where meson put the programs; cmocka hands no arguments to tests. */
static struct {
	const char *train, *serve, *noise, *truth;
} programs;

struct place {
	char dir[64];
	char truth[80];
	char output[80];
};

static int place_make(void **state)
{
	struct place *place = calloc(1, sizeof(*place));
	char shm[80];

	strcpy(place->dir, "/tmp/lab-test-XXXXXX");
	if (!mkdtemp(place->dir))
		return -1;
	snprintf(place->truth, sizeof(place->truth), "%s/truth", place->dir);
	snprintf(place->output, sizeof(place->output), "%s/output", place->dir);
	snprintf(shm, sizeof(shm), "%s/vgpu", place->dir);
	setenv("VGPU_SHM", shm, 1);
	setenv("VGPU_DEVICES", "2", 1);
	*state = place;
	return 0;
}

static void remove_all(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

static int place_remove(void **state)
{
	struct place *place = *state;

	remove_all(place->truth);
	remove_all(place->dir);
	free(place);
	return 0;
}

/* Arguments up to NULL. */
static pid_t start(const struct place *place, char *const argv[])
{
	pid_t parent = getpid();
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		int fd = open(place->output, O_CREAT | O_TRUNC | O_WRONLY, 0600);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || getppid() != parent)
			_exit(126);
		execv(argv[0], argv);
		_exit(127);
	}
	return pid;
}

/* A program that hangs is killed, so that its test fails and the others still run. */
static int finish(pid_t pid)
{
	int status;
	pid_t ended = 0;

	for (int i = 0; i < HANG_SECONDS * 200 && ended == 0; i++) {
		ended = waitpid(pid, &status, WNOHANG);
		if (ended == 0)
			usleep(5000);
	}
	if (ended == 0) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		fail_msg("still running after %d s", HANG_SECONDS);
	}
	assert_int_equal(ended, pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#define START(place, ...) start(place, (char *const[]){ __VA_ARGS__, NULL })
#define RUN(place, ...)	  finish(START(place, __VA_ARGS__))

/* A number from the JSON a program printed. */
static double output_number(const struct place *place, const char *key)
{
	char text[8192] = "", pattern[64];
	FILE *stream = fopen(place->output, "r");
	const char *at;

	assert_non_null(stream);
	assert_true(fread(text, 1, sizeof(text) - 1, stream) > 0);
	fclose(stream);
	snprintf(pattern, sizeof(pattern), "\"%s\":", key);
	at = strstr(text, pattern);
	if (!at)
		fail_msg("no %s in %s", key, text);
	return strtod(at + strlen(pattern), NULL);
}

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

/* Threads of one role; the collective library has helpers of its own. */
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

static void test_training_adds_up(void **state)
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
	assert_true(output_number(place, "processes") == 0); /* it is there, and a list */
}

/* The length of a usual span of a phase; a machine that stands still makes some long. */
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

/* Slow loaders keep the launcher waiting, and that is what the truth says. */
static void test_starved_training(void **state)
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

static void test_training_for_a_time(void **state)
{
	const struct place *place = *state;

	assert_int_equal(RUN(place, (char *)programs.train, "--seconds", "0.2"), 0);
	assert_true(output_number(place, "seconds") >= 0.2);
	assert_true(output_number(place, "steps") >= 1);
}

static void test_serving_adds_up(void **state)
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

static void test_a_seed_decides_arrivals(void **state)
{
	u64 one[20], again[20], other[20];

	arrivals(*state, "7", one, 20);
	arrivals(*state, "7", again, 20);
	arrivals(*state, "8", other, 20);
	assert_memory_equal(one, again, sizeof(one));
	assert_memory_not_equal(one, other, sizeof(one));
}

/* Moves the end of one record by a nanosecond, in the first log that has the kind. */
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

static void test_spoilt_truth_is_found(void **state)
{
	static const enum truth_kind kinds[] = { TRUTH_PHASE, TRUTH_BUSY, TRUTH_THREAD };
	const struct place *place = *state;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
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

/* Every process of a run has a log with its pid in the name. */
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
		/* A zombie whose new parent is slow to reap is dead enough. */
		if (fgets(state_line, sizeof(state_line), stream) &&
		    strrchr(state_line, ')')[2] != 'Z')
			nr++;
		fclose(stream);
	}
	if (dir)
		closedir(dir);
	return nr;
}

static void test_nothing_outlives_a_killed_job(void **state)
{
	const struct place *place = *state;
	pid_t pid = START(place, (char *)programs.train, "--ranks", "2", "--loaders", "2",
			  "--seconds", "600", "--sync", "block", "--truth", (char *)place->truth);

	/* Two ranks and four loaders; the virtual GPU's logs name the ranks again. */
	for (int i = 0; i < HANG_SECONDS * 100 && nr_alive(place) < 6; i++)
		usleep(10000);
	assert_true(nr_alive(place) >= 6);
	kill(pid, SIGKILL);
	assert_int_equal(finish(pid), 128 + SIGKILL);
	for (int i = 0; i < HANG_SECONDS * 100 && nr_alive(place) > 0; i++)
		usleep(10000);
	assert_int_equal(nr_alive(place), 0);
}

static void test_a_job_without_its_data_fails(void **state)
{
	const struct place *place = *state;

	assert_int_equal(RUN(place, (char *)programs.train, "--ranks", "2", "--load-io-bytes",
			     "4096", "--load-io-file", "/does/not/exist"),
			 1);
}

/* CPU time of a process if it is a child of `parent`, else 0. */
static u64 child_cpu_ns(const char *pid, pid_t parent)
{
	unsigned long long ran = 0;
	char path[300], line[512] = "";
	FILE *stream;
	int ppid = 0;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	stream = fopen(path, "r");
	if (stream && fgets(line, sizeof(line), stream) && strrchr(line, ')'))
		sscanf(strrchr(line, ')'), ") %*c %d", &ppid);
	if (stream)
		fclose(stream);
	if (ppid != parent)
		return 0;
	snprintf(path, sizeof(path), "/proc/%s/schedstat", pid);
	stream = fopen(path, "r");
	if (stream && fscanf(stream, "%llu", &ran) != 1)
		ran = 0;
	if (stream)
		fclose(stream);
	return ran;
}

static u64 nr_children_with(pid_t parent, u64 cpu_ns)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	u64 nr = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		nr += child_cpu_ns(entry->d_name, parent) >= cpu_ns;
	closedir(dir);
	return nr;
}

/* Of all children that ended, and theirs. */
static double children_cpu_seconds(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* Until each has had 0.2 s of CPU, however long that takes. */
static void test_hogs_tell_what_they_got(void **state)
{
	const struct place *place = *state;
	double before = children_cpu_seconds(), cpu_seconds, work;
	pid_t pid = START(place, (char *)programs.noise, "hogs", "2");

	for (int i = 0; i < HANG_SECONDS * 100 && nr_children_with(pid, NSEC_PER_SEC / 5) < 2; i++)
		usleep(10000);
	kill(pid, SIGTERM);
	assert_int_equal(finish(pid), 0);
	assert_true(output_number(place, "processes") == 2);
	cpu_seconds = output_number(place, "cpu_seconds");
	assert_true(cpu_seconds >= 0.4);
	assert_true(cpu_seconds <= children_cpu_seconds() - before + 0.001);
	/* In milliseconds; being interrupted costs some. */
	work = output_number(place, "work");
	assert_true(work >= 40 && work <= cpu_seconds * 1000 + 1);
}

static void test_forkstorm_tells_what_it_got(void **state)
{
	const struct place *place = *state;

	assert_int_equal(RUN(place, (char *)programs.noise, "forkstorm", "20", "--seconds", "0.5"),
			 0);
	assert_true(output_number(place, "processes") + output_number(place, "skipped") == 10);
	assert_true(output_number(place, "work") == output_number(place, "processes"));
	/* Between 5 and 50 ms each, which makes 26 on average for this seed. */
	assert_true(output_number(place, "cpu_seconds") >= 0.02 * output_number(place, "work"));
}

#define PLACED(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		PLACED(test_training_adds_up),
		PLACED(test_starved_training),
		PLACED(test_training_for_a_time),
		PLACED(test_serving_adds_up),
		PLACED(test_a_seed_decides_arrivals),
		PLACED(test_spoilt_truth_is_found),
		PLACED(test_nothing_outlives_a_killed_job),
		PLACED(test_a_job_without_its_data_fails),
		PLACED(test_hogs_tell_what_they_got),
		PLACED(test_forkstorm_tells_what_it_got),
	};

	if (argc != 5)
		return 2;
	programs.train = argv[1];
	programs.serve = argv[2];
	programs.noise = argv[3];
	programs.truth = argv[4];
	return cmocka_run_group_tests_name("workloads", tests, NULL, NULL);
}
