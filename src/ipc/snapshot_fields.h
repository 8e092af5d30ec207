/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The JSON members of the structs of a snapshot. The writer and the reader use the same rows. */
#include <yyjson.h>
#include "core/snapshot.h"

enum field_type {
	FIELD_U32,
	FIELD_S32,
	FIELD_U64,
	FIELD_BOOL,	/* u8 */
	FIELD_PERMILLE, /* u32 up to 1000, written as a decimal from 0 to 1 */
	FIELD_GPU,	/* u32, null for SNAPSHOT_GPU_UNKNOWN */
	FIELD_UID,	/* u32, null for SNAPSHOT_UID_UNKNOWN */
	FIELD_TEXT,	/* nr: the size of the array */
	FIELD_LABEL,	/* u32, written as one of the nr labels */
	FIELD_LABELS,	/* u32 with a bit for each of the nr labels, a list of labels */
	FIELD_COUNTS,	/* u64[nr], an object by label */
	FIELD_COUNTS32, /* u32[nr], an object by label */
};

struct field {
	const char *key; /* NULL ends the table */
	enum field_type type;
	size_t offset;
	u32 nr;
	const char *(*label)(u32 i);
};

extern const struct field snapshot_fields[];
extern const struct field job_fields[];
extern const struct field rank_fields[];
extern const struct field account_fields[];
extern const struct field process_fields[];
/* The member `task` of a process, by the names of the reference. */
extern const struct field task_fields[];
extern const struct field memory_fields[];
extern const struct field culprit_fields[];
extern const struct field oom_fields[];
extern const struct field oom_other_fields[];
extern const struct field thread_fields[];
extern const struct field comm_fields[];
extern const struct field call_fields[];
extern const struct field gpu_fields[];
extern const struct field quota_fields[];
extern const struct field phase_detection_fields[];
extern const struct field sched_fields[];
extern const struct field class_fields[];
extern const struct field learning_fields[];
extern const struct field probes_fields[];
extern const struct field cost_fields[];
extern const struct field hist_fields[];

/* The key is present only when its bit in `valid` of the GPU is set. */
struct optional_field {
	u32 bit;
	struct field field;
};
#define GPU_OPTIONAL_NR 11
extern const struct optional_field gpu_optional_fields[GPU_OPTIONAL_NR];

/* Writes the text of one object that `put` fills. */
typedef bool (*snapshot_put_fn)(yyjson_mut_doc *doc, yyjson_mut_val *root,
				const struct snapshot *snapshot);
int snapshot_write(snapshot_put_fn put, const struct snapshot *snapshot, char **ret_text,
		   size_t *ret_len);
