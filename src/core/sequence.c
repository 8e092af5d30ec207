/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/sequence.h"
#include <stddef.h>

const struct collective_call *sequence_find(const struct sequence *sequence, u64 number)
{
	const struct collective_call *call = &sequence->calls[number & (SEQUENCE_KEPT - 1)];

	/* Differences, because numbers may wrap. */
	if (sequence->nr - number >= SEQUENCE_KEPT || !call->entered_ns)
		return NULL;
	return call->number == (u32)number ? call : NULL;
}
