/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Folds all that is known into a snapshot, when somebody asks and now and then, so that
 * nothing is lost of processes that come and go in between.
 */
#include "base/macros.h"
#include "daemon/learning.h"
#include "daemon/message.h"
#include "daemon/sampler.h"
#include "daemon/supervisor.h"

/* A snapshot this old is as good as a new one. */
#define FOLDER_FRESH_NS (NSEC_PER_SEC / 10)

struct folder;

struct folder_sources {
	const struct supervisor *supervisor;
	const struct learning *learning;
	struct sampler *sampler; /* NULL: devices are not asked */
};

int folder_new(const char *version, struct folder **ret);
struct folder *folder_free(struct folder *folder);
DEFINE_CLEANUP(struct folder, folder_free);

/* From now on; they must outlive the folder, or be NULL. */
void folder_set_sources(struct folder *folder, const struct folder_sources *sources);

/* Call it once a second. */
void folder_tick(struct folder *folder);

/* For supervisor_new(): what a process measured up to its end is kept. */
void folder_on_event(void *ctx, struct kernel *kernel, const struct event *event);

/* A reference to the snapshot as JSON; NULL for want of memory. */
struct message *folder_message(struct folder *folder);

/* Folded anew if it is not fresh. Good until the next call of any function here. */
const struct snapshot *folder_snapshot(struct folder *folder);
