/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Compares the memory accounts ("books") of the BPF programs with those of the virtual
 * GPU. They must be equal to the byte. When threads take turns, it compares after every
 * call. When threads call in parallel, it compares at the end. It only reads its own child and only
 * attaches to the lab's libraries, so it may run on any machine.
 *
 *   books [--exits] LIBRARY-DIR [CALLS [SEED]]
 *
 * The long form has 100000 calls. With --exits, the state of a process is removed when
 * its end is seen, not by a sweep. This watches all threads of the machine, so it must
 * run in a guest.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "property/random.h"
#include "signals/books_check.h"
#include "vgpu/include/vgpu_nvml.h"

#define STANDARD_CALLS 6000
#define NVML_EVERY     64
#define ENOUGH_CALLS   1000 /* enough for an entry in every account */
#define NR_SCENARIOS   ((u32)ARRAY_SIZE(scenarios))

static const struct scenario scenarios[] = {
	{ "in turn", BOOKS_IN_TURN, .share = 1 },
	{ "in turn, devices renumbered", BOOKS_IN_TURN, .share = 4, .visible = "2,0,3,1" },
	{ "in turn, one level", BOOKS_IN_TURN, .share = 4, .is_hip = true, .visible = "3,1,2,0" },
	{ "in parallel", BOOKS_AT_ONCE, .share = 1 },
	{ "in parallel, one level", BOOKS_AT_ONCE, .share = 4, .is_hip = true },
	{ "in parallel, killed", BOOKS_AT_ONCE, .share = 1, .killed = true },
};

struct options {
	const char *library_dir;
	u64 nr_calls;
	u64 seed;
	bool exits;
};

static char folder[] = "/tmp/books.XXXXXX";

static void log_libbpf(const char *text)
{
	printf("# %s\n", text);
}

static void on_event(void *ctx, const struct event *event)
{
}

/* Attaches to given files, because discovery would search the whole machine. */
static int attach(struct kernel *kernel, const char *dir, const char *name, u32 slot)
{
	CLEANUP_FREE struct library *library = calloc(1, sizeof(*library));
	CLEANUP_FD int fd = -1;
	char path[4096];
	int err;

	if (!library)
		return -ENOMEM;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	library->fd = fd;
	library->slot = slot;
	library->runtime = (enum runtime)library_runtime_of(name);
	snprintf(library->name, sizeof(library->name), "%s", name);
	snprintf(library->path, sizeof(library->path), "/proc/self/fd/%d", fd);
	err = library_resolve(fd, library->runtime, false, &library->probes, &(u64){ 0 });
	return err < 0 ? err : kernel_attach_library(kernel, library);
}

static int attach_all(struct kernel *kernel, const char *dir)
{
	static const char *const names[] = { "libcuda.so.1", "libcudart.so.12",
					     "libamdhip64.so.6" };
	int err = kernel_open_events(kernel, false, on_event, NULL);

	for (u32 i = 0; i < 3 && err == 0; i++)
		err = attach(kernel, dir, names[i], i);
	return err;
}

/* Returns 0, or -ETIME if a call takes minutes: it hangs. */
static int wait_done(struct books_shared *shared)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 300;
	while (sem_timedwait(&shared->done, &until) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

static int run_open_truth(struct run *run)
{
	CLEANUP_FD int fd = -1;
	struct truth_header header;
	char path[128];
	char *map;

	snprintf(path, sizeof(path), "%s/truth/vgpu%s.%d.truth", folder,
		 run->scenario->is_hip ? "-hip" : "", run->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, &header, sizeof(header)) != sizeof(header))
		return -errno;
	map = mmap(NULL, sizeof(header) + header.capacity * sizeof(struct truth_record), PROT_READ,
		   MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	run->records = (struct truth_record *)(map + sizeof(header));
	return 0;
}

static int run_start(struct run *run, const struct options *options, u64 nr_calls)
{
	const char *visible =
		run->scenario->is_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
	int fd = memfd_create("books", 0), err = 0;
	char number[16];

	if (fd < 0 || ftruncate(fd, sizeof(*run->shared)) < 0)
		return -errno;
	run->shared = mmap(NULL, sizeof(*run->shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (run->shared == MAP_FAILED)
		return -errno;
	for (u32 i = 0; i < BOOKS_THREADS; i++)
		sem_init(&run->shared->go[i], 1, 0);
	sem_init(&run->shared->done, 1, 0);
	run->shared->mode = run->scenario->mode;
	run->shared->is_hip = run->scenario->is_hip;
	run->shared->seed = options->seed;
	run->shared->nr_calls = nr_calls;
	snprintf(number, sizeof(number), "%d", fd);
	run->pid = fork();
	if (run->pid == 0) {
		if (run->scenario->visible)
			setenv(visible, run->scenario->visible, 1);
		execl("/proc/self/exe", "books", "--call", number, options->library_dir, NULL);
		_exit(127);
	}
	close(fd);
	run->pidfd = pidfd_open(run->pid, 0);
	for (u32 i = 0; i < BOOKS_THREADS && err == 0; i++)
		err = wait_done(run->shared);
	return err < 0 ? err : run_open_truth(run);
}

static void run_end(struct run *run)
{
	kill(run->pid, SIGKILL);
	waitpid(run->pid, NULL, 0);
	close(run->pidfd);
	munmap(run->shared, sizeof(*run->shared));
}

static bool call_in_turn(struct run *run, struct random *random, u64 nr_calls)
{
	for (u64 i = 0; i < nr_calls; i++) {
		u32 thread = random_below(random, BOOKS_THREADS);

		sem_post(&run->shared->go[thread]);
		if (wait_done(run->shared) < 0 || !run_compare(run, i % NVML_EVERY == 0)) {
			printf("# call %llu by thread %u\n", (unsigned long long)i, thread);
			return false;
		}
	}
	return true;
}

static bool call_at_once(struct run *run, struct random *random)
{
	for (u32 i = 0; i < BOOKS_THREADS; i++)
		sem_post(&run->shared->go[i]);
	if (run->scenario->killed) {
		usleep(100000 + random_below(random, 100000));
		return kernel_nr_entries(run->kernel) > 0;
	}
	for (u32 i = 0; i < BOOKS_THREADS; i++)
		if (wait_done(run->shared) < 0)
			return false;
	return run_compare(run, true);
}

static bool run_scenario(struct kernel *kernel, const struct scenario *scenario,
			 const struct options *options)
{
	struct random random = { options->seed };
	u64 nr_calls = options->nr_calls / scenario->share;
	CLEANUP_FREE struct run *run = calloc(1, sizeof(*run));
	u64 nr_made, nr_failed;
	bool good;

	if (!run)
		return false;
	run->scenario = scenario;
	run->kernel = kernel;
	/* Kill it while it makes calls, not after. */
	good = run_start(run, options, scenario->killed ? ~0ULL : nr_calls) == 0;
	if (good)
		good = scenario->mode == BOOKS_IN_TURN ? call_in_turn(run, &random, nr_calls)
						       : call_at_once(run, &random);
	if (good && nr_calls >= ENOUGH_CALLS && !scenario->killed && !run_filled_books(run)) {
		printf("# an account stayed empty\n");
		good = false;
	}
	nr_made = run->shared->nr_made;
	nr_failed = run->shared->nr_failed;
	run_end(run);
	if (!run_left_nothing(run, !options->exits)) {
		printf("# %llu entries are left\n", (unsigned long long)kernel_nr_entries(kernel));
		good = false;
	}
	printf("# %s: %llu calls, %llu failed calls, %llu comparisons\n", scenario->name, nr_made,
	       nr_failed, run->nr_comparisons);
	return good;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int set_up(void)
{
	char path[64];

	if (!mkdtemp(folder))
		return -errno;
	snprintf(path, sizeof(path), "%s/shm", folder);
	setenv("VGPU_SHM", path, 1);
	snprintf(path, sizeof(path), "%s/truth", folder);
	setenv("VGPU_TRUTH", path, 1);
	setenv("VGPU_DEVICES", "4", 1);
	setenv("VGPU_MEMORY_BYTES", "1e9", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("HIP_VISIBLE_DEVICES");
	return nvmlInit_v2() ? -EIO : 0;
}

static bool parse(int argc, char **argv, struct options *ret)
{
	struct options options = { .nr_calls = STANDARD_CALLS, .seed = 20250101 };

	if (argc > 1 && strcmp(argv[1], "--exits") == 0) {
		options.exits = true;
		argc--;
		argv++;
	}
	if (argc < 2 || argc > 4)
		return false;
	options.library_dir = argv[1];
	if (argc > 2)
		options.nr_calls = strtoull(argv[2], NULL, 10);
	if (argc > 3)
		options.seed = strtoull(argv[3], NULL, 10);
	*ret = options;
	return true;
}

static bool run_all(struct kernel *kernel, const struct options *options)
{
	struct kernel_drops drops;
	bool all = true, dropped;

	printf("# seed %llu\n1..%u\n", options->seed, NR_SCENARIOS + 1);
	for (u32 i = 0; i < NR_SCENARIOS; i++) {
		bool good = run_scenario(kernel, &scenarios[i], options);

		printf("%sok %u - memory accounts are exact when threads call %s\n",
		       good ? "" : "not ", i + 1, scenarios[i].name);
		fflush(stdout);
		all &= good;
	}
	drops = kernel_drops(kernel);
	printf("# dropped: %llu memory entries, %llu calls, %llu processes, %llu events\n",
	       drops.nr_memory, drops.nr_frames, drops.nr_processes, drops.nr_events);
	dropped = drops.nr_memory || drops.nr_frames || drops.nr_processes || drops.nr_events;
	printf("%sok %u - nothing was dropped\n", dropped ? "not " : "", NR_SCENARIOS + 1);
	return all && !dropped;
}

int main(int argc, char **argv)
{
	struct options options;
	struct kernel *kernel = NULL;
	bool good;
	int err;

	if (argc == 4 && strcmp(argv[1], "--call") == 0)
		return books_caller(mmap(NULL, sizeof(struct books_shared), PROT_READ | PROT_WRITE,
					 MAP_SHARED, atoi(argv[2]), 0),
				    argv[3]);
	if (!parse(argc, argv, &options))
		return 2;
	err = kernel_new(log_libbpf, &kernel);
	if (err == -EPERM || err == -ENOSYS) {
		printf("1..0 # SKIP cannot load BPF programs into this kernel: %s\n",
		       strerror(-err));
		return 0;
	}
	if (err == 0)
		err = attach_all(kernel, options.library_dir);
	if (err == 0 && options.exits)
		err = kernel_attach_threads(kernel);
	if (err == 0)
		err = set_up();
	if (err < 0) {
		printf("Bail out! cannot attach to the lab's libraries: %s\n", strerror(-err));
		return 1;
	}
	good = run_all(kernel, &options);
	kernel_free(kernel);
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return good ? 0 : 1;
}
