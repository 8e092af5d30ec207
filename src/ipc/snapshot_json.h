/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A snapshot as JSON: one line, all whole numbers, keys by name. What is written and
 * read again is the same snapshot. docs/PROTOCOL.md has it as the `snapshot` reply.
 */
#include <yyjson.h>
#include "core/snapshot.h"

/* The caller frees *ret_text, which ends with a zero that does not count. */
int snapshot_to_json(const struct snapshot *snapshot, char **ret_text, size_t *ret_len);

/*
 * Reads what anybody may have written. -EBADMSG: no snapshot; -EPROTONOSUPPORT: of a
 * version that is not known here; -E2BIG: larger than a snapshot may be. Keys that are not
 * known are passed over, and what is not there is zero. Snapshots of version 1 are read too,
 * since recordings have them.
 */
int snapshot_from_json(const char *text, size_t len, struct snapshot **ret);
/* The same of a value that is parsed already; NULL is no snapshot. */
int snapshot_from_value(yyjson_val *root, struct snapshot **ret);

/* The keys of old dashboards, over all processes. */
int snapshot_to_legacy_json(const struct snapshot *snapshot, char **ret_text, size_t *ret_len);
