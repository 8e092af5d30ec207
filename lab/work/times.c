/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "work/times.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "truth/truth.h"
#include "work/burn.h"

#define ASKING_NS (100 * NSEC_PER_USEC) /* a read takes longer only if the thread was preempted */
#define TRIES	  5

int times_open(void)
{
	return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

/* Reads the second number. The first is the time on a CPU, but only up to the last tick. */
static u64 read_delay(int fd)
{
	char text[128], *end;
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	strtoull(text, &end, 10);
	return strtoull(end, NULL, 10);
}

struct times times_read(int fd)
{
	struct times times = {};

	for (int i = 0; i < TRIES; i++) {
		u64 start = truth_now_ns(), cpu = thread_cpu_ns();

		times.delay_ns = read_delay(fd);
		times.cpu_ns = thread_cpu_ns();
		/* Both times belong to one moment only if the thread was not preempted. */
		if (truth_now_ns() - start <= times.cpu_ns - cpu + ASKING_NS)
			break;
	}
	return times;
}

struct times times_at(int fd, u64 now_ns)
{
	u64 cpu = thread_cpu_ns();
	struct times times = times_read(fd);
	u64 passed = truth_now_ns() - now_ns, ran = times.cpu_ns - cpu;

	times.cpu_ns = cpu;
	if (passed > ran + ASKING_NS && passed - ran < times.delay_ns)
		times.delay_ns -= passed - ran;
	return times;
}

struct times times_since(int fd, struct times before)
{
	struct times now = times_read(fd);

	return (struct times){ now.cpu_ns - before.cpu_ns, now.delay_ns - before.delay_ns };
}
