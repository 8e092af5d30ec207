/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests zernel procdb on separate files: its output, its changes and its errors. */
#include "base/macros.h"
#include "procdb/image.h"

#include <sys/wait.h>
#include <yyjson.h>

#include "store/procdb_store.h"

static const char *zernel;
static char directory[] = "/tmp/cli-procdb.XXXXXX";
static char output[1 << 16];

/* Runs `zernel procdb` with these arguments. Returns its exit status and stores its output. */
static int procdb(const char *words)
{
	CLEANUP_FREE char *command = NULL;
	size_t size;
	FILE *pipe;

	assert_true(asprintf(&command, "cd %s && '%s' procdb %s 2>&1", directory, zernel, words) >
		    0);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	size = fread(output, 1, sizeof(output) - 1, pipe);
	output[size] = '\0';
	return WEXITSTATUS(pclose(pipe));
}

static char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

/* Two programs with the same name, and one profile by name only. */
static int make_database(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(PROCDB_CONFIG_DEFAULT);
	struct procdb_key key = key_named("cc1");
	struct procdb_record seen = record_of(TIER_BATCH, 2500000, 0);

	for (key.exe_id = 0xabc; key.exe_id <= 0xabd; key.exe_id++)
		for (int i = 0; i < 3; i++)
			assert_int_equal(procdb_merge(db, &key, 1000, &seen, EPOCH_S), 0);
	merge_times(db, "old \"name\"", TIER_LAT_CRITICAL, 5, EPOCH_S);
	return procdb_store_save(db, path_of("db"));
}

static void test_list_is_a_table(void **state)
{
	assert_int_equal(procdb("list --file db"), 0);
	assert_non_null(strstr(output, "NAME        EXECUTABLE        ROLE   TIER"));
	assert_non_null(strstr(output, "cc1         0000000000000abc  other  batch"
				       "                   100%         3   2.5 ms"));
	assert_non_null(strstr(output, "old \"name\"  -                 other  "
				       "latency_critical        100%         5"));
}

static void test_list_as_json(void **state)
{
	yyjson_val *profiles, *first, *last;
	yyjson_doc *doc;

	assert_int_equal(procdb("list --json --file db"), 0);
	doc = yyjson_read(output, strlen(output), 0);
	assert_non_null(doc);
	profiles = yyjson_obj_get(yyjson_doc_get_root(doc), "profiles");
	assert_int_equal(yyjson_arr_size(profiles), 3);
	first = yyjson_arr_get_first(profiles);
	last = yyjson_arr_get_last(profiles);
	assert_string_equal(yyjson_get_str(yyjson_obj_get(first, "executable")),
			    "0000000000000abc");
	assert_string_equal(yyjson_get_str(yyjson_obj_get(first, "tier")), "batch");
	assert_int_equal(yyjson_get_uint(yyjson_obj_get(first, "runtime_avg_ns")), 2500000);
	assert_int_equal(yyjson_get_uint(yyjson_obj_get(first, "owner")), 1000);
	assert_true(yyjson_get_bool(yyjson_obj_get(first, "predicted")));
	assert_string_equal(yyjson_get_str(yyjson_obj_get(last, "name")), "old \"name\"");
	assert_true(yyjson_is_null(yyjson_obj_get(last, "executable")));
	yyjson_doc_free(doc);
}

static void test_show_by_name_and_by_executable(void **state)
{
	assert_int_equal(procdb("show cc1 --file db"), 0);
	assert_non_null(strstr(output, "0abc"));
	assert_non_null(strstr(output, "0abd"));
	assert_int_equal(procdb("show 0000000000000abd --file db"), 0);
	assert_null(strstr(output, "0abc "));
	assert_int_equal(procdb("show nobody --file db"), 1);
	assert_non_null(strstr(output, "no profile of nobody was learned"));
}

static void test_forget(void **state)
{
	assert_int_equal(procdb("forget cc1 --file db"), 0);
	assert_string_equal(output, "2 profiles forgotten\n");
	assert_int_equal(procdb("show cc1 --file db"), 1);
	assert_int_equal(procdb("list --file db"), 0);
	assert_non_null(strstr(output, "old"));
	assert_int_equal(procdb("forget cc1 --file db"), 1);
	assert_int_equal(procdb("forget --all --file db"), 0);
	assert_string_equal(output, "1 profiles forgotten\n");
}

static void test_forget_is_refused_while_zerneld_runs(void **state)
{
	CLEANUP_FD int fd = -EBADF;

	assert_int_equal(procdb_store_lock(path_of("db"), &fd), 0);
	assert_int_equal(procdb("forget --all --file db"), 1);
	assert_non_null(strstr(output, "zerneld is running"));
	assert_int_equal(procdb("show cc1 --file db"), 0);
}

static void test_export_and_import(void **state)
{
	assert_int_equal(procdb("export copy --file db"), 0);
	assert_int_equal(procdb("forget cc1 --file db"), 0);
	assert_int_equal(procdb("import copy --file db"), 0);
	assert_string_equal(output, "2 profiles imported\n");
	assert_int_equal(procdb("show cc1 --file db"), 0);
	assert_int_equal(procdb("import nothing --file db"), 1);
	assert_non_null(strstr(output, "cannot read nothing"));
}

static void test_export_for_the_reference(void **state)
{
	CLEANUP_DB struct procdb *db = db_make(PROCDB_CONFIG_DEFAULT);
	struct procdb_report report;

	/* Version 2 has one profile per name, so the two programs named cc1 become one. */
	assert_int_equal(procdb("export --format v2 copy --file db"), 0);
	assert_string_equal(output, "2 profiles exported\n");
	assert_int_equal(procdb_store_load(db, path_of("copy"), EPOCH_S, &report), 0);
	assert_int_equal(report.version, 2);
	assert_int_equal(find_named(db, "cc1")->behaviour.runtime_avg_ns, 2500000);
	assert_int_equal(procdb("import copy --file new"), 0);
	assert_string_equal(output, "2 profiles imported\n");
	assert_int_equal(procdb("export --format v3 copy --file db"), 0);
	assert_string_equal(output, "3 profiles exported\n");
	assert_int_equal(procdb("export --format v1 copy --file db"), 2);
	assert_non_null(strstr(output, "--format must be v2 or v3, not 'v1'"));
}

static void test_import_of_old_versions(void **state)
{
	for (u32 version = 1; version <= 2; version++) {
		CLEANUP_IMAGE struct image image = image_old(version, 4);
		FILE *file = fopen(path_of("old"), "w");

		assert_non_null(file);
		assert_int_equal(fwrite(image.bytes, 1, image.size, file), image.size);
		fclose(file);
		assert_int_equal(procdb("import old --file new"), 0);
		assert_int_equal(procdb("list --file new"), 0);
		unlink(path_of("new"));
	}
}

static void test_a_damaged_file_is_reported(void **state)
{
	assert_int_equal(truncate(path_of("db"), 100), 0);
	assert_int_equal(procdb("list --file db"), 1);
	assert_non_null(strstr(output, "cannot use db: 180 of 280 bytes are missing"));
}

static void test_invalid_usage_is_explained(void **state)
{
	static const char *const words[] = { "",       "fry",	 "list extra",
					     "show",   "forget", "forget a --all",
					     "export", "import", "list --fry" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		assert_int_equal(procdb(words[i]), 2);
	assert_non_null(strstr(output, "unknown option '--fry' for 'zernel procdb list'"));
	assert_int_equal(procdb("--help"), 0);
	assert_non_null(strstr(output, "forget NAME|--all"));
}

static int remove_directory(void **state)
{
	CLEANUP_FREE char *command = NULL;

	assert_true(asprintf(&command, "rm -rf %s", directory) > 0);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_list_is_a_table, make_database),
		cmocka_unit_test_setup(test_list_as_json, make_database),
		cmocka_unit_test_setup(test_show_by_name_and_by_executable, make_database),
		cmocka_unit_test_setup(test_forget, make_database),
		cmocka_unit_test_setup(test_forget_is_refused_while_zerneld_runs, make_database),
		cmocka_unit_test_setup(test_export_and_import, make_database),
		cmocka_unit_test_setup(test_export_for_the_reference, make_database),
		cmocka_unit_test_setup(test_import_of_old_versions, make_database),
		cmocka_unit_test_setup(test_a_damaged_file_is_reported, make_database),
		cmocka_unit_test_setup(test_invalid_usage_is_explained, make_database),
	};

	if (argc != 2 || !mkdtemp(directory))
		return 2;
	zernel = argv[1];
	return cmocka_run_group_tests_name("zernel procdb", tests, NULL, remove_directory);
}
