/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Every name in symbols.txt is exported by the library it belongs to and by no other.
 * Where the vendor's toolkit is installed, its libraries export the same names, and the
 * calls that need no device answer alike.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "harness.h"
#include "vgpu/include/vgpu_cudart.h"

static const char *lib_dir, *table;

/* One row of the table. */
struct row {
	char file[128];
	char symbol[128];
	int last_release; /* 0: the newest release has it */
};

static bool row_read(FILE *rows, const char *library, struct row *ret)
{
	char line[512];

	while (fgets(line, sizeof(line), rows)) {
		*ret = (struct row){};
		if (line[0] != '#' &&
		    sscanf(line, "%127s %127s %d", ret->file, ret->symbol, &ret->last_release) >=
			    2 &&
		    !strcmp(ret->file, library))
			return true;
	}
	return false;
}

/* The symbol is there, and not from a library below. */
static void check_symbol(void *handle, const char *library, const char *symbol)
{
	void *address = dlsym(handle, symbol);
	Dl_info info;

	if (!address)
		fail_msg("%s has no %s", library, symbol);
	assert_true(dladdr(address, &info) != 0);
	assert_string_equal(strrchr(info.dli_fname, '/') + 1, library);
}

static void test_exports(void **state)
{
	const char *library = *state;
	FILE *rows = fopen(table, "re");
	char path[4096];
	struct row row;
	void *handle;
	int nr = 0;

	snprintf(path, sizeof(path), "%s/%s", lib_dir, library);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		fail_msg("%s", dlerror());
	assert_non_null(rows);
	for (; row_read(rows, library, &row); nr++)
		check_symbol(handle, library, row.symbol);
	fclose(rows);
	print_message("# %s: %d symbols\n", library, nr);
	assert_true(nr > 10);
	/* Our own functions are not exported. */
	assert_null(dlsym(handle, "shm_attach"));
	assert_null(dlsym(handle, "rt_enter"));
	dlclose(handle);
}

/* The vendor's library for one of ours; /cuda is the toolkit in the development root. */
static void *real_open(const char *file)
{
	static const char *const places[] = {
		"/cuda/lib64",
		"/usr/local/cuda/lib64",
		"/opt/cuda/lib64",
		"/usr/lib/x86_64-linux-gnu",
	};
	char path[4096];

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		void *handle;

		snprintf(path, sizeof(path), "%s/%s", places[i], file);
		handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
		if (handle)
			return handle;
	}
	print_message("# skipped: no %s of the vendor in %s or the usual places\n", file,
		      places[0]);
	skip();
	return NULL;
}

#define REAL_RUNTIME "libcudart.so.13"
#define REAL_RELEASE 13

struct pair {
	const char *ours, *theirs;
};

static void test_names_are_real(void **state)
{
	const struct pair *pair = *state;
	void *real = real_open(pair->theirs);
	const char *name = strrchr(pair->theirs, '/');
	FILE *rows = fopen(table, "re");
	struct row row;
	int nr = 0;

	assert_non_null(rows);
	while (row_read(rows, pair->ours, &row)) {
		if (row.last_release && row.last_release < REAL_RELEASE) {
			assert_null(dlsym(real, row.symbol));
			continue;
		}
		check_symbol(real, name ? name + 1 : pair->theirs, row.symbol);
		nr++;
	}
	fclose(rows);
	print_message("# %s: %d symbols of ours\n", pair->theirs, nr);
	assert_true(nr > 10);
	dlclose(real);
}

static void test_like_the_real_runtime(void **state)
{
	const char *(*text)(cudaError_t), *(*real_text)(cudaError_t);
	const char *(*name)(cudaError_t), *(*real_name)(cudaError_t);
	cudaError_t (*version)(int *);
	char path[4096];
	void *real = real_open(REAL_RUNTIME), *ours;
	int value = 0, nr = 0;

	snprintf(path, sizeof(path), "%s/libcudart.so.12", lib_dir);
	ours = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(ours);
	text = dlsym(ours, "cudaGetErrorString");
	real_text = dlsym(real, "cudaGetErrorString");
	name = dlsym(ours, "cudaGetErrorName");
	real_name = dlsym(real, "cudaGetErrorName");
	for (int error = 0; error < 1000; error++) {
		if (!strcmp(name((cudaError_t)error), "unrecognized error code"))
			continue;
		assert_string_equal(text((cudaError_t)error), real_text((cudaError_t)error));
		assert_string_equal(name((cudaError_t)error), real_name((cudaError_t)error));
		nr++;
	}
	assert_true(nr > 10);
	version = dlsym(real, "cudaRuntimeGetVersion");
	assert_int_equal(version(&value), cudaSuccess);
	assert_int_equal(value / 1000, REAL_RELEASE);
	dlclose(ours);
	dlclose(real);
}

int main(int argc, char **argv)
{
	static struct pair pairs[] = {
		{ "libcuda.so.1", "stubs/libcuda.so" },
		{ "libcudart.so.12", REAL_RUNTIME },
		{ "libnccl.so.2", "libnccl.so.2" },
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_exports, "libcuda.so.1"),
		cmocka_unit_test_prestate(test_exports, "libcudart.so.12"),
		cmocka_unit_test_prestate(test_exports, "libnvidia-ml.so.1"),
		cmocka_unit_test_prestate(test_exports, "libnccl.so.2"),
		cmocka_unit_test_prestate(test_exports, "libamdhip64.so.6"),
		cmocka_unit_test_prestate(test_exports, "librccl.so.1"),
		cmocka_unit_test_prestate(test_names_are_real, &pairs[0]),
		cmocka_unit_test_prestate(test_names_are_real, &pairs[1]),
		cmocka_unit_test_prestate(test_names_are_real, &pairs[2]),
		cmocka_unit_test(test_like_the_real_runtime),
	};

	if (argc != 3)
		return 2;
	lib_dir = argv[1];
	table = argv[2];
	return cmocka_run_group_tests_name("vgpu symbols", tests, NULL, NULL);
}
