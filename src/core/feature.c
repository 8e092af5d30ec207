/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/feature.h"
#include <string.h>

static const struct feature_row rows[FEATURE_NR] = {
#define FEATURE(id, label_, since_, essential, loss_)                                              \
	[FEATURE_##id] = {                                                                         \
		.label = label_,                                                                   \
		.since = since_,                                                                   \
		.loss = loss_,                                                                     \
		.is_essential = essential,                                                         \
	},
#include "abi/features.def"
};

const struct feature_row *feature_row(u32 feature)
{
	return feature < FEATURE_NR ? &rows[feature] : NULL;
}

const char *feature_label(u32 feature)
{
	return feature < FEATURE_NR ? rows[feature].label : "unknown";
}

u32 features_essential(void)
{
	u32 set = 0;

	for (u32 i = 0; i < FEATURE_NR; i++)
		set |= rows[i].is_essential ? 1U << i : 0;
	return set;
}

/* Appends as much of the text as fits, and returns the new length. */
static size_t append(char *to, size_t used, size_t size, const char *text)
{
	size_t length = strlen(text), room = size - used - 1;

	length = length < room ? length : room;
	memcpy(to + used, text, length);
	to[used + length] = '\0';
	return used + length;
}

void features_list(u32 set, char *ret, size_t size)
{
	size_t used = 0;

	ret[0] = '\0';
	for (u32 i = 0; i < FEATURE_NR; i++) {
		if (!(set & (1U << i)))
			continue;
		used = append(ret, used, size, used ? ", " : "");
		used = append(ret, used, size, rows[i].label);
	}
}
