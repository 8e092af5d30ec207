/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads owners from a directory that replaces /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "collect/tenant.h"

static char proc[] = "/tmp/test_tenant.XXXXXX";

static void put(int pid, const char *name, const char *text)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d", proc, pid);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%d/%s", proc, pid, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static u64 group_in(const char *cgroup)
{
	put(7, "cgroup", cgroup);
	return tenant_of(proc, 7).group;
}

static void test_user(void **state)
{
	assert_int_equal(tenant_of(proc, 6).uid, 0);
	put(7, "status", "Name:\tUid:\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n");
	assert_int_equal(tenant_of(proc, 7).uid, 1000);
	put(7, "status", "Name:\tx\n");
	assert_int_equal(tenant_of(proc, 7).uid, 0);
}

static void test_group(void **state)
{
	u64 pod = group_in("0::/kubepods.slice/burstable.slice/pod1.slice/cri-1.scope\n");

	assert_int_equal(tenant_of(proc, 6).group, 0);
	assert_int_equal(group_in("0::/\n"), 0);
	assert_int_equal(group_in("1:cpu:/a\n"), 0);
	assert_true(pod);
	/* A tenant cannot leave its group by making cgroups. */
	assert_int_equal(group_in("0::/kubepods.slice/burstable.slice/pod1.slice/cri-2/a/b\n"),
			 pod);
	assert_int_equal(group_in("12:pids:/x\n0::/kubepods.slice/burstable.slice/pod1.slice\n"),
			 pod);
	assert_int_not_equal(group_in("0::/kubepods.slice/burstable.slice/pod2.slice\n"), pod);
	assert_int_not_equal(group_in("0::/system.slice/a.service\n"),
			     group_in("0::/system.slice/b.service\n"));
}

/* In a cgroup namespace of its own, zerneld sees the other pods above its root. */
static void test_group_in_container(void **state)
{
	u64 pod = group_in("0::/../../../burstable.slice/pod1.slice/cri-1.scope\n");

	assert_int_not_equal(group_in("0::/../../../burstable.slice/pod2.slice/cri-1.scope\n"),
			     pod);
	assert_int_not_equal(group_in("0::/../../../besteffort.slice/pod1.slice/cri-1.scope\n"),
			     pod);
	assert_int_equal(group_in("0::/../../..\n"), 0);
}

static void test_room(void **state)
{
	const struct tenant root = {}, user = { .uid = 1000 }, pod = { .group = 77 };
	struct tenant_count count = {};

	for (int i = 0; i < 100; i++)
		tenant_count(&count, &root, &root, 1);
	assert_true(tenant_has_room(&count, 1, 100));
	for (int i = 0; i < 74; i++)
		tenant_count(&count, &user, &user, 1);
	tenant_count(&count, &user, &pod, 1);
	assert_true(tenant_has_room(&count, 1, 100));
	tenant_count(&count, &user, &user, 1);
	assert_false(tenant_has_room(&count, 1, 100));
	count = (struct tenant_count){};
	for (int i = 0; i < 75; i++)
		tenant_count(&count, &pod, &pod, 1);
	assert_false(tenant_has_room(&count, 1, 100));
	count = (struct tenant_count){};
	tenant_count(&count, &user, &user, 70);
	assert_true(tenant_has_room(&count, 5, 100));
	assert_false(tenant_has_room(&count, 6, 100));
}

static int setup(void **state)
{
	return mkdtemp(proc) ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = { "7/status", "7/cgroup", "7", "" };
	char path[128];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		snprintf(path, sizeof(path), "%s/%s", proc, names[i]);
		remove(path);
	}
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_group),
		cmocka_unit_test(test_group_in_container),
		cmocka_unit_test(test_room),
	};

	return cmocka_run_group_tests_name("tenant", tests, setup, teardown);
}
