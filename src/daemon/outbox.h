/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A short queue of lines to send to a client, as fast as the client reads them. */
#include <stdbool.h>
#include "daemon/message.h"

#define OUTBOX_MAX	8
#define OUTBOX_HEAD_LEN 48

struct outbox {
	struct {
		char head[OUTBOX_HEAD_LEN]; /* for example {"id":7,"result": */
		struct message *body;
	} lines[OUTBOX_MAX];
	u32 nr;
	size_t nr_sent;	 /* bytes of the first line */
	u64 progress_ms; /* when data was last sent, or when the queue was last empty */
};

/* Takes ownership of the body. The outbox must have room. */
void outbox_add(struct outbox *outbox, const char *head, struct message *body, u64 now_ms);

/* Sends as much as possible without blocking. Returns an error if the client is gone. */
int outbox_flush(struct outbox *outbox, int fd, u64 now_ms);

void outbox_clear(struct outbox *outbox);
