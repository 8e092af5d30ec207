/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES 4096

static void fail(struct text *text)
{
	text_clear(text);
	text->error = -ENOMEM;
}

void text_add(struct text *text, const char *bytes, size_t length)
{
	size_t needed = text->length + length + 1, capacity = 2 * text->capacity;
	char *larger;

	if (text->error)
		return;
	if (needed > text->capacity) {
		if (capacity < FIRST_BYTES)
			capacity = FIRST_BYTES;
		if (capacity < needed)
			capacity = needed;
		larger = realloc(text->data, capacity);
		if (!larger) {
			fail(text);
			return;
		}
		text->data = larger;
		text->capacity = capacity;
	}
	memcpy(text->data + text->length, bytes, length);
	text->length += length;
	text->data[text->length] = '\0';
}

void text_add_string(struct text *text, const char *string)
{
	text_add(text, string, strlen(string));
}

int text_end(struct text *text)
{
	char *smaller = text->data ? realloc(text->data, text->length + 1) : NULL;

	if (smaller) {
		text->data = smaller;
		text->capacity = text->length + 1;
	}
	return text->error;
}

void text_clear(struct text *text)
{
	free(text->data);
	*text = (struct text){};
}
