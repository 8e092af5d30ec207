/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A process that zerneld asks and never waits for. It has one request at a time. It is killed when
 * it does not answer in time or answers nonsense, and started again at growing intervals.
 */
#include <stdbool.h>
#include <stddef.h>
#include "daemon/loop.h"
#include "daemon/starter.h"

/* Processes of one helper that were killed and have not ended. */
#define HELPER_REMAINS_MAX 64
#define HELPER_NONE	   (-1)

enum helper_failure {
	HELPER_LEFT,  /* it ended before it was asked */
	HELPER_ENDED, /* without a valid answer */
	HELPER_HUNG,
};

struct helper_ops {
	size_t message_bytes; /* maximum size of an answer */
	u64 first_ns;	      /* how long the first answer may take */
	u64 answer_ns;	      /* how long each other message may take */
	/*
	 * A process that waits for a driver or for a file server of another user cannot be killed.
	 * No process is started while as many remain.
	 */
	u32 max_remains;
	/*
	 * Handles a message of an answer, with a descriptor unless `fd` is negative, which the
	 * caller closes. Positive: more messages follow. Negative: the message is invalid, and
	 * the process is killed.
	 */
	int (*on_answer)(void *ctx, const void *message, size_t size, int fd);
	/* Unless NULL: an answer is complete, so that the process can be asked again; it failed. */
	void (*on_idle)(void *ctx);
	/* `remain` is the number of a process that hung, until on_gone(); else HELPER_NONE. */
	void (*on_fail)(void *ctx, enum helper_failure failure, int remain);
	void (*on_gone)(void *ctx, int remain);
};

struct helper {
	struct starter *starter;
	struct loop *loop;
	enum program program;
	const char *name; /* for the log */
	const struct helper_ops *ops;
	void *ctx;
	void *buffer;
	struct loop_source source;
	int fd;
	bool is_running;
	bool is_asked;	   /* and has not answered */
	bool has_answered; /* since it was started */
	u64 asked_ns;
	u64 started_ns;
	u64 start_ns;	/* when to start it again */
	u64 backoff_ns; /* the next pause before a start */
	u64 nr_restarts;
	/* Sockets, each of which ends with its process; positive. */
	int remains[HELPER_REMAINS_MAX];
	u32 nr_remains;
};

/* Starts nothing: helper_tick() does. `ops` and `name` must outlive the helper. */
int helper_init(struct helper *helper, struct starter *starter, struct loop *loop,
		enum program program, const char *name, const struct helper_ops *ops, void *ctx);
void helper_done(struct helper *helper);

/* Starts the process if it is due, and kills it if it does not answer. Call it often. */
void helper_tick(struct helper *helper, u64 now_ns);

/* Whether helper_ask() can be called: the process runs and has no request. */
bool helper_is_idle(const struct helper *helper);
void helper_ask(struct helper *helper, const void *request, size_t size, u64 now_ns);
