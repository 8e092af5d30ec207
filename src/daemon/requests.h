/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The table of methods that do not concern the connection itself. */
#include "daemon/learning.h"
#include "daemon/lines.h"
#include "daemon/server.h"
#include "daemon/snapshot_builder.h"
#include "daemon/stacks.h"
#include "daemon/supervisor.h"
#include "daemon/usage.h"

struct requests {
	struct supervisor *supervisor;
	struct learning *learning;
	struct snapshot_builder *builder;
	struct lines *lines;
	struct stacks *stacks;
	struct oom_stacks *oom_stacks;
	struct usages *usages;
	u32 uid; /* the user whose data the current request may read; or SNAPSHOT_UID_UNKNOWN */
};

/* For struct server_ops; `ctx` is a struct requests. */
void requests_answer(void *ctx, const struct socket_peer *peer, enum access access,
		     const struct protocol_request *request, struct reply *reply);

/* requests_procdb.c */
void procdb_list(struct requests *requests, yyjson_val *params, struct reply *reply);
void procdb_show(struct requests *requests, yyjson_val *params, struct reply *reply);
void procdb_export(struct requests *requests, yyjson_val *params, struct reply *reply);
void procdb_import(struct requests *requests, yyjson_val *params, struct reply *reply);
void procdb_forget_named(struct requests *requests, yyjson_val *params, struct reply *reply);
