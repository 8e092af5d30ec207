/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of stacks of out-of-memory errors, on the machine's own kernel: what a user can have of
 * it, and what is counted as lost. The interpreter is a fake one in the memory of the test, so that
 * a stack has as many frames as a test wants. Arguments: a library with the call.
 */
#include "signals/native.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/libbpf.h>
#include "signals/oom.h"

#define DEPTH 4
#define DEEP  20 /* more frames than are kept */
#define CAP   6
#define WILD  4096 /* a depth: the innermost frame is at an address that cannot be read */
#define CROWD 4097 /* a depth: the thread is behind those that are looked at, which are a cycle */

static const char *oom_lib;

/* An interpreter with one thread. All frames run the same code, which has no names. */
static struct {
	u64 interpreter;
	u64 next_interpreter, thread;
	u64 next_thread, native_id, innermost;
	struct {
		u64 previous, code, instruction, owner;
	} frames[DEEP];
	u64 lines, none;
} fake;

static const struct python_offsets offsets = {
	.runtime_interpreters = 0,
	.interpreter_next = 0,
	.interpreter_threads = 8,
	.thread_next = 0,
	.thread_native_id = 8,
	.thread_frame = 16,
	.cframe_frame = PYTHON_NO_MEMBER,
	.frame_previous = 0,
	.frame_code = 8,
	.frame_instruction = 16,
	.frame_owner = 24,
	.code_lines = 0,
	.code_name = 8,
	.code_file = 8,
};

static u64 address_of(const void *object)
{
	return (u64)(uintptr_t)object;
}

static void make_stack(u32 native_id, u32 depth)
{
	fake.interpreter = address_of(&fake.next_interpreter);
	fake.thread = address_of(&fake.next_thread);
	fake.native_id = native_id;
	fake.innermost = address_of(&fake.frames[0]);
	fake.lines = address_of(&fake);
	for (u32 i = 0; i < DEEP; i++) {
		fake.frames[i].code = address_of(&fake.lines);
		fake.frames[i].previous = i + 1 < depth ? address_of(&fake.frames[i + 1]) : 0;
	}
}

/* A process that fails as it is told through a pipe: the depth of its stack; 0: no Python thread.
 */
struct job {
	pid_t pid;
	int to, from, pidfd;
};

static void fail_as_told(int from, int to)
{
	u32 depth;

	cudaSetDevice(0);
	while (write(to, "", 1) == 1 && read(from, &depth, sizeof(depth)) == sizeof(depth)) {
		make_stack(depth ? (u32)gettid() : 0, depth);
		if (depth == WILD)
			fake.innermost = WILD;
		fake.next_thread = depth == CROWD ? address_of(&fake.next_thread) : 0;
		if (depth == CROWD)
			fake.native_id = 0;
		oom_report_call(1, 2, 3, (struct oom_test_device){ OOM_TEST_CUDA, 0 });
	}
	_exit(0);
}

static void set_python(struct kernel *kernel, const struct job *job, u64 read_ns)
{
	assert_int_equal(
		kernel_set_python(kernel, job->pidfd,
				  &(struct oom_python){ .runtime = address_of(&fake),
							.offsets = offsets,
							.budget = { read_ns, time_now_ns() } }),
		0);
}

static struct job job_start(struct kernel *kernel, uid_t uid)
{
	int to[2], from[2];
	struct job job;
	char byte;

	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	job.pid = fork();
	assert_true(job.pid >= 0);
	if (job.pid == 0) {
		if (setresuid(uid, uid, uid) < 0)
			_exit(2);
		close(to[1]);
		fail_as_told(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	job.to = to[1];
	job.from = from[0];
	job.pidfd = library_open_process(job.pid);
	assert_int_equal(read(job.from, &byte, 1), 1);
	set_python(kernel, &job, 0);
	return job;
}

static void job_fail(const struct job *job, u32 depth)
{
	char byte;

	assert_int_equal(write(job->to, &depth, sizeof(depth)), sizeof(depth));
	assert_int_equal(read(job->from, &byte, 1), 1);
}

static void job_end(struct job *job)
{
	assert_int_equal(kill(job->pid, SIGKILL), 0);
	assert_int_equal(waitpid(job->pid, NULL, 0), job->pid);
	close(job->to);
	close(job->from);
	close(job->pidfd);
}

static int take(struct kernel *kernel, const struct process_state *process, u32 index)
{
	CLEANUP_FREE struct oom_frame *frame = malloc(sizeof(*frame));
	int err = kernel_take_oom_frame(kernel, process, index, frame);

	kernel_release_oom_frames(kernel, process, err == 0 || err == -ESTALE);
	return err;
}

/* Takes the frames of the latest error, and returns their number. */
static u32 take_all(struct kernel *kernel, const struct job *job)
{
	struct process_state process = native_state(kernel, job->pid);
	u32 nr = 0;

	for (u32 i = 0; i < OOM_FRAMES_MAX; i++)
		nr += take(kernel, &process, i) == 0;
	return nr;
}

static struct kernel *probes_attach(void)
{
	struct kernel *kernel = native_kernel();
	struct library runtime = native_library(oom_lib, RUNTIME_CUDA, -1);
	struct library torch = native_library(oom_lib, RUNTIME_C10, -1);

	torch.slot = 1;
	assert_int_equal(kernel_attach_library(kernel, &runtime), 0);
	assert_int_equal(kernel_attach_library(kernel, &torch), 0);
	return kernel;
}

static void frames_are_taken_once(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	struct job job = job_start(kernel, 0);
	struct process_state first, second;

	job_fail(&job, DEPTH);
	assert_int_equal(take_all(kernel, &job), DEPTH);
	assert_int_equal(take_all(kernel, &job), 0);
	job_fail(&job, 3);
	first = native_state(kernel, job.pid);
	job_fail(&job, 2);
	second = native_state(kernel, job.pid);
	/* A reader with an old state does not take the frames of a later error. */
	assert_int_equal(take(kernel, &first, 0), -ENOENT);
	assert_int_equal(take(kernel, &second, 0), 0);
	assert_int_equal(take(kernel, &second, 1), 0);
	assert_int_equal(take(kernel, &second, 2), -ESTALE);
	assert_int_equal(take(kernel, &second, 2), -ENOENT);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 0);
	job_end(&job);
}

/* The innermost frames are kept, and the number of all. */
static void deep_stack_is_cut(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	CLEANUP_FREE struct oom_frame *frame = malloc(sizeof(*frame));
	struct job job = job_start(kernel, 0);
	struct process_state process;

	job_fail(&job, DEEP);
	process = native_state(kernel, job.pid);
	for (u32 i = 0; i < OOM_FRAMES_MAX; i++) {
		assert_int_equal(kernel_take_oom_frame(kernel, &process, i, frame), 0);
		assert_int_equal(frame->nr_frames, DEEP);
		assert_int_equal(frame->is_cut, 0);
	}
	assert_int_equal(kernel_take_oom_frame(kernel, &process, OOM_FRAMES_MAX, frame), -ENOENT);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 0);
	job_end(&job);
}

static void user_has_a_part_of_the_table(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	struct job a = job_start(kernel, 1000), b = job_start(kernel, 1000), c, other;

	kernel->skel->data->tenant_max[TENANT_STACKS] = CAP;
	job_fail(&a, DEPTH);
	job_fail(&b, DEPTH);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 1);
	/* The processes can have one group, which is capped as a user is. */
	if (native_state(kernel, a.pid).group) {
		print_message("# another user of the same group has no room: not tested\n");
	} else {
		other = job_start(kernel, 1001);
		job_fail(&other, DEPTH);
		assert_int_equal(kernel_drops(kernel).nr_stacks, 1);
		assert_int_equal(take_all(kernel, &other), DEPTH);
		job_end(&other);
	}
	/* Frames that are taken make room. Those that stay are written again. */
	assert_int_equal(take_all(kernel, &a), DEPTH);
	job_fail(&b, DEPTH);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 1);
	/* A sweep finds the same counts, and the end of a process makes room. */
	assert_int_equal(kernel_sweep(kernel), 0);
	c = job_start(kernel, 1000);
	job_fail(&c, DEPTH);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 2);
	assert_int_equal(take_all(kernel, &c), CAP - DEPTH);
	job_end(&b);
	assert_int_equal(kernel_sweep(kernel), 0);
	/* The stack of that process was not taken. */
	assert_int_equal(kernel_drops(kernel).nr_stacks, 3);
	job_fail(&a, DEPTH);
	assert_int_equal(take_all(kernel, &a), DEPTH);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 3);
	job_end(&a);
	job_end(&c);
}

static void lost_stacks_are_counted(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	CLEANUP_FREE struct oom_frame *frame = calloc(1, sizeof(*frame));
	struct job job = job_start(kernel, 0);

	/* This thread has no Python frames, which is no loss. */
	job_fail(&job, 0);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 0);
	assert_int_equal(native_state(kernel, job.pid).oom.nr, 1);
	job_fail(&job, WILD);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 1);
	assert_int_equal(native_state(kernel, job.pid).oom.nr, 2);
	job_fail(&job, CROWD);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 2);
	for (u32 i = 0; i < OOM_PROCESSES_MAX * OOM_FRAMES_MAX; i++) {
		struct oom_frame_key key = { .start_ns = 1, .index = i };

		assert_int_equal(bpf_map__update_elem(kernel->skel->maps.oom_frames, &key,
						      sizeof(key), frame, sizeof(*frame), BPF_ANY),
				 0);
	}
	job_fail(&job, DEPTH);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 3);
	assert_int_equal(take_all(kernel, &job), 0);
	job_end(&job);
}

/* While another thread reads its stack, an error is counted, and the report stays as it is. */
static void one_thread_at_a_time_reads_its_stack(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	struct job job = job_start(kernel, 0);
	struct oom_python python = { .runtime = address_of(&fake), .offsets = offsets };
	struct process_state first;

	job_fail(&job, DEPTH);
	first = native_state(kernel, job.pid);
	python.is_read = 1;
	assert_int_equal(kernel_set_python(kernel, job.pidfd, &python), 0);
	job_fail(&job, 2);
	assert_int_equal(native_state(kernel, job.pid).oom.nr, 2);
	assert_int_equal(native_state(kernel, job.pid).oom.time_ns, first.oom.time_ns);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 1);
	assert_int_equal(take_all(kernel, &job), DEPTH);
	set_python(kernel, &job, 0);
	job_fail(&job, 3);
	assert_int_equal(take_all(kernel, &job), 3);
	/* The flag is free again. */
	job_fail(&job, 2);
	assert_int_equal(take_all(kernel, &job), 2);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 1);
	job_end(&job);
}

/* A process that fails again and again has its stack read for a part of its time. */
static void reading_has_a_budget(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	struct job job = job_start(kernel, 0);
	struct oom_python python;

	job_fail(&job, DEPTH);
	assert_int_equal(take_all(kernel, &job), DEPTH);
	assert_int_equal(bpf_map__lookup_elem(kernel->skel->maps.pythons, &job.pidfd,
					      sizeof(job.pidfd), &python, sizeof(python), 0),
			 0);
	assert_in_range(python.budget.read_ns, 1, NSEC_PER_SEC);
	set_python(kernel, &job, 3600 * NSEC_PER_SEC);
	job_fail(&job, DEPTH);
	assert_int_equal(take_all(kernel, &job), 0);
	assert_int_equal(kernel_drops(kernel).nr_stacks, 1);
	job_end(&job);
}

#define RACES 20000

/* A reader whose state is older than all errors: it takes each frame and puts it back. */
struct reader {
	struct kernel *kernel;
	struct process_state process;
	u32 nr_taken; /* the table had another frame when one was to be put back */
	bool ends;
};

static void *take_and_put_back(void *arg)
{
	struct reader *reader = arg;
	struct oom_frame *frame = malloc(sizeof(*frame));

	for (u32 i = 0; !__atomic_load_n(&reader->ends, __ATOMIC_RELAXED); i++)
		reader->nr_taken += kernel_take_oom_frame(reader->kernel, &reader->process,
							  i % DEPTH, frame) == -ESTALE;
	free(frame);
	return NULL;
}

static s32 counted_frames(const struct kernel *kernel, u32 uid)
{
	struct tenant_key key = { .id = uid, .kind = TENANT_USER };
	struct tenant_use use;

	assert_int_equal(bpf_map__lookup_elem(kernel->skel->maps.tenants, &key, sizeof(key), &use,
					      sizeof(use), 0),
			 0);
	return use.nr[TENANT_STACKS];
}

/* Each frame counts once, also if it is taken or put back while another one is written. */
static void frames_are_counted_while_they_are_taken(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	struct job job = job_start(kernel, 1000);
	struct reader reader = { .kernel = kernel };
	pthread_t thread;

	job_fail(&job, DEPTH);
	reader.process = native_state(kernel, job.pid);
	reader.process.oom.time_ns = 0;
	assert_int_equal(pthread_create(&thread, NULL, take_and_put_back, &reader), 0);
	for (u32 i = 0; i < RACES; i++) {
		set_python(kernel, &job, 0);
		job_fail(&job, DEPTH);
	}
	__atomic_store_n(&reader.ends, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	print_message("# %u frames were written while another one was taken\n", reader.nr_taken);
	kernel_release_oom_frames(kernel, &reader.process, reader.nr_taken);
	job_fail(&job, DEPTH);
	assert_int_equal(counted_frames(kernel, 1000), DEPTH);
	assert_int_equal(take_all(kernel, &job), DEPTH);
	job_end(&job);
}

/* A forked job: the interpreter of its parent is at the same addresses, and all else is its own. */
static void child_has_the_interpreter_of_its_parent(void **state)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = probes_attach();
	struct job parent = job_start(kernel, 0), child = job_start(kernel, 0);
	struct oom_python python = { .runtime = address_of(&fake),
				     .offsets = offsets,
				     .budget = { 3600 * NSEC_PER_SEC, time_now_ns() },
				     .is_read = 1 };
	struct bpf_map *pythons = kernel->skel->maps.pythons;

	assert_int_equal(bpf_map__delete_elem(pythons, &child.pidfd, sizeof(child.pidfd), 0), 0);
	job_fail(&child, DEPTH);
	assert_int_equal(take_all(kernel, &child), 0);
	assert_int_equal(kernel_set_python(kernel, parent.pidfd, &python), 0);
	assert_int_equal(kernel_copy_python(kernel, parent.pidfd, child.pidfd), 0);
	job_fail(&child, DEPTH);
	assert_int_equal(take_all(kernel, &child), DEPTH);
	/* A parent without an interpreter has a child without one. */
	assert_int_equal(bpf_map__delete_elem(pythons, &parent.pidfd, sizeof(parent.pidfd), 0), 0);
	assert_int_equal(kernel_copy_python(kernel, parent.pidfd, child.pidfd), 0);
	assert_int_equal(kernel_copy_python(kernel, -1, child.pidfd), -EBADF);
	job_end(&parent);
	job_end(&child);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_taken_once),
		cmocka_unit_test(deep_stack_is_cut),
		cmocka_unit_test(user_has_a_part_of_the_table),
		cmocka_unit_test(lost_stacks_are_counted),
		cmocka_unit_test(one_thread_at_a_time_reads_its_stack),
		cmocka_unit_test(reading_has_a_budget),
		cmocka_unit_test(frames_are_counted_while_they_are_taken),
		cmocka_unit_test(child_has_the_interpreter_of_its_parent),
	};

	if (argc != 2)
		return EXIT_FAILURE;
	oom_lib = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
