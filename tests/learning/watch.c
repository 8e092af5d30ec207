/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * watch NAME: watches processes whose names begin with NAME while zerneld runs, until SIGTERM or
 * until its standard input ends. Then prints one line per process, in the order of their start,
 * and one line for all processes, with the CPU time in each tier.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "learning/watch.h"
#include "watch.skel.h"

struct row {
	u32 pid;
	struct watched watched;
};

static int map_by_name(const char *name)
{
	for (u32 id = 0; bpf_map_get_next_id(id, &id) == 0;) {
		struct bpf_map_info info = {};
		u32 size = sizeof(info);
		int fd = bpf_map_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (bpf_map_get_info_by_fd(fd, &info, &size) == 0 && strcmp(info.name, name) == 0)
			return fd;
		close(fd);
	}
	return -ENOENT;
}

static int compare(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	return (x->watched.exec_ns > y->watched.exec_ns) -
	       (x->watched.exec_ns < y->watched.exec_ns);
}

static u32 read_rows(struct watch *skel, struct row *rows)
{
	u32 nr = 0;
	int fd = bpf_map__fd(skel->maps.processes_watched);

	for (u32 pid = 0, *previous = NULL;
	     nr < WATCH_PROCESSES && bpf_map_get_next_key(fd, previous, &pid) == 0; previous = &pid)
		if (bpf_map_lookup_elem(fd, &pid, &rows[nr].watched) == 0)
			rows[nr++].pid = pid;
	qsort(rows, nr, sizeof(*rows), compare);
	return nr;
}

static void print_rows(const struct row *rows, u32 nr)
{
	u64 ran_ns[TIER_NR] = {}, all_ns = 0;
	u32 nr_predicted = 0;

	for (u32 i = 0; i < nr; i++) {
		const struct watched *w = &rows[i].watched;

		printf("pid %u began %s%s, slices %u, us in batch %llu interactive %llu critical "
		       "%llu\n",
		       rows[i].pid, tier_label(w->first_tier), w->predicted ? " predicted" : "",
		       w->nr_slices, w->ran_ns[0] / 1000, w->ran_ns[1] / 1000, w->ran_ns[2] / 1000);
		nr_predicted += w->predicted;
		for (u32 tier = 0; tier < TIER_NR; tier++) {
			ran_ns[tier] += w->ran_ns[tier];
			all_ns += w->ran_ns[tier];
		}
	}
	printf("all: %u processes, %u predicted, %.3f s, permille in batch %llu interactive %llu "
	       "critical %llu\n",
	       nr, nr_predicted, (double)all_ns / 1e9, ran_ns[0] * 1000 / (all_ns + 1),
	       ran_ns[1] * 1000 / (all_ns + 1), ran_ns[2] * 1000 / (all_ns + 1));
}

int main(int argc, char **argv)
{
	static struct row rows[WATCH_PROCESSES];
	struct watch *skel = argc == 2 ? watch__open() : NULL;
	int fd = map_by_name("sched_tasks");
	char byte;

	if (!skel || fd < 0) {
		fputs("Usage: watch NAME, while zerneld runs\n", stderr);
		return 2;
	}
	snprintf((char *)skel->rodata->watched_name, COMM_LEN, "%s", argv[1]);
	if (bpf_map__reuse_fd(skel->maps.sched_tasks, fd) < 0 || watch__load(skel) < 0 ||
	    watch__attach(skel) < 0) {
		perror("watch");
		return 1;
	}
	puts("watching");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	print_rows(rows, read_rows(skel, rows));
	watch__destroy(skel);
	return 0;
}
