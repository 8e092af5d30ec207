/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Checks whether Zernel can work here, and says what to do if not. Each check is a row of a table
 * in doctor.c. A check reads only files below `root` and the snapshot of zerneld.
 */
#include "cli/term.h"
#include "core/snapshot.h"

enum verdict {
	VERDICT_OK,
	VERDICT_WARNING, /* a part of Zernel does not work */
	VERDICT_FAILURE, /* Zernel or its scheduler cannot work */
	VERDICT_NR,
};

enum zerneld_state {
	ZERNELD_ABSENT,
	ZERNELD_REFUSES, /* refuses this caller */
	ZERNELD_OTHER_VERSION,
	ZERNELD_BROKEN,
	ZERNELD_ANSWERS,
};

struct doctor {
	const char *root; /* prefix of all paths: "" except in tests */
	enum zerneld_state zerneld;
	char answer[256];		 /* the reason, if there is no snapshot */
	const struct snapshot *snapshot; /* NULL: no snapshot */
};

struct finding {
	enum verdict verdict;
	char text[800];
	const char *fix; /* NULL: use the remedy of the check */
};

struct check {
	const char *name;
	struct finding (*look)(const struct doctor *doctor);
	const char *fix; /* the remedy: what to do */
};

extern const struct check doctor_checks[]; /* a row without a name ends it */

/* Both return the worst verdict, which is also the exit status, or -ENOMEM. */
int doctor_print(const struct doctor *doctor, const struct term *term);
int doctor_print_json(const struct doctor *doctor, FILE *out);
