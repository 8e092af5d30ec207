/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/outbox.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define NR_PARTS 3

static const char line_end[] = "}\n";

void outbox_add(struct outbox *outbox, const char *head, struct message *body, u64 now_ms)
{
	if (outbox->nr == 0)
		outbox->progress_ms = now_ms;
	snprintf(outbox->lines[outbox->nr].head, OUTBOX_HEAD_LEN, "%s", head);
	outbox->lines[outbox->nr++].body = body;
}

static void remove_first(struct outbox *outbox)
{
	message_unref(outbox->lines[0].body);
	memmove(&outbox->lines[0], &outbox->lines[1], --outbox->nr * sizeof(outbox->lines[0]));
	outbox->nr_sent = 0;
}

/* Gets the unsent parts of the first line and returns their number. */
static size_t parts_left(struct outbox *outbox, struct iovec parts[static NR_PARTS])
{
	struct iovec all[NR_PARTS] = {
		{ outbox->lines[0].head, strlen(outbox->lines[0].head) },
		{ outbox->lines[0].body->text, outbox->lines[0].body->length },
		{ (void *)line_end, strlen(line_end) },
	};
	size_t skip = outbox->nr_sent, nr = 0;

	for (size_t i = 0; i < NR_PARTS; i++) {
		size_t skipped = skip < all[i].iov_len ? skip : all[i].iov_len;

		skip -= skipped;
		if (skipped < all[i].iov_len)
			parts[nr++] = (struct iovec){ (char *)all[i].iov_base + skipped,
						      all[i].iov_len - skipped };
	}
	return nr;
}

int outbox_flush(struct outbox *outbox, int fd, u64 now_ms)
{
	while (outbox->nr > 0) {
		struct iovec parts[NR_PARTS];
		struct msghdr header = { .msg_iov = parts,
					 .msg_iovlen = parts_left(outbox, parts) };
		ssize_t n = sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		outbox->progress_ms = now_ms;
		outbox->nr_sent += (size_t)n;
		if (parts_left(outbox, parts) == 0)
			remove_first(outbox);
	}
	return 0;
}

void outbox_clear(struct outbox *outbox)
{
	while (outbox->nr > 0)
		remove_first(outbox);
}
