/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A temporary directory that replaces /proc and /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "collect/sources.h"

static char tree_root[] = "/tmp/test_collect.XXXXXX";
static struct gpu_config tree_config;

/* Creates the parent directories of `path`. */
static inline void tree_make_parents(char *path)
{
	for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);
		*slash = '/';
	}
}

__attribute__((format(printf, 1, 2))) static inline const char *tree_path(const char *format, ...)
{
	static char path[512];
	va_list args;
	int length = snprintf(path, sizeof(path), "%s/", tree_root);

	va_start(args, format);
	vsnprintf(path + length, sizeof(path) - (size_t)length, format, args);
	va_end(args);
	tree_make_parents(path);
	return path;
}

static inline void tree_write_bytes(const char *path, const void *data, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static inline void tree_write(const char *path, const char *text)
{
	tree_write_bytes(path, text, strlen(text));
}

static inline int tree_remove_one(const char *path, const struct stat *st, int type,
				  struct FTW *ftw)
{
	return remove(path);
}

static inline int tree_setup(void **state)
{
	strcpy(tree_root + strlen(tree_root) - 6, "XXXXXX");
	if (!mkdtemp(tree_root))
		return -1;
	tree_config = (struct gpu_config){
		.nvml_library = "libabsent-in-every-test.so.1",
		.procfs = strdup(tree_path("proc")),
		.sysfs = strdup(tree_path("sys")),
	};
	return tree_config.procfs && tree_config.sysfs ? 0 : -1;
}

static inline int tree_teardown(void **state)
{
	free((char *)tree_config.procfs);
	free((char *)tree_config.sysfs);
	return nftw(tree_root, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
