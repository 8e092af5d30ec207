/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answers/sentence.h"
#include <stdarg.h>
#include <stdio.h>

void sentence_add(struct sentence *sentence, const char *format, ...)
{
	size_t room = sentence->size - sentence->used;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(sentence->text + sentence->used, room, format, arguments);
	va_end(arguments);
	if (n > 0)
		sentence->used += (size_t)n < room ? (size_t)n : room - 1;
}
