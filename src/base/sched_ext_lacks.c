/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Prints the struct and functions that the scheduler needs and a kernel lacks, one name per line.
 * tools/kernel compiles it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/sched_ext.h"

int main(int argc, char **argv)
{
	CLEANUP(btf__free_cleanup) struct btf *btf = NULL;
	struct sched_ext_gap gap;
	size_t position = 0;

	if (argc != 2) {
		fprintf(stderr, "Usage: sched-ext-lacks FILE\n\nFILE is a vmlinux or raw BTF.\n");
		return 2;
	}
	btf = btf__parse(argv[1], NULL);
	if (!btf)
		fprintf(stderr, "sched-ext-lacks: cannot read the BTF of %s: %s\n", argv[1],
			strerror(errno));
	while (sched_ext_next_gap(btf, &position, &gap))
		puts(gap.name);
	return 0;
}
