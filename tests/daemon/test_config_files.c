/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "config/config_table.h"

#define NOBODY 65534

#define ETC	"/etc/zernel/"
#define RUN	"/run/zernel/"
#define USR	"/usr/lib/zernel/"
#define MAIN	"zernel.conf"
#define DROP_IN "zernel.conf.d/"

static char root[] = "/tmp/zernel-config.XXXXXX";

static void path_of(const char *name, char *ret)
{
	snprintf(ret, PATH_MAX, "%s%s", root, name);
}

/* Creates a file and its folders. */
static void put(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *out;

	path_of(name, path);
	for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
}

static void put_link(const char *name, const char *target)
{
	char path[PATH_MAX];

	path_of(name, path);
	unlink(path);
	put(name, "");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(target, path), 0);
}

static void set_mode(const char *name, mode_t mode)
{
	char path[PATH_MAX];

	path_of(name, path);
	assert_int_equal(chmod(path, mode), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int set_up(void **state)
{
	strcpy(strrchr(root, '.'), ".XXXXXX");
	return mkdtemp(root) && chmod(root, 0755) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#define RESERVED(percent) "[scheduler]\nreserved_percent=" #percent "\n"
#define RETRY(seconds)	  "[kernel]\nretry_s=" #seconds "\n"

static const struct config_origin *origin_of(const struct config_origin *origins, const char *name)
{
	size_t i = 0;

	while (strcmp(config_keys[i].key, name) != 0)
		i++;
	return &origins[i];
}

/* `file` is the file that sets reserved_percent; NULL if it is the default. */
static void assert_loads(u32 reserved_percent, const char *file)
{
	CLEANUP_FREE struct config_origin *origins = calloc(config_nr_keys, sizeof(*origins));
	struct config_problem problem;
	char path[PATH_MAX] = "";
	struct config config;

	config_default(&config);
	assert_int_equal(config_load_below(&config, root, origins, &problem), 0);
	assert_int_equal(config.reserved_percent, reserved_percent);
	if (file)
		path_of(file, path);
	assert_string_equal(origin_of(origins, "reserved_percent")->file, path);
}

static void assert_refused(const char *file, const char *text)
{
	struct config_problem problem;
	struct config config, before;
	char path[PATH_MAX];
	int err;

	config_default(&config);
	before = config;
	err = config_load_below(&config, root, NULL, &problem);
	path_of(file, path);
	assert_true(err < 0);
	assert_string_equal(problem.file, path);
	assert_int_equal(problem.line, 0);
	assert_string_equal(problem.text, text);
	assert_memory_equal(&config, &before, sizeof(config));
}

static void a_missing_file_is_no_error(void **state)
{
	assert_loads(30, NULL);
	put(ETC "other.conf", RESERVED(1));
	assert_loads(30, NULL);
}

static void only_one_main_file_is_read(void **state)
{
	put(USR MAIN, RESERVED(1));
	assert_loads(1, USR MAIN);
	put(RUN MAIN, RESERVED(2));
	assert_loads(2, RUN MAIN);
	put(ETC MAIN, RESERVED(3));
	assert_loads(3, ETC MAIN);
	/* Files of lower priority are not read. */
	put(RUN MAIN, "nonsense\n");
	put(ETC MAIN, RETRY(5));
	assert_loads(30, NULL);
}

static void drop_ins_of_all_folders_are_sorted_by_name(void **state)
{
	put(ETC MAIN, RESERVED(1));
	put(ETC DROP_IN "20.conf", RESERVED(20));
	put(RUN DROP_IN "30.conf", RESERVED(31));
	put(USR DROP_IN "10.conf", RESERVED(10));
	assert_loads(31, RUN DROP_IN "30.conf");
	put(USR DROP_IN "40.conf", RESERVED(40));
	assert_loads(40, USR DROP_IN "40.conf");
	/* Names are compared by bytes, independent of the locale. */
	put(ETC DROP_IN "Z.conf", RESERVED(51));
	put(RUN DROP_IN "a.conf", RESERVED(52));
	assert_loads(52, RUN DROP_IN "a.conf");
	put(USR DROP_IN "z.conf.bak", "nonsense\n");
	put(USR DROP_IN ".z.conf", "nonsense\n");
	assert_loads(52, RUN DROP_IN "a.conf");
}

static void drop_ins_override_every_main_file(void **state)
{
	put(ETC MAIN, RESERVED(1));
	put(USR DROP_IN "10.conf", RESERVED(2));
	assert_loads(2, USR DROP_IN "10.conf");
}

static void a_file_hides_files_of_the_same_name_and_lower_priority(void **state)
{
	put(USR DROP_IN "10.conf", RESERVED(1));
	put(RUN DROP_IN "10.conf", RESERVED(2));
	assert_loads(2, RUN DROP_IN "10.conf");
	put(ETC DROP_IN "10.conf", RESERVED(3));
	assert_loads(3, ETC DROP_IN "10.conf");
	/* The whole file is hidden, not only the keys that both files set. */
	put(ETC DROP_IN "10.conf", RETRY(5));
	assert_loads(30, NULL);
}

static void an_empty_file_and_a_link_to_null_mask(void **state)
{
	put(USR MAIN, RESERVED(1));
	put(USR DROP_IN "10.conf", RESERVED(2));
	put(RUN DROP_IN "20.conf", RESERVED(3));
	put(ETC DROP_IN "20.conf", "");
	assert_loads(2, USR DROP_IN "10.conf");
	put_link(RUN DROP_IN "10.conf", "/dev/null");
	assert_loads(1, USR MAIN);
	put_link(ETC MAIN, "/dev/null");
	assert_loads(30, NULL);
	put_link(ETC MAIN, "/dev/zero");
	assert_refused(ETC MAIN, "cannot be read: Invalid argument");
}

static void a_file_that_cannot_be_read_is_reported(void **state)
{
	put(USR MAIN, RESERVED(1));
	put_link(ETC MAIN, MAIN);
	assert_refused(ETC MAIN, "cannot be read: Too many levels of symbolic links");
	put(RUN MAIN, "");
	put_link(ETC MAIN, "missing");
	put(ETC DROP_IN "10.conf/file", "");
	assert_refused(ETC DROP_IN "10.conf", "cannot be read: Invalid argument");
	put_link(RUN DROP_IN "05.conf", "missing");
	assert_refused(RUN DROP_IN "05.conf", "cannot be read: No such file or directory");
	put(USR "zernel.conf.d", "");
	assert_refused(USR "zernel.conf.d", "cannot be read: Not a directory");
}

static void assert_forbidden(const char *closed, mode_t mode, const char *file)
{
	set_mode(closed, 0);
	if (geteuid() == 0)
		assert_int_equal(seteuid(NOBODY), 0);
	assert_refused(file, "cannot be read: Permission denied");
	assert_int_equal(seteuid(getuid()), 0);
	set_mode(closed, mode);
}

/* A file without read permission is an error. The file of another folder is not used instead. */
static void a_file_without_read_permission_is_reported(void **state)
{
	put(ETC MAIN, RESERVED(1));
	put(USR MAIN, RESERVED(2));
	put(ETC DROP_IN "10.conf", RESERVED(3));
	assert_forbidden(ETC MAIN, 0644, ETC MAIN);
	assert_forbidden(ETC DROP_IN "10.conf", 0644, ETC DROP_IN "10.conf");
	assert_forbidden(ETC DROP_IN, 0755, ETC "zernel.conf.d");
	assert_loads(3, ETC DROP_IN "10.conf");
	put_link(ETC DROP_IN "10.conf", "/dev/null");
	assert_forbidden(ETC, 0755, ETC "zernel.conf.d");
}

static void a_named_file_replaces_the_system_files(void **state)
{
	struct config_problem problem;
	struct config config;
	char path[PATH_MAX];

	put(ETC DROP_IN "10.conf", RESERVED(1));
	put("/my.conf", RESERVED(2));
	put("/my.conf.d/10.conf", RETRY(7));
	config_default(&config);
	path_of("/my.conf", path);
	assert_int_equal(config_load(&config, path, NULL, &problem), 0);
	assert_int_equal(config.reserved_percent, 2);
	assert_int_equal(config.retry_s, 7);
	put_link("/my.conf.d/10.conf", "/dev/null");
	config_default(&config);
	assert_int_equal(config_load(&config, path, NULL, &problem), 0);
	assert_int_equal(config.retry_s, 60);
	path_of("/missing.conf", path);
	assert_true(config_load(&config, path, NULL, &problem) < 0);
	assert_string_equal(problem.file, path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_missing_file_is_no_error),
		TEST(only_one_main_file_is_read),
		TEST(drop_ins_of_all_folders_are_sorted_by_name),
		TEST(drop_ins_override_every_main_file),
		TEST(a_file_hides_files_of_the_same_name_and_lower_priority),
		TEST(an_empty_file_and_a_link_to_null_mask),
		TEST(a_file_that_cannot_be_read_is_reported),
		TEST(a_file_without_read_permission_is_reported),
		TEST(a_named_file_replaces_the_system_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
