/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The files of the dashboard. tools/dashboard.py makes them from web/ at build time, and the
 * program contains them, compressed with gzip.
 */
#include <stdbool.h>
#include <stddef.h>

struct asset {
	const char *path; /* NULL ends the table */
	const char *type;
	const unsigned char *data;
	const unsigned char *end;
	bool is_immutable; /* the path has a hash of the content */
};

#define ASSETS_MAX 4

/* Without the dashboard, the table is empty. */
extern const struct asset assets[];

/* NULL: no file has this path. */
const struct asset *asset_find(const char *path);

/*
 * The page of an export, in two parts: the JSON text of the data goes between them. A part
 * ends at its _end. Not for a build without the dashboard.
 */
extern const unsigned char dashboard_page_before[], dashboard_page_before_end[];
extern const unsigned char dashboard_page_after[], dashboard_page_after_end[];
