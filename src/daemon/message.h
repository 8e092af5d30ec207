/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Text that several clients may be sent at once, and that goes with the last of them. */
#include <stddef.h>
#include <stdlib.h>
#include "abi/types.h"

struct message {
	char *text;
	size_t length;
	u32 nr_refs;
};

/* Takes over `text`, which malloc() made, also when there is no memory for it. */
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
