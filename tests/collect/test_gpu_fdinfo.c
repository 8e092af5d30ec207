/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests DRM descriptors over several samples, in a directory that replaces /proc. */
#include "collect/tree.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define MS NSEC_PER_MSEC

static struct gpu *gpu;
static struct gpu_samples samples;

static int setup(void **state)
{
	return tree_setup(state) < 0 ? -1 : gpu_new(&tree_config, &gpu);
}

static int teardown(void **state)
{
	gpu = gpu_free(gpu);
	return tree_teardown(state);
}

__attribute__((format(printf, 3, 4))) static void put(int pid, int fd, const char *format, ...)
{
	char text[2048];
	va_list args;
	int length = snprintf(text, sizeof(text), "pos:\t0\nflags:\t02100002\nmnt_id:\t26\n");

	va_start(args, format);
	vsnprintf(text + length, sizeof(text) - (size_t)length, format, args);
	va_end(args);
	tree_write(tree_path("proc/%d/fdinfo/%d", pid, fd), text);
}

static void put_i915(int pid, int fd, int client, u64 render_ns, u64 video_ns)
{
	put(pid, fd,
	    "drm-driver:\ti915\ndrm-client-id:\t%d\ndrm-pdev:\t0000:00:02.0\n"
	    "drm-resident-system0:\t64 KiB\ndrm-engine-render:\t%llu ns\n"
	    "drm-engine-video:\t%llu ns\ndrm-engine-capacity-video:\t2\n",
	    client, render_ns, video_ns);
}

static void read_at(u64 ms, const pid_t *pids, size_t nr)
{
	assert_int_equal(gpu_read(gpu, pids, nr, ms * MS, &samples), 0);
}

static void check_use(u32 device, u32 percent)
{
	assert_true(samples.devices[device].valid & GPU_HAS_UTILISATION);
	assert_int_equal(samples.devices[device].utilisation, percent);
}

static const struct gpu_process_sample *process(u32 pid, u32 device)
{
	for (u32 i = 0; i < samples.nr_processes; i++)
		if (samples.processes[i].pid == pid && samples.processes[i].gpu == device)
			return &samples.processes[i];
	fail_msg("no process %u on device %u", pid, device);
	return NULL;
}

static void test_first_sample_has_no_utilisation(void **state)
{
	const pid_t pids[] = { 10 };

	tree_write(tree_path("sys/bus/pci/devices/0000:00:02.0/numa_node"), "1\n");
	put_i915(10, 5, 7, 123456789, 0);
	read_at(1000, pids, 1);
	assert_int_equal(samples.nr_devices, 1);
	assert_int_equal(samples.devices[0].valid,
			 GPU_HAS_NAME | GPU_HAS_PCI_ADDRESS | GPU_HAS_NUMA_NODE);
	assert_string_equal(samples.devices[0].pci_address, "0000:00:02.0");
	assert_string_equal(samples.devices[0].name, "i915");
	assert_int_equal(samples.devices[0].numa_node, 1);
	assert_int_equal(samples.nr_processes, 1);
	assert_int_equal(process(10, 0)->valid, GPU_HAS_MEMORY_USED);
	assert_int_equal(process(10, 0)->memory_used_bytes, 65536);
	assert_int_equal(samples.nr_dropped, 0);
}

static void test_busiest_engine_and_capacity(void **state)
{
	const pid_t pids[] = { 10, 11 };

	tree_write(tree_path("sys/bus/pci/devices/0000:00:02.0/numa_node"), "-1\n");
	put_i915(10, 5, 7, 50 * MS, 0);
	put_i915(11, 5, 8, 0, 0);
	read_at(1000, pids, 2);
	assert_false(samples.devices[0].valid & GPU_HAS_NUMA_NODE);
	assert_int_equal(samples.devices[0].numa_node, -1);
	/*
	 * In 200 ms, render is busy for 60 + 40 ms, and video for 140 ms of 400 ms (two engines).
	 */
	put_i915(10, 5, 7, 110 * MS, 0);
	put_i915(11, 5, 8, 40 * MS, 140 * MS);
	read_at(1200, pids, 2);
	check_use(0, 50);
	assert_int_equal(process(10, 0)->utilisation, 30);
	assert_int_equal(process(11, 0)->utilisation, 35);
	/* A busy time longer than the interval gives 100 %. */
	put_i915(10, 5, 7, 990 * MS, 0);
	read_at(1300, pids, 2);
	check_use(0, 100);
	/* Two samples at the same time have no interval between them. */
	read_at(1300, pids, 2);
	assert_false(samples.devices[0].valid & GPU_HAS_UTILISATION);
}

/* The sum starts again where the use of a client is not known. */
static void test_busy_time(void **state)
{
	const struct gpu_busy_time *busy = &samples.devices[0].busy;
	const pid_t pids[] = { 10, 11 };

	put_i915(10, 4, 1, 0, 0);
	read_at(1000, pids, 2);
	assert_false(samples.devices[0].valid & GPU_HAS_BUSY_TIME);
	put_i915(10, 4, 1, 60 * MS, 140 * MS);
	read_at(1200, pids, 2);
	assert_true(samples.devices[0].valid & GPU_HAS_BUSY_TIME);
	assert_int_equal(busy->counter, GPU_COUNTER_ENGINE);
	assert_int_equal(busy->since_ns, 1000 * MS);
	assert_int_equal(busy->busy_ns, 70 * MS);
	put_i915(10, 4, 1, 5000 * MS, 140 * MS);
	read_at(1500, pids, 2);
	assert_int_equal(busy->busy_ns, 370 * MS);
	assert_int_equal(busy->at_ns, 1500 * MS);
	assert_int_equal(busy->period_ns, 300 * MS);
	/* A second client comes: its use before is not known. */
	put_i915(11, 4, 2, 50 * MS, 0);
	read_at(1600, pids, 2);
	assert_false(samples.devices[0].valid & GPU_HAS_BUSY_TIME);
	put_i915(11, 4, 2, 80 * MS, 0);
	read_at(1700, pids, 2);
	assert_int_equal(busy->since_ns, 1600 * MS);
	assert_int_equal(busy->busy_ns, 30 * MS);
	/* It goes: its use after the last sample is not known. */
	read_at(1800, pids, 1);
	assert_false(samples.devices[0].valid & GPU_HAS_BUSY_TIME);
	read_at(1900, pids, 1);
	assert_int_equal(busy->since_ns, 1800 * MS);
	assert_int_equal(busy->busy_ns, 0);
}

static void test_counter_steps_back(void **state)
{
	const pid_t pids[] = { 10 };

	put_i915(10, 5, 7, 100 * MS, 0);
	read_at(1000, pids, 1);
	put_i915(10, 5, 7, 40 * MS, 0);
	read_at(1100, pids, 1);
	check_use(0, 0);
	put_i915(10, 5, 7, 125 * MS, 0);
	read_at(1200, pids, 1);
	check_use(0, 25);
}

static void test_client_counts_once(void **state)
{
	const pid_t pids[] = { 10, 11 };

	for (int round = 0; round < 2; round++) {
		for (int fd = 3; fd < 6; fd++)
			put_i915(10, fd, 7, (u64)round * 20 * MS, 0);
		put_i915(11, 3, 7, (u64)round * 20 * MS, 0);
		read_at(1000 + (u64)round * 100, pids, 2);
	}
	check_use(0, 20);
	assert_int_equal(samples.nr_processes, 1);
	assert_int_equal(process(10, 0)->utilisation, 20);
	assert_int_equal(process(10, 0)->memory_used_bytes, 65536);
	/* The same client id on another GPU is another client. */
	put(10, 9,
	    "drm-driver: xe\ndrm-client-id: 7\ndrm-pdev: 0000:03:00.0\n"
	    "drm-resident-vram0: 1 MiB\n");
	read_at(1200, pids, 2);
	assert_int_equal(samples.nr_devices, 2);
	assert_int_equal(process(10, 1)->memory_used_bytes, 1 << 20);
	assert_int_equal(process(10, 1)->valid, GPU_HAS_MEMORY_USED);
}

static void test_memory_of_several_clients(void **state)
{
	const pid_t pids[] = { 20, 21 };

	for (int client = 1; client <= 3; client++)
		put(client < 3 ? 20 : 21, client,
		    "drm-driver:\tamdgpu\ndrm-client-id:\t%d\ndrm-pdev:\t0000:c3:00.0\n"
		    "drm-memory-vram:\t%d KiB\ndrm-memory-gtt:\t999 KiB\n"
		    "drm-engine-gfx:\t%d ns\n",
		    client, client * 100, client);
	read_at(1000, pids, 2);
	assert_int_equal(samples.nr_processes, 2);
	assert_int_equal(process(20, 0)->memory_used_bytes, 300 << 10);
	assert_int_equal(process(21, 0)->memory_used_bytes, 300 << 10);
}

static void test_device_clock(void **state)
{
	static const char format[] = "drm-driver:\txe\ndrm-client-id:\t3\ndrm-pdev:\t0000:03:00.0\n"
				     "drm-cycles-rcs:\t%d\ndrm-total-cycles-rcs:\t%d\n"
				     "drm-cycles-ccs:\t%d\ndrm-total-cycles-ccs:\t%d\n"
				     "drm-engine-capacity-ccs:\t4\n";
	const pid_t pids[] = { 10 };

	put(10, 5, format, 1000, 50000, 0, 50000);
	put(10, 6, format, 1000, 50010, 0, 50010);
	read_at(1000, pids, 1);
	put(10, 5, format, 2000, 54010, 8000, 54010);
	put(10, 6, format, 2000, 54000, 8000, 54000);
	read_at(9999, pids, 1);
	/* rcs: 1000 of 4000 cycles. ccs: 8000 of 4 times 4000 cycles. */
	check_use(0, 50);
	assert_int_equal(process(10, 0)->utilisation, 50);
}

static void test_process_comes_and_goes(void **state)
{
	const pid_t pids[] = { 10, 99, 11 };

	put_i915(10, 5, 7, 0, 0);
	read_at(1000, pids, 3);
	/* The counters of a new client include time before this interval. */
	put_i915(10, 5, 7, 30 * MS, 0);
	put_i915(11, 5, 8, 77777 * MS, 0);
	read_at(1100, pids, 3);
	check_use(0, 30);
	assert_false(process(11, 0)->valid & GPU_HAS_UTILISATION);
	remove(tree_path("proc/10/fdinfo/5"));
	remove(tree_path("proc/11/fdinfo/5"));
	read_at(1200, pids, 3);
	assert_int_equal(samples.nr_devices, 1);
	assert_int_equal(samples.devices[0].valid, GPU_HAS_NAME | GPU_HAS_PCI_ADDRESS);
	assert_int_equal(samples.nr_processes, 0);
	/* A client that returns is treated as new. */
	put_i915(10, 5, 7, 60 * MS, 0);
	read_at(1300, pids, 3);
	assert_false(samples.devices[0].valid & GPU_HAS_UTILISATION);
}

static void test_without_pci(void **state)
{
	const pid_t pids[] = { 10 };

	put(10, 5, "drm-driver: panfrost\ndrm-client-id: 1\ndrm-engine-fragment: 0 ns\n");
	put(10, 6, "drm-driver: panfrost\ndrm-engine-fragment: 5 ns\n");
	read_at(1000, pids, 1);
	put(10, 5, "drm-driver: panfrost\ndrm-client-id: 1\ndrm-engine-fragment: 10000000 ns\n");
	read_at(1100, pids, 1);
	assert_int_equal(samples.nr_devices, 1);
	assert_int_equal(samples.devices[0].valid,
			 GPU_HAS_NAME | GPU_HAS_UTILISATION | GPU_HAS_BUSY_TIME);
	check_use(0, 10);
	assert_int_equal(process(10, 0)->valid, GPU_HAS_UTILISATION);
	assert_int_equal(samples.nr_dropped, 1); /* the descriptor without an id */
}

static void test_garbage(void **state)
{
	static char huge[1 << 20];
	const pid_t pids[] = { 10, 11, 12, -1, 0 };
	static const char head[] = "drm-driver: i915\ndrm-client-id: 1\ndrm-engine-render: 5 ns\n";

	for (size_t i = 0; i < sizeof(huge); i++)
		huge[i] = (char)(i * 2654435761U >> 13);
	tree_write_bytes(tree_path("proc/10/fdinfo/1"), huge, sizeof(huge));
	memset(huge, 'x', sizeof(huge));
	memcpy(huge, head, strlen(head));
	tree_write_bytes(tree_path("proc/10/fdinfo/2"), huge, sizeof(huge));
	tree_write(tree_path("proc/10/fdinfo/3"), "");
	/* A file that disappeared after the listing; a directory; a pipe without a writer. */
	assert_int_equal(symlink("/nowhere", tree_path("proc/10/fdinfo/4")), 0);
	tree_path("proc/10/fdinfo/5/");
	assert_int_equal(mkfifo(tree_path("proc/10/fdinfo/6"), 0600), 0);
	tree_write(tree_path("proc/11"), "not a directory");
	read_at(1000, pids, 5);
	assert_int_equal(samples.nr_devices, 1);
	assert_int_equal(samples.nr_processes, 1);
	assert_int_equal(process(10, 0)->valid, 0);
}

static void test_too_many_are_counted(void **state)
{
	const pid_t pids[] = { 10 };

	for (int i = 0; i < 1030; i++)
		put_i915(10, i, i, 0, 0);
	read_at(1000, pids, 1);
	assert_int_equal(samples.nr_dropped, 1030 - 1024);
	assert_int_equal(process(10, 0)->memory_used_bytes, 1024 * 65536);
}

static void check_tenant_leaves_room(const char *file, const char *text)
{
	const pid_t pids[] = { 10, 11 };

	tree_write(tree_path("proc/10/%s", file), text);
	for (int i = 0; i < 1030; i++)
		put_i915(10, i, i, 0, 0);
	put_i915(11, 1, 2000, 0, 0);
	read_at(1000, pids, 2);
	assert_int_equal(samples.nr_dropped, 1030 - 768);
	assert_int_equal(process(10, 0)->memory_used_bytes, 768 * 65536);
	assert_int_equal(process(11, 0)->memory_used_bytes, 65536);
}

static void test_user_leaves_room(void **state)
{
	check_tenant_leaves_room("status", "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n");
}

static void test_container_of_root_leaves_room(void **state)
{
	check_tenant_leaves_room("cgroup", "0::/kubepods.slice/pod1\n");
}

/* Another process adds and removes descriptors all the time. */
static void test_changes_while_scanning(void **state)
{
	const pid_t pids[] = { 10 };
	u64 nr_right = 0;
	pid_t pid;

	put_i915(10, 5, 7, 0, 0);
	read_at(1000, pids, 1);
	pid = fork();
	assert_true(pid >= 0);
	while (pid == 0) {
		char path[512];

		put_i915(10, 8, 8, 0, 0);
		snprintf(path, sizeof(path), "%s", tree_path("proc/10/fdinfo/9"));
		rename(tree_path("proc/10/fdinfo/8"), path);
		remove(path);
	}
	/* The assertions come after the kill, so that the other process is always killed. */
	for (u64 i = 1; i <= 500; i++) {
		put_i915(10, 5, 7, i * 50000, 0);
		if (gpu_read(gpu, pids, 1, (1000 + i) * MS, &samples) == 0 &&
		    samples.nr_devices == 1 && samples.nr_processes == 1)
			nr_right += samples.devices[0].valid & GPU_HAS_UTILISATION &&
				    samples.devices[0].utilisation == 5;
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(nr_right, 500);
}

/* The real /proc: processes that exit during the scan, and this process. */
static void test_real_procfs(void **state)
{
	struct gpu_config config = tree_config;
	struct gpu *real = NULL;
	pid_t pids[40];

	config.procfs = "/proc";
	assert_int_equal(gpu_new(&config, &real), 0);
	pids[0] = getpid();
	for (int i = 1; i < 40; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			usleep((useconds_t)i * 100);
			_exit(0);
		}
	}
	for (int i = 0; i < 30; i++)
		assert_int_equal(gpu_read(real, pids, 40, (u64)i, &samples), 0);
	for (int i = 1; i < 40; i++)
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	assert_int_equal(samples.nr_devices, 0);
	assert_int_equal(samples.nr_processes, 0);
	gpu_free(real);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_first_sample_has_no_utilisation),
		TREE_TEST(test_busiest_engine_and_capacity),
		TREE_TEST(test_busy_time),
		TREE_TEST(test_counter_steps_back),
		TREE_TEST(test_client_counts_once),
		TREE_TEST(test_memory_of_several_clients),
		TREE_TEST(test_device_clock),
		TREE_TEST(test_process_comes_and_goes),
		TREE_TEST(test_without_pci),
		TREE_TEST(test_garbage),
		TREE_TEST(test_too_many_are_counted),
		TREE_TEST(test_user_leaves_room),
		TREE_TEST(test_container_of_root_leaves_room),
		TREE_TEST(test_changes_while_scanning),
		TREE_TEST(test_real_procfs),
	};

	alarm(400);
	return cmocka_run_group_tests_name("gpu fdinfo", tests, NULL, NULL);
}
