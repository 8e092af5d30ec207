/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/book.h"

static void test_new_book_is_empty(void **state)
{
	struct memory_book book = {};

	book_alloc(&book, 0);
	assert_int_equal(book.current_bytes, 0);
	assert_int_equal(book.peak_bytes, 0);
	assert_int_equal(book.nr_allocs, 1);
}

static void test_peak_stays_after_a_free(void **state)
{
	struct memory_book book = {};

	book_alloc(&book, 1000);
	book_alloc(&book, 500);
	book_free(&book, 1000);
	book_alloc(&book, 999);
	assert_int_equal(book.current_bytes, 1499);
	assert_int_equal(book.peak_bytes, 1500);
	book_alloc(&book, 2);
	assert_int_equal(book.peak_bytes, 1501);
	assert_int_equal(book.nr_allocs, 4);
	assert_int_equal(book.nr_frees, 1);
}

static void test_counts_more_than_32_bits(void **state)
{
	struct memory_book book = {};

	book_alloc(&book, 1ULL << 40);
	book_alloc(&book, 7);
	book_free(&book, 1ULL << 40);
	assert_int_equal(book.current_bytes, 7);
	assert_int_equal(book.peak_bytes, (1ULL << 40) + 7);
}

#define NR_THREADS 4
#define NR_ROUNDS  100000

static void *alloc_and_free(void *book)
{
	for (int i = 0; i < NR_ROUNDS; i++) {
		book_alloc(book, 3);
		book_free(book, 3);
	}
	return NULL;
}

static void test_concurrent_updates_are_not_lost(void **state)
{
	struct memory_book book = {};
	pthread_t threads[NR_THREADS];

	book_alloc(&book, 10);
	for (int i = 0; i < NR_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, alloc_and_free, &book), 0);
	for (int i = 0; i < NR_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(book.current_bytes, 10);
	assert_int_equal(book.nr_allocs, 1 + NR_THREADS * NR_ROUNDS);
	assert_int_equal(book.nr_frees, NR_THREADS * NR_ROUNDS);
	assert_in_range(book.peak_bytes, 13, 10 + 3 * NR_THREADS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new_book_is_empty),
		cmocka_unit_test(test_peak_stays_after_a_free),
		cmocka_unit_test(test_counts_more_than_32_bits),
		cmocka_unit_test(test_concurrent_updates_are_not_lost),
	};

	return cmocka_run_group_tests_name("book", tests, NULL, NULL);
}
