/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/usage.h"
#include <stddef.h>

bool usage_of_part(const struct usage *usage, u32 index, struct usage_part *ret)
{
	const struct usage_part *before = NULL;

	for (u32 i = 0; i < index; i++)
		if (usage->parts[i].nr)
			before = &usage->parts[i];
	*ret = usage->parts[index];
	if (!before)
		return ret->nr;
	if (!ret->nr || before->allocated_bytes > ret->allocated_most) {
		ret->allocated_most = before->allocated_bytes;
		ret->reserved_then = before->reserved_bytes;
	}
	if (!ret->nr) {
		ret->allocated_bytes = before->allocated_bytes;
		ret->reserved_bytes = before->reserved_bytes;
	}
	return true;
}

u32 usage_nr_parts(const struct usage *usage)
{
	u32 nr = USAGE_PARTS;

	while (nr && !usage->parts[nr - 1].nr)
		nr--;
	return nr;
}
