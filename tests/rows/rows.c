/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Looks up every row of runtimes.def in libraries and classifies the instruction under each
 * probe. Prints lines for scripts: "library FILE RUNTIME DROPPED", then "found SYMBOL",
 * "missing SYMBOL" and "stepped SYMBOL", where a stepped symbol is also found.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "collect/library_file.h"

static const char *const labels[RUNTIME_NR] = {
#define RUNTIME(id, label, ...) [RUNTIME_##id] = label,
#include "abi/runtimes.def"
};

/* A symbol can have several versions; one is enough. */
static const struct library_probe *find_probe(const struct library_probes *probes, u32 call)
{
	for (u32 i = 0; i < probes->nr; i++)
		if (probes->probe[i].call == call)
			return &probes->probe[i];
	return NULL;
}

static void print_rows(const struct library_probes *probes, enum runtime runtime)
{
	for (u32 call = 0; call < CALL_NR; call++) {
		const struct library_probe *probe = find_probe(probes, call);

		if (call_rows[call].runtime != runtime)
			continue;
		printf("%s %s\n", probe ? "found" : "missing", library_symbol(call));
		if (probe && probe->is_stepped)
			printf("stepped %s\n", library_symbol(call));
	}
}

static int look_up(const char *path)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	int runtime = library_runtime_of(path), err;
	struct library_probes probes;

	if (fd < 0)
		return -errno;
	if (runtime < 0)
		return runtime;
	err = library_resolve(fd, (enum runtime)runtime, false, &probes, &(u64){ 0 });
	if (err < 0)
		return err;
	printf("library %s %s %u\n", path, labels[runtime], probes.nr_dropped);
	print_rows(&probes, (enum runtime)runtime);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int err = look_up(argv[i]);

		if (err < 0) {
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-err));
			return 1;
		}
	}
	return argc > 1 ? 0 : 2;
}
