/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A library for LD_PRELOAD that makes allocations fail: number FAULT_AT, and with FAULT_STICKY all
 * later ones. At the end it writes the number of allocations, and of those that were not freed, to
 * the file FAULT_REPORT. Allocations of the dynamic linker before main() do not count.
 */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The functions of glibc behind the public names. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t nr, size_t size);
extern void *__libc_realloc(void *memory, size_t size);
extern void __libc_free(void *memory);

static long nr_allocations, nr_live, fault_at;
static bool is_counting, is_sticky;

static bool fails(void)
{
	long number;

	if (!is_counting)
		return false;
	number = __atomic_add_fetch(&nr_allocations, 1, __ATOMIC_RELAXED);
	if (number != fault_at && !(is_sticky && fault_at && number > fault_at))
		return false;
	errno = ENOMEM;
	return true;
}

static void *counted(void *memory)
{
	if (memory && is_counting)
		__atomic_add_fetch(&nr_live, 1, __ATOMIC_RELAXED);
	return memory;
}

void *malloc(size_t size)
{
	return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t nr, size_t size)
{
	return fails() ? NULL : counted(__libc_calloc(nr, size));
}

void *realloc(void *memory, size_t size)
{
	if (fails())
		return NULL;
	return memory ? __libc_realloc(memory, size) : counted(__libc_realloc(memory, size));
}

void free(void *memory)
{
	if (memory && is_counting)
		__atomic_sub_fetch(&nr_live, 1, __ATOMIC_RELAXED);
	__libc_free(memory);
}

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("FAULT_AT");

	fault_at = at ? atol(at) : 0;
	is_sticky = getenv("FAULT_STICKY");
	is_counting = true;
}

__attribute__((destructor)) static void report(void)
{
	const char *path = getenv("FAULT_REPORT");
	FILE *file;

	is_counting = false;
	file = path ? fopen(path, "we") : NULL;
	if (!file)
		return;
	fprintf(file, "%ld %ld\n", nr_allocations, nr_live);
	fclose(file);
}
