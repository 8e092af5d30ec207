/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "truth/dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_truth_log(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > 6 && strcmp(entry->d_name + len - 6, ".truth") == 0;
}

static int dir_add(struct truth_dir *dir, const char *path, char *name)
{
	struct truth_file *file = &dir->files[dir->nr_files];
	char full[4096];
	int r;

	snprintf(full, sizeof(full), "%s/%s", path, name);
	r = truth_read(full, file);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", full, strerror(-r));
		dir->nr_unreadable++;
		return 0;
	}
	dir->names[dir->nr_files] = strdup(name);
	if (!dir->names[dir->nr_files]) {
		truth_file_done(file);
		return -ENOMEM;
	}
	dir->nr_files++;
	return 0;
}

int truth_dir_read(const char *path, struct truth_dir *ret)
{
	struct truth_dir dir = {};
	struct dirent **entries;
	int r = 0, nr = scandir(path, &entries, is_truth_log, alphasort);

	if (nr < 0)
		return -errno;
	dir.files = calloc((size_t)nr + 1, sizeof(*dir.files));
	dir.names = calloc((size_t)nr + 1, sizeof(*dir.names));
	if (!dir.files || !dir.names)
		r = -ENOMEM;
	for (int i = 0; i < nr; i++) {
		if (r == 0)
			r = dir_add(&dir, path, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	if (r < 0) {
		truth_dir_done(&dir);
		return r;
	}
	*ret = dir;
	return 0;
}

void truth_dir_done(struct truth_dir *dir)
{
	for (u64 i = 0; i < dir->nr_files; i++) {
		truth_file_done(&dir->files[i]);
		free(dir->names[i]);
	}
	free(dir->files);
	free(dir->names);
	*dir = (struct truth_dir){};
}

int truth_dir_collect(const struct truth_dir *dir, enum truth_kind kind,
		      struct truth_event **ret_events, u64 *ret_nr)
{
	struct truth_event *events;
	u64 nr = 0;

	for (u64 i = 0; i < dir->nr_files; i++)
		for (u64 j = 0; j < dir->files[i].nr_records; j++)
			nr += dir->files[i].records[j].kind == kind;
	events = malloc((nr + 1) * sizeof(*events));
	if (!events)
		return -ENOMEM;
	nr = 0;
	for (u64 i = 0; i < dir->nr_files; i++) {
		const struct truth_file *file = &dir->files[i];

		for (u64 j = 0; j < file->nr_records; j++)
			if (file->records[j].kind == kind)
				events[nr++] =
					(struct truth_event){ file->header.pid, file->records[j] };
	}
	*ret_events = events;
	*ret_nr = nr;
	return 0;
}
