/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Which GPU a job uses: 100 runs with the virtual GPU on this machine's own kernel. The jobs see
 * some GPUs in another order, as in a container; they select GPUs by number, by UUID or by the UUID
 * of a part (MIG); their environment says something else after the start; the device files have
 * other numbers than the GPUs. A GPU may be unknown, but never wrong. The truth is the memory in
 * use on each virtual GPU.
 */
#include "signals/gpus.h"
#include "signals/native.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/gpu_node.h"
#include "harness.h"
#include "property/random.h"

#define NR_RUNS	   100
#define NR_GPUS	   4
#define NR_SLICES  3
#define FIRST_FILE 5 /* the minor of /dev/zero */

/* Files that open without an effect stand for the device files of GPUs. */
static const struct {
	const char *path;
	u32 number;
} files[NR_GPUS] = {
	{ "/dev/zero", 0 }, { "/dev/full", 2 }, { "/dev/random", 3 }, { "/dev/urandom", 4 }
};

static const char *library_dir;
static struct random rng = { 23 };
static struct kernel *kernel;
static struct gpu_samples samples;
static struct gpu_node node;

struct run {
	struct gpus_job job;
	u32 order[NR_GPUS];   /* of the GPUs in the container */
	u32 nr_seen;	      /* of them */
	u32 file_of[NR_GPUS]; /* index in files, for each GPU */
	s32 divided;	      /* a GPU, or -1 */
	u32 slice;	      /* of the job, from 0 */
	bool has_list;	      /* the driver lists processes for the observer */
	bool has_file;	      /* the job opens the file of its first GPU only */
	pid_t pid;
	int to, from;
};

static struct {
	u32 nr_right, nr_unknown, nr_wrong;
	u32 nr_parts, nr_parts_known;
	u32 nr_by_basis[GPU_BASIS_NR];
} counts;

static void shuffle(u32 *list)
{
	for (u32 i = 0; i < NR_GPUS; i++)
		list[i] = i;
	for (u32 i = NR_GPUS - 1; i > 0; i--) {
		u32 other = random_below(&rng, i + 1), kept = list[i];

		list[i] = list[other];
		list[other] = kept;
	}
}

static void uuid_of(u32 gpu, u32 slice, char *ret, size_t size)
{
	snprintf(ret, size, "%s-76677075-0000-0000-0000-00000000%02x%02x", slice ? "MIG" : "GPU",
		 slice, gpu);
}

/* Selects devices by number, by UUID, or not at all. */
static void choose_visible(struct run *run)
{
	char *at = run->job.visible, *end = at + sizeof(run->job.visible);
	u32 kind = random_below(&rng, 3), first = random_below(&rng, run->nr_seen);

	for (u32 i = 0; i < 2 && kind; i++) {
		u32 number = (first + i) % run->nr_seen;
		char uuid[64];

		uuid_of(run->order[number], 0, uuid, sizeof(uuid));
		if (kind == 1 || run->job.is_hip)
			snprintf(uuid, sizeof(uuid), "%u", number);
		at += snprintf(at, (size_t)(end - at), "%s%s", i ? "," : "", uuid);
		if (run->nr_seen == 1)
			break;
	}
}

static struct run choose(u32 number)
{
	static const u32 asks[] = { 0,
				    0,
				    GPUS_ASK_PROPERTIES,
				    GPUS_ASK_UUID,
				    GPUS_ASK_PCI,
				    GPUS_ASK_UUID_PART,
				    GPUS_ASK_ALL };
	struct run run = { .divided = -1 };

	shuffle(run.order);
	shuffle(run.file_of);
	run.nr_seen = 1 + random_below(&rng, NR_GPUS);
	run.job.is_hip = number % 5 == 4;
	run.job.asks = asks[random_below(&rng, 7)];
	run.job.uses = random_below(&rng, 2) ? 1U << random_below(&rng, 2) : 3;
	run.has_list = random_below(&rng, 3) != 0;
	run.has_file = random_below(&rng, 2);
	if (number % 3 == 2 && !run.job.is_hip) {
		run.divided = (s32)run.order[random_below(&rng, run.nr_seen)];
		run.slice = random_below(&rng, NR_SLICES);
		run.job.uses = 1;
		uuid_of((u32)run.divided, run.slice + 1, run.job.visible, sizeof(run.job.visible));
	} else {
		choose_visible(&run);
	}
	return run;
}

static void put_list(const char *variable, const u32 *list, u32 nr)
{
	char text[64] = "";

	for (u32 i = 0; i < nr; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i ? "," : "",
			 list[i]);
	setenv(variable, text, 1);
}

/* The first device of the job, as the variable selects it. */
static u32 first_gpu(const struct run *run)
{
	char uuid[64];

	if (run->divided >= 0)
		return (u32)run->divided;
	for (u32 i = 0; i < NR_GPUS; i++) {
		uuid_of(i, 0, uuid, sizeof(uuid));
		if (strncmp(run->job.visible, uuid, strlen(uuid)) == 0)
			return i;
	}
	return run->order[*run->job.visible ? atoi(run->job.visible) : 0];
}

/* The devices are made again if the job divides them in another way. */
static void set_environment(const struct run *run)
{
	u32 minors[NR_GPUS], slices[NR_GPUS] = {};

	for (u32 i = 0; i < NR_GPUS; i++)
		minors[i] = files[run->file_of[i]].number;
	if (run->divided >= 0)
		slices[run->divided] = NR_SLICES;
	put_list("VGPU_MINORS", minors, NR_GPUS);
	put_list("VGPU_MIG", slices, NR_GPUS);
	put_list("VGPU_CONTAINER", run->order, run->nr_seen);
	setenv("VGPU_DEVICE_FILE",
	       run->has_file && run->job.uses == 1 ? files[run->file_of[first_gpu(run)]].path : "",
	       1);
	/* What the process starts with is not what it uses. */
	setenv("CUDA_VISIBLE_DEVICES", *run->job.visible ? "3" : "0,1,2,3", 1);
	setenv("HIP_VISIBLE_DEVICES", *run->job.visible ? "3" : "0,1,2,3", 1);
}

static void start(struct run *run)
{
	int in[2], out[2], job[2];
	char byte = 0;

	set_environment(run);
	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe(job), 0);
	assert_int_equal(write(job[1], &run->job, sizeof(run->job)), sizeof(run->job));
	run->pid = fork();
	if (run->pid == 0) {
		char number[16];

		snprintf(number, sizeof(number), "%d", job[0]);
		if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0)
			_exit(127);
		execl("/proc/self/exe", "test_gpus", "--call", number, library_dir, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	close(job[0]);
	close(job[1]);
	run->to = in[1];
	run->from = out[0];
	assert_int_equal(read(run->from, &byte, 1), 1);
	assert_int_equal(byte, 1);
}

static void end(struct run *run)
{
	close(run->to);
	close(run->from);
	assert_int_equal(waitpid(run->pid, NULL, 0), run->pid);
}

/* In HIP, a device has another UUID. */
static void read_samples(const struct run *run)
{
	void *source;

	memset(&samples, 0, sizeof(samples));
	assert_int_equal(gpu_nvml_ops.open(&gpu_config_system, &source), 0);
	assert_int_equal(gpu_nvml_ops.sample(source, NULL, 0, time_now_ns(), &samples), 0);
	gpu_nvml_ops.close(source);
	assert_int_equal(samples.nr_devices, NR_GPUS);
	for (u32 i = 0; i < NR_GPUS && run->job.is_hip; i++)
		snprintf(samples.devices[i].uuid, sizeof(samples.devices[i].uuid),
			 "GPU-76677075%08x", i);
	gpu_node_of(&samples, &node);
}

/* The GPU that holds the memory of a device of the job. */
static u32 true_gpu(u32 device)
{
	for (u32 i = 0; i < NR_GPUS; i++)
		if (samples.devices[i].memory_used_bytes & GPUS_BYTES(device))
			return i;
	return NR_GPUS;
}

static void judge(const struct run *run, const struct gpu_numbers *numbers, u32 device)
{
	u32 gpu = true_gpu(device), basis = numbers->basis[device];
	s32 instance = run->divided >= 0 ? (s32)run->slice + 7 : -1;

	if (gpu == NR_GPUS)
		return;
	counts.nr_by_basis[basis]++;
	counts.nr_parts += run->divided >= 0;
	counts.nr_parts_known += run->divided >= 0 && numbers->gpu_instance[device];
	if (!numbers->of[device])
		counts.nr_unknown++;
	else if (numbers->of[device] - 1U == gpu &&
		 (!numbers->gpu_instance[device] || numbers->gpu_instance[device] - 1 == instance))
		counts.nr_right++;
	else {
		counts.nr_wrong++;
		print_message(
			"# wrong: device %u is GPU %u, not %u (basis %u, asks %u, visible %s)\n",
			device, gpu, numbers->of[device] - 1U, basis, run->job.asks,
			run->job.visible);
	}
}

static void observe(const struct run *run)
{
	u64 boottime_ns = time_of_ns(CLOCK_BOOTTIME), now_ns = time_now_ns();
	struct process_state process;
	struct gpu_numbers numbers;
	struct gpu_facts facts;

	assert_true(kernel_read_events(kernel) >= 0);
	process = native_state(kernel, run->pid);
	assert_true(process.task.has_gpu);
	assert_int_equal(kernel_read_gpu_facts(kernel, &process, &facts), 0);
	read_samples(run);
	if (run->has_list)
		gpu_places_of(&samples, (u32)run->pid, now_ns - (boottime_ns - process.start_ns),
			      &facts);
	gpu_identify(&node, &facts, &numbers);
	for (u32 device = 0; device < NR_GPUS; device++)
		judge(run, &numbers, device);
}

static void on_event(void *ctx, const struct event *event)
{
}

static u32 count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	u32 nr = 0;

	assert_non_null(dir);
	while (readdir(dir))
		nr++;
	closedir(dir);
	return nr;
}

static void attach(void)
{
	static const struct {
		const char *name;
		enum runtime runtime;
	} rows[] = { { "libcuda.so.1", RUNTIME_CUDA_DRIVER },
		     { "libcudart.so.12", RUNTIME_CUDA },
		     { "libamdhip64.so.6", RUNTIME_HIP } };
	struct gpu_devices devices = { 1, { { 1, FIRST_FILE, 9, GPU_FILE_NVIDIA } } };

	kernel = native_kernel();
	kernel_set_gpu_devices(kernel, &devices);
	assert_int_equal(kernel_open_events(kernel, false, on_event, NULL), 0);
	for (u32 i = 0; i < ARRAY_SIZE(rows); i++) {
		char path[256];
		struct library library;
		u32 nr_before;

		snprintf(path, sizeof(path), "%s/%s", library_dir, rows[i].name);
		library = native_library(path, rows[i].runtime, -1);
		library.slot = i;
		nr_before = count_descriptors();
		assert_int_equal(kernel_attach_library(kernel, &library), 0);
		assert_int_equal(count_descriptors() - nr_before,
				 kernel_library_fds(kernel, &library.probes));
	}
}

static void test_the_gpu_is_never_wrong(void **state)
{
	attach();
	for (u32 i = 0; i < NR_RUNS; i++) {
		struct run run = choose(i);

		start(&run);
		observe(&run);
		end(&run);
	}
	kernel_free(kernel);
	print_message("# %u runs: %u GPUs wrong, %u unknown, %u right\n", NR_RUNS, counts.nr_wrong,
		      counts.nr_unknown, counts.nr_right);
	print_message("# by the runtime %u, by the driver's list %u, by the device file %u\n",
		      counts.nr_by_basis[GPU_BASIS_RUNTIME], counts.nr_by_basis[GPU_BASIS_DRIVER],
		      counts.nr_by_basis[GPU_BASIS_FILE]);
	print_message("# on parts (MIG) %u, of which the part is known for %u\n", counts.nr_parts,
		      counts.nr_parts_known);
	assert_int_equal(counts.nr_wrong, 0);
	assert_true(counts.nr_parts_known > counts.nr_parts / 2);
	assert_true(counts.nr_right > counts.nr_unknown);
	assert_true(counts.nr_by_basis[GPU_BASIS_RUNTIME] && counts.nr_by_basis[GPU_BASIS_DRIVER] &&
		    counts.nr_by_basis[GPU_BASIS_FILE]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_the_gpu_is_never_wrong) };
	struct gpus_job job;

	if (argc == 4 && strcmp(argv[1], "--call") == 0)
		return read(atoi(argv[2]), &job, sizeof(job)) == sizeof(job)
			       ? gpus_caller(&job, argv[3])
			       : 1;
	if (argc != 2)
		return 2;
	library_dir = argv[1];
	harness_start("4", "1e9");
	return harness_end(cmocka_run_group_tests_name("gpus", tests, NULL, NULL));
}
