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
	if (!ret->nr) {
		ret->allocated_bytes = before->allocated_bytes;
		ret->reserved_bytes = before->reserved_bytes;
	}
	if (before->allocated_bytes > ret->allocated_most)
		ret->allocated_most = before->allocated_bytes;
	if (before->reserved_bytes > ret->reserved_most)
		ret->reserved_most = before->reserved_bytes;
	return true;
}
