/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A reference-counted text that several clients can share. */
#include <stddef.h>
#include <stdlib.h>
#include "abi/types.h"

struct message {
	char *text;
	size_t length;
	u32 nr_refs;
};

/* Takes ownership of `text`, which must come from malloc(), also on failure. */
static inline struct message *message_new(char *text, size_t length)
{
	struct message *message = text ? malloc(sizeof(*message)) : NULL;

	if (!message) {
		free(text);
		return NULL;
	}
	*message = (struct message){ .text = text, .length = length, .nr_refs = 1 };
	return message;
}

static inline struct message *message_ref(struct message *message)
{
	message->nr_refs++;
	return message;
}

static inline void message_unref(struct message *message)
{
	if (!message || --message->nr_refs > 0)
		return;
	free(message->text);
	free(message);
}
