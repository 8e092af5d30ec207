/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A text of bounded length that is written part by part. What does not fit is cut off. */
#include <stddef.h>

struct sentence {
	char *text;
	size_t size;
	size_t used;
};

__attribute__((format(printf, 2, 3))) void sentence_add(struct sentence *sentence,
							const char *format, ...);
