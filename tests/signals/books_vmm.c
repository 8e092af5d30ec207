/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Handles and mappings. Each thread has its own address range. */
#include "signals/books_caller.h"

void op_create_handle(struct caller *c)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE,
			      one_in(c, 16) ? 99 : (int)below(c, BOOKS_DEVICES) },
	};
	struct handle handle = { .nr_units = 1 + below(c, 4) };
	u64 size = one_in(c, 16) ? (one_in(c, 2) ? 1000 : 1ULL << 33) : handle.nr_units * UNIT;

	if (c->nr_handles < MAX_HANDLES && CALL_DRV(MemCreate, &handle.handle, size, &prop, 0) == 0)
		c->handles[c->nr_handles++] = handle;
}

static bool unit_is_free(const struct caller *c, u32 unit)
{
	for (u32 i = 0; i < c->nr_mappings; i++)
		if (unit >= c->mappings[i].unit &&
		    unit < c->mappings[i].unit + c->mappings[i].nr_units)
			return false;
	return true;
}

/* Returns the first free range, so that mappings become adjacent. */
static u32 find_units(const struct caller *c, u32 nr)
{
	u32 run = 0;

	for (u32 unit = 0; unit < NR_UNITS; unit++) {
		run = unit_is_free(c, unit) ? run + 1 : 0;
		if (run == nr)
			return unit + 1 - nr;
	}
	return 0;
}

void op_map(struct caller *c)
{
	const struct handle *handle = c->nr_handles ? &c->handles[below(c, c->nr_handles)] : NULL;
	u32 unit;

	if (!handle)
		return op_create_handle(c);
	unit = one_in(c, 16) ? 0 : find_units(c, handle->nr_units);
	if (CALL_DRV(MemMap, c->range + unit * UNIT, handle->nr_units * UNIT, 0, handle->handle,
		     0) == 0)
		c->mappings[c->nr_mappings++] = (struct mapping){ unit, handle->nr_units };
}

static int mapping_at(const struct caller *c, u32 unit)
{
	for (u32 i = 0; i < c->nr_mappings; i++)
		if (c->mappings[i].unit == unit)
			return (int)i;
	return -1;
}

/* Unmaps one mapping or several adjacent ones; the range may also be invalid. */
void op_unmap(struct caller *c)
{
	u32 start, end, nr = 1 + below(c, 3);

	if (!c->nr_mappings || one_in(c, 16)) {
		start = below(c, NR_UNITS);
		if (mapping_at(c, start) < 0)
			CALL_DRV(MemUnmap, c->range + start * UNIT, UNIT);
		return;
	}
	start = end = c->mappings[below(c, c->nr_mappings)].unit;
	for (u32 i = 0; i < nr && mapping_at(c, end) >= 0; i++)
		end += c->mappings[mapping_at(c, end)].nr_units;
	if (CALL_DRV(MemUnmap, c->range + start * UNIT, (end - start) * UNIT))
		return;
	while (start < end) {
		int i = mapping_at(c, start);

		start += c->mappings[i].nr_units;
		c->mappings[i] = c->mappings[--c->nr_mappings];
	}
}

void op_release_handle(struct caller *c)
{
	u32 i = below(c, c->nr_handles + !c->nr_handles);

	if (!c->nr_handles)
		return op_create_handle(c);
	/* A second release is invalid; try it only while no other thread can get the handle. */
	if (CALL_DRV(MemRelease, c->handles[i].handle) == 0 && in_turn() && one_in(c, 4))
		return;
	c->handles[i] = c->handles[--c->nr_handles];
}
