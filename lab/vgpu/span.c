/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The times when a device was busy. Every process adds its spans to a ring without a
 * lock; a reader computes the union. Before the ring wraps, past spans are added to the
 * device's totals, which also contain its sample periods.
 */
#include <stdlib.h>

#include "truth/truth.h"
#include "vgpu/shm.h"

/* A writer that lost its CPU may add a span that started this long ago. */
#define FOLD_DELAY_NS (50 * NSEC_PER_MSEC)

/* The start or end of a span: what changes on the device. */
struct edge {
	u64 time_ns;
	s32 kernels;
	s32 any;
	s32 sm_percent;
};

struct edges {
	u64 from_ns, to_ns;
	u32 nr;
	struct edge *list;
};

static int edge_cmp(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static void edges_add(struct edges *edges, u64 start, u64 end, u32 kind, u32 sm_percent)
{
	s32 kernel = kind != SHM_SPAN_COPY, sm = (s32)sm_percent;

	start = start < edges->from_ns ? edges->from_ns : start;
	end = end > edges->to_ns ? edges->to_ns : end;
	if (start >= end)
		return;
	edges->list[edges->nr++] = (struct edge){ start, kernel, 1, sm };
	edges->list[edges->nr++] = (struct edge){ end, -kernel, -1, -sm };
}

u32 shm_span_count(const struct shm_device *device)
{
	u64 head = __atomic_load_n(&device->head, __ATOMIC_ACQUIRE);

	return head < SHM_SPANS ? (u32)head : SHM_SPANS;
}

static void edges_read(const struct shm *shm, u32 device, u32 proc, u32 nr_spans,
		       struct edges *edges)
{
	const struct shm_device *dev = &shm->devices[device];

	for (u32 i = 0; i < nr_spans; i++) {
		const struct shm_span *span = &dev->spans[i];
		u64 end = __atomic_load_n(&span->end_ns, __ATOMIC_ACQUIRE);

		if (end > edges->from_ns && (proc == SHM_ANY_PROC || span->proc == proc))
			edges_add(edges, span->start_ns, end, span->kind, span->sm_percent);
	}
	for (u32 i = 0; i < SHM_PROCS; i++) {
		u64 open = shm->procs[i].open_since_ns[device];

		if (open && (proc == SHM_ANY_PROC || proc == i))
			edges_add(edges, open, edges->to_ns, SHM_SPAN_COLLECTIVE,
				  SHM_COLLECTIVE_SM_PERCENT);
	}
	qsort(edges->list, edges->nr, sizeof(edges->list[0]), edge_cmp);
}

/* Adds a time in which nothing changed on the device. */
static void fold_add(struct shm_fold *fold, u64 from, u64 to, const struct edge *now)
{
	u64 sm = now->sm_percent > 100 ? 100 : (u64)now->sm_percent;

	if (now->kernels)
		fold->kernel_ns += to - from;
	fold->sm_ns += (to - from) * sm / 100;
	while (from < to && now->any) {
		u64 number = from / SHM_PERIOD_NS, end = (number + 1) * SHM_PERIOD_NS;
		struct shm_period *period = &fold->periods[number % (SHM_PERIODS + 1)];

		if (period->number != number)
			*period = (struct shm_period){ .number = number };
		end = end < to ? end : to;
		period->any_ns += end - from;
		if (now->kernels)
			period->kernel_ns += end - from;
		from = end;
	}
}

void shm_fold_extend(const struct shm *shm, u32 device, u32 proc, u64 until_ns,
		     struct shm_fold *fold)
{
	u32 nr_spans = shm_span_count(&shm->devices[device]);
	struct edges edges = { .from_ns = fold->until_ns, .to_ns = until_ns };
	struct edge now = {};

	if (until_ns <= fold->until_ns)
		return;
	edges.list = malloc(2 * (nr_spans + SHM_PROCS) * sizeof(edges.list[0]));
	if (!edges.list)
		return;
	edges_read(shm, device, proc, nr_spans, &edges);
	for (u32 i = 0; i < edges.nr; i++) {
		const struct edge *edge = &edges.list[i];

		fold_add(fold, now.time_ns, edge->time_ns, &now);
		now.time_ns = edge->time_ns;
		now.kernels += edge->kernels;
		now.any += edge->any;
		now.sm_percent += edge->sm_percent;
	}
	fold->until_ns = until_ns;
	free(edges.list);
}

void shm_fold_read(struct shm *shm, u32 device, u64 now_ns, struct shm_fold *ret)
{
	struct shm_fold *fold = &shm->devices[device].fold;

	/* A reader folds the past as well, so that the next one has little to sort. */
	if (now_ns > FOLD_DELAY_NS)
		shm_fold_extend(shm, device, SHM_ANY_PROC, now_ns - FOLD_DELAY_NS, fold);
	*ret = *fold;
	shm_fold_extend(shm, device, SHM_ANY_PROC, now_ns, ret);
}

struct shm_period shm_period_of(const struct shm_fold *fold, u64 number)
{
	struct shm_period period = fold->periods[number % (SHM_PERIODS + 1)];

	return period.number == number ? period : (struct shm_period){ .number = number };
}

/* Work queued right after the last span of this process extends that span. */
static bool span_extend(struct shm_device *dev, const struct shm_span *next, u64 cursor)
{
	struct shm_span *span;

	if (!cursor || __atomic_load_n(&dev->head, __ATOMIC_RELAXED) - cursor >= SHM_SPANS / 2)
		return false;
	span = &dev->spans[(cursor - 1) % SHM_SPANS];
	if (span->proc != next->proc || span->kind != next->kind ||
	    span->sm_percent != next->sm_percent || next->start_ns < span->start_ns ||
	    next->start_ns > span->end_ns)
		return false;
	if (next->end_ns > span->end_ns)
		__atomic_store_n(&span->end_ns, next->end_ns, __ATOMIC_RELEASE);
	return true;
}

/* Adds the past to the totals, at the latest when a quarter of the ring is left. */
static void device_fold(struct shm *shm, u32 device, u64 at)
{
	struct shm_device *dev = &shm->devices[device];
	u64 now = truth_now_ns(), until = now - FOLD_DELAY_NS, half;

	if (at >= SHM_SPANS / 2) {
		half = dev->spans[(at - SHM_SPANS / 2) % SHM_SPANS].start_ns;
		half = half < now ? half : now;
		until = half > until ? half : until;
	}
	SHM_LOCKED(shm);
	shm_fold_extend(shm, device, SHM_ANY_PROC, until, &dev->fold);
}

void shm_span_add(struct shm *shm, u32 device, u32 proc, u32 kind, u32 sm_percent, u64 start_ns,
		  u64 end_ns, u64 *cursor)
{
	struct shm_device *dev = &shm->devices[device];
	struct shm_span *span, next = { start_ns, end_ns, proc, (u16)kind, (u16)sm_percent };
	u64 at;

	if (end_ns <= start_ns || span_extend(dev, &next, *cursor))
		return;
	at = __atomic_fetch_add(&dev->head, 1, __ATOMIC_RELAXED);
	span = &dev->spans[at % SHM_SPANS];
	next.end_ns = 0;
	__atomic_store_n(&span->end_ns, 0, __ATOMIC_RELEASE);
	*span = next;
	__atomic_store_n(&span->end_ns, end_ns, __ATOMIC_RELEASE);
	*cursor = at + 1;
	if (at % (SHM_SPANS / 4) == SHM_SPANS / 4 - 1)
		device_fold(shm, device, at);
}
