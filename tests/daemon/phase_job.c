/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A process whose phase must be inferred: `phase_job KIND [FILE]`. It launches and syncs until
 * SIGUSR1, so that zerneld follows it. After that, it makes no calls that set the phase, and
 * gives the rules of the phase detector constant evidence:
 *
 *   io    a thread reads FILE without the page cache, and the launcher sleeps
 *   burst the launcher runs for 4 ms at a time
 *   busy  no evidence for a rule: it keeps the GPU busy for about half of the time
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/time.h"
#include "vgpu/include/vgpu.h"
#include "vgpu/include/vgpu_cudart.h"

#define BURST_NS  (4 * NSEC_PER_MSEC)
#define PAUSE_NS  (10 * NSEC_PER_MSEC)
#define KERNEL_NS (50 * NSEC_PER_MSEC)
#define BLOCK	  4096 /* alignment that O_DIRECT needs */

static volatile sig_atomic_t is_known;

static void on_known(int number)
{
	is_known = 1;
}

/* The phase detector does not count nanosleep() as a wait for data. */
static void pause_ns(u64 ns)
{
	struct timespec left = { .tv_sec = (time_t)(ns / NSEC_PER_SEC),
				 .tv_nsec = (long)(ns % NSEC_PER_SEC) };

	nanosleep(&left, NULL);
}

static void launch(u64 ns)
{
	void *arguments[] = { &ns };
	const dim3 one = { 1, 1, 1 };

	cudaLaunchKernel((const void *)vgpu_busy, one, one, arguments, 0, NULL);
	cudaDeviceSynchronize();
}

/* Zernel watches only threads that have called the runtime. */
static void *read_blocks(void *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
	char *block = aligned_alloc(BLOCK, BLOCK);

	while (!is_known) {
		cudaSetDevice(0);
		pause_ns(PAUSE_NS);
	}
	while (pread(fd, block, BLOCK, 0) == BLOCK)
		;
	perror(path);
	exit(EXIT_FAILURE);
}

static void sleep_on(void)
{
	pause_ns(3600 * NSEC_PER_SEC);
}

static void burst(void)
{
	u64 end = time_now_ns() + BURST_NS;

	while (time_now_ns() < end)
		;
	pause_ns(PAUSE_NS);
}

static void keep_busy(void)
{
	launch(KERNEL_NS);
	pause_ns(KERNEL_NS);
}

static const struct {
	const char *name;
	void (*turn)(void);
} kinds[] = { { "io", sleep_on }, { "burst", burst }, { "busy", keep_busy } };

int main(int argc, char **argv)
{
	pthread_t reader;
	size_t kind = 0;

	while (argc > 1 && kind < ARRAY_SIZE(kinds) && strcmp(argv[1], kinds[kind].name) != 0)
		kind++;
	if (argc < 2 || kind == ARRAY_SIZE(kinds))
		return 2;
	signal(SIGUSR1, on_known);
	cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync);
	if (argc > 2 && pthread_create(&reader, NULL, read_blocks, argv[2]))
		return EXIT_FAILURE;
	while (!is_known) {
		cudaSetDevice(0);
		launch(NSEC_PER_MSEC);
		pause_ns(PAUSE_NS);
	}
	for (;;)
		kinds[kind].turn();
}
