/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Lines on their way to a client: a few at most, sent as far as the client reads them. */
#include <stdbool.h>
#include "daemon/message.h"

#define OUTBOX_MAX	8
#define OUTBOX_HEAD_LEN 48

struct outbox {
	struct {
		char head[OUTBOX_HEAD_LEN]; /* as {"id":7,"result": */
		struct message *body;
	} lines[OUTBOX_MAX];
	u32 nr;
	size_t nr_sent;	 /* bytes of the first */
	u64 progress_ms; /* when the client last read something, or had nothing to read */
};

/* Takes over the body; there must be room. */
void outbox_add(struct outbox *outbox, const char *head, struct message *body, u64 now_ms);

/* Sends what can be sent without waiting. Below 0 when nobody is there any more. */
int outbox_flush(struct outbox *outbox, int fd, u64 now_ms);

void outbox_clear(struct outbox *outbox);
