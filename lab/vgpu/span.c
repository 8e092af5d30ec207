/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The times when a device was busy. Every process adds its spans to a ring without a
 * lock; a reader computes the union. Before the ring wraps, past spans are added to a
 * total, from which the energy is computed.
 */
#include <stdlib.h>

#include "truth/truth.h"
#include "vgpu/shm.h"

struct interval {
	u64 start, end;
};

static int interval_cmp(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static u32 interval_clip(struct interval *list, u32 nr, u64 start, u64 end, u64 from, u64 to)
{
	start = start < from ? from : start;
	end = end > to ? to : end;
	if (start >= end)
		return nr;
	list[nr] = (struct interval){ start, end };
	return nr + 1;
}

/* `list` must have room for every span and every process. */
static u32 intervals_of(const struct shm *shm, u32 device, u32 proc, u32 kinds, u64 from, u64 to,
			struct interval *list)
{
	const struct shm_device *dev = &shm->devices[device];
	u32 nr = 0;

	for (u32 i = 0; i < SHM_SPANS; i++) {
		const struct shm_span *span = &dev->spans[i];
		u64 end = __atomic_load_n(&span->end_ns, __ATOMIC_ACQUIRE);

		if (end <= from || !(span->kind & kinds) ||
		    (proc != SHM_ANY_PROC && span->proc != proc))
			continue;
		nr = interval_clip(list, nr, span->start_ns, end, from, to);
	}
	for (u32 i = 0; i < SHM_PROCS; i++) {
		u64 open = shm->procs[i].open_since_ns[device];

		if (open && (kinds & SHM_SPAN_COLLECTIVE) && (proc == SHM_ANY_PROC || proc == i))
			nr = interval_clip(list, nr, open, to, from, to);
	}
	return nr;
}

u64 shm_busy_ns(const struct shm *shm, u32 device, u32 proc, u32 kinds, u64 from_ns, u64 to_ns)
{
	struct interval *list = malloc((SHM_SPANS + SHM_PROCS) * sizeof(*list));
	u64 busy = 0, reached = from_ns;
	u32 nr;

	if (!list)
		return 0;
	nr = intervals_of(shm, device, proc, kinds, from_ns, to_ns, list);
	qsort(list, nr, sizeof(*list), interval_cmp);
	for (u32 i = 0; i < nr; i++) {
		u64 start = list[i].start > reached ? list[i].start : reached;

		if (list[i].end > start) {
			busy += list[i].end - start;
			reached = list[i].end;
		}
	}
	free(list);
	return busy;
}

u64 shm_busy_total_ns(struct shm *shm, u32 device, u64 now_ns)
{
	struct shm_device *dev = &shm->devices[device];

	if (now_ns > dev->folded_until_ns) {
		dev->folded_busy_ns += shm_busy_ns(shm, device, SHM_ANY_PROC, SHM_SPAN_KERNELS,
						   dev->folded_until_ns, now_ns);
		dev->folded_until_ns = now_ns;
	}
	return dev->folded_busy_ns;
}

/* Work queued right after the last span of this process extends that span. */
static bool span_extend(struct shm_device *dev, u32 proc, u32 kind, u64 start_ns, u64 end_ns,
			u64 cursor)
{
	struct shm_span *span;

	if (!cursor || __atomic_load_n(&dev->head, __ATOMIC_RELAXED) - cursor >= SHM_SPANS / 2)
		return false;
	span = &dev->spans[(cursor - 1) % SHM_SPANS];
	if (span->proc != proc || span->kind != kind || start_ns < span->start_ns ||
	    start_ns > span->end_ns)
		return false;
	if (end_ns > span->end_ns)
		__atomic_store_n(&span->end_ns, end_ns, __ATOMIC_RELEASE);
	return true;
}

void shm_span_add(struct shm *shm, u32 device, u32 proc, u32 kind, u64 start_ns, u64 end_ns,
		  u64 *cursor)
{
	struct shm_device *dev = &shm->devices[device];
	struct shm_span *span;
	u64 at;

	if (end_ns <= start_ns || span_extend(dev, proc, kind, start_ns, end_ns, *cursor))
		return;
	at = __atomic_fetch_add(&dev->head, 1, __ATOMIC_RELAXED);
	span = &dev->spans[at % SHM_SPANS];
	__atomic_store_n(&span->end_ns, 0, __ATOMIC_RELEASE);
	span->start_ns = start_ns;
	span->proc = proc;
	span->kind = kind;
	__atomic_store_n(&span->end_ns, end_ns, __ATOMIC_RELEASE);
	*cursor = at + 1;
	if (at % (SHM_SPANS / 4) == SHM_SPANS / 4 - 1) {
		SHM_LOCKED(shm);

		shm_busy_total_ns(shm, device, truth_now_ns());
	}
}
