/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Tests that each library itself exports the names that symbols.txt lists for it. If the
 * vendor's runtime is installed, calls that need no device must return the same values as
 * that runtime.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "harness.h"
#include "vgpu/include/vgpu_cudart.h"

static const char *lib_dir, *table;

static void test_exports(void **state)
{
	const char *library = *state;
	char path[4096], line[256], file[128], symbol[128];
	FILE *rows = fopen(table, "re");
	void *handle;
	int nr = 0;

	snprintf(path, sizeof(path), "%s/%s", lib_dir, library);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		fail_msg("%s", dlerror());
	assert_non_null(rows);
	while (fgets(line, sizeof(line), rows)) {
		Dl_info info;
		void *address;

		if (line[0] == '#' || sscanf(line, "%127s %127s", file, symbol) != 2 ||
		    strcmp(file, library))
			continue;
		address = dlsym(handle, symbol);
		if (!address)
			fail_msg("%s has no %s", library, symbol);
		/* The symbol must not come from a library that this one links. */
		assert_true(dladdr(address, &info) != 0);
		assert_string_equal(strrchr(info.dli_fname, '/') + 1, library);
		assert_string_equal(info.dli_sname, symbol);
		nr++;
	}
	fclose(rows);
	print_message("# %s: %d symbols\n", library, nr);
	assert_true(nr > 10);
	/* Internal names are not exported. */
	assert_null(dlsym(handle, "shm_attach"));
	assert_null(dlsym(handle, "rt_enter"));
	dlclose(handle);
}

static void *real_open(void)
{
	static const char *const places[] = {
		"/usr/local/cuda/lib64/libcudart.so.12",
		"/usr/lib/x86_64-linux-gnu/libcudart.so.12",
		"/usr/lib64/libcudart.so.12",
		"/opt/cuda/lib64/libcudart.so.12",
	};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		void *handle = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);

		if (handle)
			return handle;
	}
	return NULL;
}

static void test_same_results_as_the_real_runtime(void **state)
{
	const char *(*text)(cudaError_t), *(*real_text)(cudaError_t);
	cudaError_t (*version)(int *);
	char path[4096];
	void *real = real_open(), *ours;
	int value = 0;

	if (!real) {
		print_message("# skipped: libcudart.so.12 of the vendor not found\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/libcudart.so.12", lib_dir);
	ours = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(ours);
	text = dlsym(ours, "cudaGetErrorString");
	real_text = dlsym(real, "cudaGetErrorString");
	for (int error = 0; error < 1000; error++) {
		const char *mine = text((cudaError_t)error);

		if (strcmp(mine, "unrecognized error code"))
			assert_string_equal(mine, real_text((cudaError_t)error));
	}
	version = dlsym(real, "cudaRuntimeGetVersion");
	assert_int_equal(version(&value), cudaSuccess);
	assert_int_equal(value / 1000, 12);
	dlclose(ours);
	dlclose(real);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_exports, "libcuda.so.1"),
		cmocka_unit_test_prestate(test_exports, "libcudart.so.12"),
		cmocka_unit_test_prestate(test_exports, "libnvidia-ml.so.1"),
		cmocka_unit_test_prestate(test_exports, "libnccl.so.2"),
		cmocka_unit_test_prestate(test_exports, "libamdhip64.so.6"),
		cmocka_unit_test_prestate(test_exports, "librccl.so.1"),
		cmocka_unit_test(test_same_results_as_the_real_runtime),
	};

	if (argc != 3)
		return 2;
	lib_dir = argv[1];
	table = argv[2];
	return cmocka_run_group_tests_name("vgpu symbols", tests, NULL, NULL);
}
