/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A snapshot as one line of JSON. Reading the line gives the same snapshot that was
 * written. docs/reference/protocol.md describes it as the reply to `snapshot`.
 */
#include <yyjson.h>
#include "base/text.h"
#include "core/snapshot.h"
#include "ipc/json_parts.h"

/* The caller frees *ret_text. It has a terminating zero that *ret_len does not count. */
int snapshot_to_json(const struct snapshot *snapshot, char **ret_text, size_t *ret_len);
/* Adds it to a text, which has the error if memory is missing there. */
int snapshot_add_json(const struct snapshot *snapshot, struct text *text);

/*
 * Parses untrusted text. -EBADMSG: not a snapshot. -EPROTONOSUPPORT: unknown version.
 * -E2BIG: larger than the limit of a snapshot. Unknown keys are skipped, and missing keys
 * are zero. Version 1 is supported because recordings contain it.
 */
int snapshot_from_json(const char *text, size_t len, struct snapshot **ret);
/* The same for a parsed value; NULL gives -EBADMSG. */
int snapshot_from_value(yyjson_val *root, struct snapshot **ret);
/* The same for a value of a text whose long lists are parsed in pieces. */
extern const char *const snapshot_long_lists[];
int snapshot_from_parts(yyjson_val *root, struct json_parts *parts, struct snapshot **ret);

/* The keys that older dashboards use, merged over all processes. */
int snapshot_to_legacy_json(const struct snapshot *snapshot, char **ret_text, size_t *ret_len);
