// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Counts what the operations of the scheduler cost.
 *
 * A line of memory belongs to the CPU that wrote it last. A write by another CPU takes the line
 * away from it, and a read by another CPU fetches it. That is what costs time on a large machine.
 * Memory of tasks is left out: it moves with its task.
 */
#include <string.h>
#include "sim/count.h"
#include "sim/model.h"

#define LINE_SHIFT  6
#define LINES_SLOTS (1U << 18)
#define NO_CPU	    0xffff

const char *const op_names[OP_NR] = {
	[OP_SELECT_CPU] = "select_cpu", [OP_ENQUEUE] = "enqueue",   [OP_DISPATCH] = "dispatch",
	[OP_RUNNING] = "running",	[OP_STOPPING] = "stopping", [OP_TICK] = "tick",
	[OP_TIMER] = "timer",		[OP_OTHER] = "other",
};

/* Operations that the kernel calls with the lock of a run queue held. */
static const bool holds_rq[OP_NR] = {
	[OP_ENQUEUE] = true,  [OP_DISPATCH] = true, [OP_RUNNING] = true,
	[OP_STOPPING] = true, [OP_TICK] = true,
};

static struct {
	bool is_on;
	enum op op;
	u32 cpu;
	u64 number; /* of the current operation */
	u64 now[COUNT_NR];
	struct op_counts ops[OP_NR];
	struct holds holds;
} counts;

static struct line {
	u64 address;
	u64 read_by;  /* number of the operation that read it last */
	u32 nr_taken; /* from another CPU by a write */
	u16 writer;
} lines[LINES_SLOTS];

void count_begin(enum op op, u32 cpu)
{
	if (counts.is_on)
		die("%s called inside of %s", op_names[op], op_names[counts.op]);
	counts.is_on = true;
	counts.op = op;
	counts.cpu = cpu;
	counts.number++;
	memset(counts.now, 0, sizeof(counts.now));
}

void count_end(void)
{
	struct op_counts *op = &counts.ops[counts.op];

	counts.is_on = false;
	op->nr++;
	for (u32 i = 0; i < COUNT_NR; i++) {
		op->sum[i] += counts.now[i];
		if (counts.now[i] > op->max[i])
			op->max[i] = counts.now[i];
	}
	if (holds_rq[counts.op] && counts.now[COUNT_WORK] > counts.holds.longest_rq) {
		counts.holds.longest_rq = counts.now[COUNT_WORK];
		counts.holds.rq_op = counts.op;
	}
}

void count_add(enum count count, u64 nr)
{
	if (counts.is_on)
		counts.now[count] += nr;
}

void count_lock(u64 steps)
{
	if (!counts.is_on)
		return;
	counts.now[COUNT_LOCKS]++;
	counts.now[COUNT_WORK] += steps;
	if (steps <= counts.holds.longest_dsq)
		return;
	counts.holds.longest_dsq = steps;
	counts.holds.dsq_op = counts.op;
}

void count_reset(void)
{
	memset(counts.ops, 0, sizeof(counts.ops));
	counts.holds = (struct holds){};
	for (u32 i = 0; i < LINES_SLOTS; i++)
		lines[i].nr_taken = 0;
}

u64 count_busiest_line(void)
{
	u64 most = 0;

	for (u32 i = 0; i < LINES_SLOTS; i++)
		if (lines[i].nr_taken > most)
			most = lines[i].nr_taken;
	return most;
}

const struct op_counts *count_of(enum op op)
{
	return &counts.ops[op];
}

const struct holds *count_holds(void)
{
	return &counts.holds;
}

static struct line *line_of(u64 address)
{
	u32 slot = (u32)(address % LINES_SLOTS);

	for (u32 i = 0; i < LINES_SLOTS; i++) {
		struct line *line = &lines[(slot + i) % LINES_SLOTS];

		if (!line->address)
			*line = (struct line){ .address = address, .writer = NO_CPU };
		if (line->address == address)
			return line;
	}
	die("more than %u lines of memory are in use", LINES_SLOTS);
}

static bool is_own_stack(const void *at)
{
	static const char *top;
	const char *here = __builtin_frame_address(0);

	/* The first operation is called from main(), some frames below the top. */
	if (!top)
		top = here + 65536;
	return (const char *)at >= here && (const char *)at < top;
}

static void touch(const void *at, size_t size, bool writes)
{
	u64 first = (u64)at >> LINE_SHIFT, last = ((u64)at + size - 1) >> LINE_SHIFT;

	if (!counts.is_on || !size)
		return;
	/* Not the lines that it touches: where a variable is on the stack differs from run to run.
	 */
	counts.now[COUNT_WORK] += (size + (1 << LINE_SHIFT) - 1) >> LINE_SHIFT;
	if (is_own_stack(at) || is_task_memory(at))
		return;
	for (u64 i = first; i <= last; i++) {
		struct line *line = line_of(i);
		bool is_remote = line->writer != counts.cpu && line->writer != NO_CPU;

		if (writes) {
			counts.now[COUNT_LINES_WRITTEN] += is_remote;
			line->nr_taken += is_remote;
			line->writer = (u16)counts.cpu;
		} else if (is_remote && line->read_by != counts.number) {
			counts.now[COUNT_LINES_READ]++;
		}
		line->read_by = counts.number;
	}
}

/* The functions that the compiler calls for each access: the interface of -fsanitize=thread. */
#define ACCESSES(size)                                                                             \
	void __tsan_read##size(void *at);                                                          \
	void __tsan_write##size(void *at);                                                         \
	void __tsan_unaligned_read##size(void *at);                                                \
	void __tsan_unaligned_write##size(void *at);                                               \
	void __tsan_read##size(void *at)                                                           \
	{                                                                                          \
		touch(at, size, false);                                                            \
	}                                                                                          \
	void __tsan_write##size(void *at)                                                          \
	{                                                                                          \
		touch(at, size, true);                                                             \
	}                                                                                          \
	void __tsan_unaligned_read##size(void *at)                                                 \
	{                                                                                          \
		touch(at, size, false);                                                            \
	}                                                                                          \
	void __tsan_unaligned_write##size(void *at)                                                \
	{                                                                                          \
		touch(at, size, true);                                                             \
	}
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

#define ATOMIC(bits, name, change)                                                                 \
	u##bits __tsan_atomic##bits##_##name(u##bits *at, u##bits value, int order);               \
	u##bits __tsan_atomic##bits##_##name(u##bits *at, u##bits value, int order)                \
	{                                                                                          \
		u##bits was = *at;                                                                 \
                                                                                                   \
		touch(at, sizeof(*at), true);                                                      \
		*at change value;                                                                  \
		return was;                                                                        \
	}

#define ATOMICS(bits)                                                                              \
	ATOMIC(bits, fetch_add, +=)                                                                \
	ATOMIC(bits, fetch_and, &=)                                                                \
	ATOMIC(bits, fetch_or, |=)                                                                 \
	ATOMIC(bits, exchange, =)                                                                  \
	u##bits __tsan_atomic##bits##_compare_exchange_val(u##bits *at, u##bits was,               \
							   u##bits value, int order, int other);   \
	u##bits __tsan_atomic##bits##_compare_exchange_val(u##bits *at, u##bits was,               \
							   u##bits value, int order, int other)    \
	{                                                                                          \
		u##bits found = *at;                                                               \
                                                                                                   \
		touch(at, sizeof(*at), true);                                                      \
		if (found == was)                                                                  \
			*at = value;                                                               \
		return found;                                                                      \
	}
ATOMICS(8)
ATOMICS(32)
ATOMICS(64)

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void *__tsan_memset(void *to, int value, size_t size);
void *__tsan_memcpy(void *to, const void *from, size_t size);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
}

void __tsan_func_exit(void)
{
}

void *__tsan_memset(void *to, int value, size_t size)
{
	touch(to, size, true);
	return memset(to, value, size);
}

void *__tsan_memcpy(void *to, const void *from, size_t size)
{
	touch(from, size, false);
	touch(to, size, true);
	return memcpy(to, from, size);
}
