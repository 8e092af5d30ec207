/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether Zernel can work here, and what to do if not. Each check is a row of a table in
 * doctor.c. They look at files only, all of them below `root`, and at what zerneld says.
 */
#include "cli/term.h"
#include "core/snapshot.h"

enum verdict {
	VERDICT_OK,
	VERDICT_WARNING, /* less than all of it works */
	VERDICT_FAILURE, /* Zernel, or its scheduler, cannot work */
	VERDICT_NR,
};

enum zerneld_state {
	ZERNELD_ABSENT,
	ZERNELD_REFUSES, /* this caller */
	ZERNELD_OTHER_VERSION,
	ZERNELD_BROKEN,
	ZERNELD_ANSWERS,
};

struct doctor {
	const char *root; /* what paths are put behind: "" but for tests */
	enum zerneld_state zerneld;
	char answer[256];		 /* why there is no snapshot */
	const struct snapshot *snapshot; /* NULL: there is none */
};

struct finding {
	enum verdict verdict;
	char text[320];
	const char *fix; /* NULL: the one of the check */
};

struct check {
	const char *name;
	struct finding (*look)(const struct doctor *doctor);
	const char *fix; /* the command that helps */
};

extern const struct check doctor_checks[]; /* up to one without a name */

/* Both return the worst verdict, which is the exit status as well, or -ENOMEM. */
int doctor_print(const struct doctor *doctor, const struct term *term);
int doctor_print_json(const struct doctor *doctor, FILE *out);
