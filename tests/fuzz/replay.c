/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Runs a fuzz target on every file in the corpus directory that is given as the argument. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include "fuzz/fuzz.h"

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/file.h"

#define INPUT_MAX (1UL << 20)

static const char *corpus;

static void test_corpus_replays(void **state)
{
	CLEANUP_FREE struct dirent **entries = NULL;
	int nr = scandir(corpus, &entries, NULL, alphasort), nr_run = 0;

	assert_true(nr > 0);
	for (int i = 0; i < nr; i++) {
		CLEANUP_FREE struct dirent *entry = entries[i];
		CLEANUP_FREE void *data = NULL;
		CLEANUP_FREE char *path = NULL;
		size_t size = 0;

		if (entry->d_name[0] == '.')
			continue;
		assert_true(asprintf(&path, "%s/%s", corpus, entry->d_name) > 0);
		assert_int_equal(file_read(path, INPUT_MAX, &data, &size), 0);
		assert_int_equal(LLVMFuzzerTestOneInput(data, size), 0);
		nr_run++;
	}
	print_message("# %d inputs\n", nr_run);
	assert_true(nr_run >= 6);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_corpus_replays) };

	if (argc != 2)
		return 2;
	corpus = argv[1];
	return cmocka_run_group_tests_name("corpus", tests, NULL, NULL);
}
