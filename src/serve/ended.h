/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The answers for ended jobs, over their whole life. zerneld has the data of each job; the gateway
 * asks for it when a client wants the answer.
 */
#include "core/snapshot.h"
#include "serve/bodies.h"

#define ENDED_ANSWERS_MAX 8

struct ended_answer {
	char who[JOB_CGROUP_LEN]; /* as in the request: a name or a cgroup */
	struct body *body;	  /* NULL: zerneld has no such job */
};

/* Zeroed, it has no answer. A new answer replaces the oldest one. */
struct ended_answers {
	struct ended_answer rows[ENDED_ANSWERS_MAX];
	u32 nr_added;
};

/* Returns a reference. -EAGAIN: not known yet. -ENOENT: zerneld has no such job. */
int ended_answers_get(struct ended_answers *answers, const char *who, struct body **ret);
/* `ended` has one job and its processes; NULL: there is no such job. */
int ended_answers_add(struct ended_answers *answers, const char *who, struct snapshot *ended);
void ended_answers_clear(struct ended_answers *answers);
