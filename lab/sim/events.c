// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Virtual time: a heap of events. Events at the same time happen in the order in which they were
 * made, so a run is the same each time.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include "sim/model.h"

#define EVENTS_MAX   (1U << 18)
#define TASKS_MEMORY (4ULL << 30) /* only what is used takes memory */

struct machine machine;

static struct event {
	u64 at, number;
	void (*act)(void *arg, u64 turn);
	void *arg;
	u64 turn;
} events[EVENTS_MAX];
static u32 nr_events;

_Noreturn void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "sim: at %llu ns: ", (unsigned long long)machine.now);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* Aligned to lines, so that the counts do not depend on where memory comes from. */
void *allocate(size_t size)
{
	void *memory = aligned_alloc(4096, (size + 4095) / 4096 * 4096);

	if (!memory)
		die("out of memory");
	for (size_t i = 0; i < size; i++)
		((char *)memory)[i] = 0;
	return memory;
}

static char *task_memory;
static size_t task_memory_used;

void *allocate_for_task(size_t size)
{
	void *at;

	if (!task_memory) {
		task_memory = mmap(NULL, TASKS_MEMORY, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (task_memory == MAP_FAILED)
			die("out of memory for tasks");
	}
	at = task_memory + task_memory_used;
	task_memory_used += (size + 63) / 64 * 64;
	if (task_memory_used > TASKS_MEMORY)
		die("more than %llu bytes of tasks", TASKS_MEMORY);
	return at;
}

bool is_task_memory(const void *at)
{
	return (const char *)at >= task_memory && (const char *)at < task_memory + task_memory_used;
}

static bool comes_first(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->number < b->number;
}

void event_at(u64 at, void (*act)(void *arg, u64 turn), void *arg, u64 turn)
{
	static u64 number;
	struct event event = { at, number++, act, arg, turn };
	u32 i = nr_events++;

	if (i >= EVENTS_MAX)
		die("more than %u events are pending", EVENTS_MAX);
	for (; i && comes_first(&event, &events[(i - 1) / 2]); i = (i - 1) / 2)
		events[i] = events[(i - 1) / 2];
	events[i] = event;
}

static struct event event_first(void)
{
	struct event first = events[0], last = events[--nr_events];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < nr_events) {
		if (child + 1 < nr_events && comes_first(&events[child + 1], &events[child]))
			child++;
		if (!comes_first(&events[child], &last))
			break;
		events[i] = events[child];
		i = child;
	}
	events[i] = last;
	return first;
}

void events_run(u64 until)
{
	while (nr_events && events[0].at <= until) {
		struct event event = event_first();

		machine.now = event.at;
		event.act(event.arg, event.turn);
	}
	machine.now = until;
}
