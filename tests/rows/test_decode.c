/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Rows whose arguments are in unusual places: the books of memory agree with the calls. */
#include "discovery/support.h"
#include "signals/native.h"

#include "rows/decode.h"

#define BYTES 4096

static const char *library_path;

/* Attaches all rows of one runtime that the library has. */
static struct kernel *watch(enum runtime runtime)
{
	struct kernel *kernel = native_kernel();
	struct library library = native_library(library_path, runtime, -1);

	assert_int_equal(kernel_attach_library(kernel, &library), 0);
	return kernel;
}

static void assert_book(const struct memory_book *book, u64 bytes, u64 nr_allocs, u64 nr_frees)
{
	assert_int_equal(book->current_bytes, bytes);
	assert_int_equal(book->nr_allocs, nr_allocs);
	assert_int_equal(book->nr_frees, nr_frees);
}

/* The pointer is an argument, not a result. */
static void test_registered(void **state)
{
	struct kernel *kernel = watch(RUNTIME_CUDA);
	static char memory[BYTES];
	struct process_state process;

	assert_int_equal(cudaHostRegister(memory, BYTES, 0), 0);
	process = native_state(kernel, getpid());
	assert_book(&process.host_books[LEVEL_RUNTIME], BYTES, 1, 0);
	assert_int_equal(cudaHostUnregister(memory), 0);
	process = native_state(kernel, getpid());
	assert_book(&process.host_books[LEVEL_RUNTIME], 0, 1, 1);
	kernel_free(kernel);
}

/* The place of the pointer is the seventh argument. */
static void test_seventh_argument(void **state)
{
	struct kernel *kernel = watch(RUNTIME_LEVEL_ZERO);
	struct process_state process;
	void *pointer = NULL;

	assert_int_equal(zeMemAllocShared(NULL, NULL, NULL, BYTES, 0, NULL, &pointer), 0);
	process = native_state(kernel, getpid());
	assert_book(&process.books[LEVEL_RUNTIME][0], BYTES, 1, 0);
	assert_int_equal(zeMemFree(NULL, pointer), 0);
	process = native_state(kernel, getpid());
	assert_book(&process.books[LEVEL_RUNTIME][0], 0, 1, 1);
	kernel_free(kernel);
}

/* Physical memory of a runtime exists until it is released and unmapped. */
static void test_mapped(void **state)
{
	struct kernel *kernel = watch(RUNTIME_HIP);
	struct decode_properties properties = { .location_type = 1, .location = 2 };
	struct process_state process;
	void *handle = NULL, *address = (void *)0x100000;

	assert_int_equal(hipMemCreate(&handle, BYTES, &properties, 0), 0);
	assert_int_equal(hipMemMap(address, BYTES, 0, handle, 0), 0);
	assert_int_equal(hipMemRelease(handle), 0);
	process = native_state(kernel, getpid());
	assert_book(&process.books[LEVEL_RUNTIME][2], BYTES, 1, 0);
	assert_int_equal(hipMemUnmap(address, BYTES), 0);
	process = native_state(kernel, getpid());
	assert_book(&process.books[LEVEL_RUNTIME][2], 0, 1, 1);
	kernel_free(kernel);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registered),
		cmocka_unit_test(test_seventh_argument),
		cmocka_unit_test(test_mapped),
	};

	if (argc != 2)
		return 2;
	library_path = argv[1];
	return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
