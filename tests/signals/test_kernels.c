/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of GPU kernels, and their launches around idle time, on the machine's own kernel.
 * Arguments: a library with the calls. */
#include "signals/native.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "signals/kernels.h"

#define CAP    3
#define BEFORE 0x500 /* the kernel that was launched before a test */
#define STREAM ((void *)0x700)

static const char *library;

static struct kernel *probes_attach(void)
{
	struct kernel *kernel = native_kernel();
	struct library driver = native_library(library, RUNTIME_CUDA_DRIVER, -1);

	struct library runtime = native_library(library, RUNTIME_CUDA, -1);

	runtime.slot = 1;
	assert_int_equal(kernel_attach_library(kernel, &driver), 0);
	assert_int_equal(kernel_attach_library(kernel, &runtime), 0);
	return kernel;
}

static int read_kernel(struct kernel *kernel, pid_t pid, u64 handle, struct gpu_kernel *ret)
{
	struct process_state process = native_state(kernel, pid);
	struct gpu_kernel_key key = {
		.start_ns = process.start_ns,
		.tgid = process.task.pid,
		.handle = handle,
	};

	return kernel_read_gpu_kernel(kernel, &key, ret);
}

static void assert_name(struct kernel *kernel, u64 handle, const char *name, bool is_cut)
{
	struct gpu_kernel found;

	assert_int_equal(read_kernel(kernel, getpid(), handle, &found), 0);
	assert_string_equal(found.name, name);
	assert_int_equal(found.is_cut, is_cut);
}

static void assert_unknown(struct kernel *kernel, u64 handle)
{
	assert_int_equal(read_kernel(kernel, getpid(), handle, &(struct gpu_kernel){}), -ENOENT);
}

static void handles_have_names(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	u64 handle;

	cuModuleGetFunction(&handle, 16, "forward");
	cuLibraryGetKernel(&handle, 32, "backward");
	cuKernelGetFunction(&handle, 32);
	assert_name(kernel, 16, "forward", false);
	assert_name(kernel, 32, "backward", false);
	assert_name(kernel, 32 + KERNELS_FUNCTION, "backward", false);
	assert_unknown(kernel, 48);
	assert_int_equal(kernel_drops(kernel).nr_kernels, 0);
}

/* A handle is an address, which can be used again for another kernel. */
static void handle_has_its_latest_name(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	u64 handle;

	cuModuleGetFunction(&handle, 16, "old");
	cuModuleGetFunction(&handle, 16, "new");
	assert_name(kernel, 16, "new", false);
	cuModuleGetFunction(&handle, 32 + KERNELS_FUNCTION, "old");
	cuKernelGetFunction(&handle, 32); /* a kernel that was looked up in an unknown way */
	assert_unknown(kernel, 32 + KERNELS_FUNCTION);
	assert_int_equal(kernel_nr_entries(kernel), 1);
}

static void failed_call_has_no_name(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	u64 handle;

	cuModuleGetFunction(&handle, 16, "");
	assert_unknown(kernel, 16);
	assert_int_equal(kernel_nr_entries(kernel), 0);
}

static void long_name_is_cut(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	char name[GPU_KERNEL_BYTES + 10] = "";
	u64 handle;

	memset(name, 'x', GPU_KERNEL_BYTES - 1);
	cuModuleGetFunction(&handle, 16, name);
	assert_name(kernel, 16, name, false);
	name[GPU_KERNEL_BYTES - 1] = 'y';
	cuModuleGetFunction(&handle, 32, name);
	name[GPU_KERNEL_BYTES - 1] = '\0';
	assert_name(kernel, 32, name, true);
}

/* A process of the user looks so many kernels up, and stays. */
static pid_t look_up(uid_t uid, u32 nr)
{
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		u64 handle;

		if (setresuid(uid, uid, uid) < 0)
			_exit(2);
		for (u32 i = 0; i < nr; i++)
			cuModuleGetFunction(&handle, 16 * i, "kernel");
		close(ready[1]);
		pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return child;
}

static void end(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void user_has_a_part_of_the_table(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	struct gpu_kernel found;
	pid_t first, second;

	kernel->skel->data->tenant_max[TENANT_KERNELS] = CAP;
	first = look_up(1000, CAP + 2);
	assert_int_equal(kernel_drops(kernel).nr_kernels, 2);
	assert_int_equal(read_kernel(kernel, first, 16 * (CAP - 1), &found), 0);
	assert_int_equal(read_kernel(kernel, first, 16 * CAP, &found), -ENOENT);
	second = look_up(1000, 1);
	assert_int_equal(kernel_drops(kernel).nr_kernels, 3);
	end(second);
	/* The processes can have one group, which is capped as a user is. */
	if (native_state(kernel, first).group) {
		print_message("# another user of the same group has no room: not tested\n");
	} else {
		second = look_up(1001, CAP);
		assert_int_equal(kernel_drops(kernel).nr_kernels, 3);
		end(second);
	}
	/* The end of a process makes room. */
	end(first);
	assert_int_equal(kernel_sweep(kernel), 0);
	assert_int_equal(kernel_nr_entries(kernel), 0);
	first = look_up(1000, CAP);
	assert_int_equal(kernel_drops(kernel).nr_kernels, 3);
	end(first);
}

static struct lines_process read_own(struct kernel *kernel)
{
	u32 tgid = (u32)getpid();
	struct lines_process process;

	assert_int_equal(bpf_map__lookup_elem(kernel->skel->maps.lines_processes, &tgid,
					      sizeof(tgid), &process, sizeof(process), 0),
			 0);
	return process;
}

static void write_own(struct kernel *kernel, const struct lines_process *process)
{
	u32 tgid = (u32)getpid();

	assert_int_equal(bpf_map__update_elem(kernel->skel->maps.lines_processes, &tgid,
					      sizeof(tgid), process, sizeof(*process), BPF_ANY),
			 0);
}

/* A client wants lines. Some time has been charged since the last launch. */
static void charge(struct kernel *kernel)
{
	struct lines_process process = { .gap = { .after = BEFORE, .nr_waiting = 1 } };
	struct lines_waiting *waiting = &process.gap.waiting[0];

	waiting->key = (struct lines_sum_key){ .tgid = (u32)getpid(),
					       .stack = { .hash = 1 },
					       .after = BEFORE };
	waiting->sum = (struct lines_sum){ .done_ns = 100, .nr_samples = 1 };
	kernel->skel->bss->nr_lines_wanted = 1;
	write_own(kernel, &process);
}

static struct lines_gap gap_of_test(struct kernel *kernel)
{
	return read_own(kernel).gap;
}

struct sums {
	u32 nr;
	struct lines_sum_key last;
};

static int note_sum(void *ctx, const struct lines_sum_key *key, const struct lines_sum *sum)
{
	struct sums *sums = ctx;

	assert_int_equal(sum->done_ns, 100);
	sums->nr++;
	sums->last = *key;
	return 0;
}

/* The charged time has these kernels around it, and is there once. */
static void assert_around(struct kernel *kernel, u64 after, u64 before)
{
	struct sums sums = {};

	assert_int_equal(kernel_read_lines(kernel, (u32)getpid(), note_sum, &sums), 0);
	assert_int_equal(sums.nr, 1);
	assert_int_equal(sums.last.after, after);
	assert_int_equal(sums.last.before, before);
}

static void launch(u64 handle)
{
	cuLaunchKernel(handle, 1, 1, 1, 1, 1, 1, 0, STREAM, NULL, NULL);
}

static void launch_by_runtime(u64 handle)
{
	const struct kernels_dim one = { 1, 1, 1 };

	cudaLaunchKernel(launch, one, one, (void **)(uintptr_t)handle, 0, STREAM);
}

static void launch_ends_idle_time(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();

	charge(kernel);
	assert_around(kernel, BEFORE, GAP_UNKNOWN);
	launch(0x10);
	assert_around(kernel, BEFORE, 0x10);
	assert_int_equal(gap_of_test(kernel).nr_waiting, 0);
	assert_int_equal(gap_of_test(kernel).after, 0x10);
	launch(0x20);
	assert_around(kernel, BEFORE, 0x10);
	assert_int_equal(gap_of_test(kernel).after, 0x20);
	assert_int_equal(gap_of_test(kernel).nr_launches, 2);
}

/* The runtime knows no handle. Its driver does. */
static void runtime_launches_through_its_driver(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();

	charge(kernel);
	launch_by_runtime(0x10);
	assert_around(kernel, BEFORE, 0x10);
	assert_int_equal(gap_of_test(kernel).nr_launches, 1);
}

static void runtime_without_driver_is_unknown(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();

	charge(kernel);
	launch_by_runtime(0);
	assert_int_equal(gap_of_test(kernel).is_through, 1);
	launch_by_runtime(0x20);
	assert_around(kernel, BEFORE, GAP_UNKNOWN);
	assert_int_equal(gap_of_test(kernel).nr_waiting, 0);
	assert_int_equal(gap_of_test(kernel).after, 0x20);
}

static void graphs_are_launched(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();

	charge(kernel);
	cuGraphLaunch(NULL, STREAM);
	assert_around(kernel, BEFORE, GAP_GRAPH);
	assert_int_equal(gap_of_test(kernel).after, GAP_GRAPH);
}

/* The kernels of a graph run when the graph is launched. */
static void captured_launch_does_not_run(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();

	cuStreamBeginCapture_v2(STREAM, 0);
	charge(kernel);
	launch(0x10);
	launch_by_runtime(0x10);
	assert_around(kernel, BEFORE, GAP_UNKNOWN);
	assert_int_equal(gap_of_test(kernel).nr_waiting, 1);
	cuStreamEndCapture(STREAM, NULL);
	launch(0x20);
	assert_around(kernel, BEFORE, 0x20);
}

/* A launch at the same time as another one, or as a sample, is not noted, which is noted. */
static void launch_without_the_gap_tears_it(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	struct lines_process process;

	charge(kernel);
	process = read_own(kernel);
	process.gap.is_taken = 1;
	write_own(kernel, &process);
	launch(0x10);
	process = read_own(kernel);
	assert_int_equal(process.gap.is_torn, 1);
	assert_int_equal(process.gap.nr_waiting, 1);
	process.gap.is_taken = 0;
	write_own(kernel, &process);
	launch(0x20);
	assert_around(kernel, BEFORE, GAP_UNKNOWN);
	assert_int_equal(gap_of_test(kernel).is_torn, 0);
	assert_int_equal(gap_of_test(kernel).after, 0x20);
}

static void nothing_is_noted_for_nobody(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();

	charge(kernel);
	kernel->skel->bss->nr_lines_wanted = 0;
	launch(0x10);
	assert_int_equal(gap_of_test(kernel).nr_launches, 0);
}

/* Time is never lost for the names of kernels: what has no room of its own is added to the rest. */
static void many_kernels_share_one_sum(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	const struct lines_sum_key key = { .tgid = (u32)getpid(), .stack = { .hash = 1 } };
	struct lines_process process;
	struct lines_used used = {};
	struct lines_sum sum;

	for (u32 i = 0; i < LINES_KERNEL_SUMS + 100; i++) {
		charge(kernel);
		process = read_own(kernel);
		process.used = used;
		write_own(kernel, &process);
		launch(0x10 * (i + 1));
		process = read_own(kernel);
		used = process.used;
		assert_int_equal(process.counts.nr_dropped, 0);
	}
	assert_int_equal(used.nr_sums, LINES_KERNEL_SUMS + 1);
	assert_int_equal(bpf_map__lookup_elem(kernel->skel->maps.lines_sums, &key, sizeof(key),
					      &sum, sizeof(sum), 0),
			 0);
	assert_int_equal(sum.done_ns, 100 * 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handles_have_names),
		cmocka_unit_test(handle_has_its_latest_name),
		cmocka_unit_test(failed_call_has_no_name),
		cmocka_unit_test(long_name_is_cut),
		cmocka_unit_test(user_has_a_part_of_the_table),
		cmocka_unit_test(launch_ends_idle_time),
		cmocka_unit_test(runtime_launches_through_its_driver),
		cmocka_unit_test(runtime_without_driver_is_unknown),
		cmocka_unit_test(graphs_are_launched),
		cmocka_unit_test(captured_launch_does_not_run),
		cmocka_unit_test(launch_without_the_gap_tears_it),
		cmocka_unit_test(nothing_is_noted_for_nobody),
		cmocka_unit_test(many_kernels_share_one_sum),
	};

	if (argc != 2)
		return EXIT_FAILURE;
	library = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
