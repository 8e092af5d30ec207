/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests valid and invalid lines of /proc/PID/maps. */
#include "base/macros.h"
#include "discovery/support.h"

#include "collect/maps.h"
#include "property/random.h"

static int parse(const char *line, struct mapping *ret)
{
	/* Exactly as large as the line, so that the sanitizer detects a read after the end. */
	CLEANUP_FREE char *exact = malloc(strlen(line) + !*line);

	assert_non_null(exact);
	memcpy(exact, line, strlen(line));
	return maps_parse_line(exact, strlen(line), ret);
}

static void test_lines(void **state)
{
	static const struct {
		const char *line;
		int result;
		const char *path;
		bool is_code;
	} cases[] = {
		{ "7f00-7f10 r-xp 00001000 fd:01 42   /usr/lib/libcuda.so.1", 0,
		  "/usr/lib/libcuda.so.1", true },
		{ "7f00-7f10 r-xp 0 fd:01 42 /a b/lib c.so (deleted)", 0, "/a b/lib c.so", true },
		{ "7f00-7f10 r--p 0 fd:01 42 /usr/lib/libcuda.so.1", 0, "/usr/lib/libcuda.so.1" },
		{ "7f00-7f10 rw-s 0 00:1a 7 /dev/shm/nccl-4fQk", 0, "/dev/shm/nccl-4fQk" },
		{ "7f00-7f10 r-xp 0 00:00 0 [vdso]", -ENOENT, NULL },
		{ "7f00-7f10 r-xp 0 00:00 0 ", -ENOENT, NULL },
		{ "7f00-7f10 r-xp 0 00:05 7 anon_inode:x", -ENOENT, NULL },
		{ "7f10-7f00 r-xp 0 fd:01 42 /lib", -EINVAL, NULL },
		{ "10000000000000000-7f10 r-xp 0 fd:01 42 /lib", -EINVAL, NULL },
		{ "7f00-7f10 r-xp 0 100000000:01 42 /lib", -EINVAL, NULL },
		{ "7f00-7f10 r-xp 0 fd:01 4x2 /lib", -ENOENT, NULL },
		{ "7f00-7f10 r-xp 0 fd:01", -EINVAL, NULL },
		{ "7f00-7f10 r-x", -EINVAL, NULL },
		{ "7f00", -EINVAL, NULL },
		{ "", -EINVAL, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct mapping mapping = {};

		if (parse(cases[i].line, &mapping) != cases[i].result)
			fail_msg("\"%s\"", cases[i].line);
		if (cases[i].path)
			assert_string_equal(mapping.path, cases[i].path);
		assert_int_equal(mapping.is_code, cases[i].is_code);
	}
}

static void test_numbers(void **state)
{
	struct mapping mapping;

	assert_int_equal(
		parse("5581a000-ffffffffff600000 --xp 0 fd:1f 18446744073709551615 /x", &mapping),
		0);
	assert_int_equal(mapping.start, 0x5581a000);
	assert_int_equal(mapping.end, 0xffffffffff600000);
	assert_int_equal(mapping.major, 0xfd);
	assert_int_equal(mapping.minor, 0x1f);
	assert_true(mapping.inode == UINT64_MAX);
	assert_false(mapping.is_writable);
	assert_int_equal(parse("5581a000-5581b000 rw-p 00642000 fd:1f 9 /x", &mapping), 0);
	assert_int_equal(mapping.offset, 0x642000);
	assert_true(mapping.is_writable);
}

static void test_damaged_lines(void **state)
{
	static const char line[] = "7f00-7f10 r-xp 00001000 fd:01 42   /usr/lib/libcuda.so.1";
	struct random r = random_start();
	int nr_good = 0;

	for (int i = 0; i < 200000; i++) {
		char text[sizeof(line)];
		struct mapping mapping;

		memcpy(text, line, sizeof(line));
		for (u32 n = random_below(&r, 4); n--;)
			text[random_below(&r, sizeof(line) - 1)] =
				(char)(1 + random_below(&r, 127));
		text[random_below(&r, sizeof(line))] = '\0';
		if (parse(text, &mapping))
			continue;
		nr_good++;
		assert_true(mapping.path[0] == '/' && mapping.start < mapping.end);
	}
	assert_in_range(nr_good, 1000, 199000);
}

static int count_self(void *ctx, const struct mapping *mapping)
{
	int *nr = ctx;

	*nr += mapping->is_code &&
	       (strstr(mapping->path, "test_maps") || strstr(mapping->path, "libcmocka"));
	return 0;
}

static void test_own_maps(void **state)
{
	int nr = 0;

	assert_int_equal(maps_read("/proc", getpid(), count_self, &nr), 0);
	assert_int_equal(nr, 2);
	assert_int_equal(maps_read("/proc", 0x7ffffff, count_self, &nr), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_damaged_lines),
		cmocka_unit_test(test_own_maps),
	};

	return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
