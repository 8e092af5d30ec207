/* SPDX-License-Identifier: GPL-2.0-only */
#include "work/times.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "truth/truth.h"
#include "work/burn.h"

#define ASKING_NS (100 * NSEC_PER_USEC)

int times_open(void)
{
	return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

/* The first number is the time on a CPU, but as of the last tick; the clock knows better. */
struct times times_read(int fd)
{
	struct times times = { .cpu_ns = thread_cpu_ns() };
	char text[128], *end;
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return times;
	text[n] = '\0';
	strtoull(text, &end, 10);
	times.delay_ns = strtoull(end, NULL, 10);
	return times;
}

struct times times_at(int fd, u64 now_ns)
{
	u64 cpu = thread_cpu_ns();
	struct times times = times_read(fd);
	u64 passed = truth_now_ns() - now_ns, ran = thread_cpu_ns() - cpu;

	times.cpu_ns = cpu;
	/* Somebody else had the CPU meanwhile; less than this is the asking itself. */
	if (passed > ran + ASKING_NS && passed - ran < times.delay_ns)
		times.delay_ns -= passed - ran;
	return times;
}

struct times times_since(int fd, struct times before)
{
	struct times now = times_read(fd);

	return (struct times){ now.cpu_ns - before.cpu_ns, now.delay_ns - before.delay_ns };
}
