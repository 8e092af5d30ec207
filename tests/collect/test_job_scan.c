/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/job_scan.h"
#include "collect/tree.h"

#include <errno.h>

#define POD   "0d1d2d3d-4d5d-6d7d-8d9d-adbdcdddedfd"
#define HASH  "0d1d2d3d4d5d6d7d8d9dadbdcdddedfd"
#define ID    HASH HASH
#define OTHER HASH "ffffffffffffffffffffffffffffffff"
#define SLURM "/system.slice/slurmstepd.scope/job_12"

static struct job_scan job;

static int scan(const char *cgroup)
{
	char logs[512];

	memset(&job, 0, sizeof(job));
	tree_write(tree_path("proc/7/cgroup"), cgroup);
	snprintf(logs, sizeof(logs), "%s", tree_path("logs"));
	return job_scan(tree_config.procfs, logs, 7, &job);
}

static void test_a_pod_is_named_by_the_log_of_its_container(void **state)
{
	tree_write(tree_path("logs/a_b_c-" OTHER ".log"), "");
	tree_write(tree_path("logs/trainer-0_ml_main-" ID ".log"), "");
	assert_int_equal(scan("1:name=x:/y\n0::/kubepods/burstable/pod" POD "/" ID "\n"), 0);
	assert_string_equal(job.cgroup, "/kubepods/burstable/pod" POD);
	assert_string_equal(job.names.pod, "trainer-0");
	assert_string_equal(job.names.namespace, "ml");
	assert_string_equal(job.names.container_name, "main");
	/* In a cgroup namespace of its own, zerneld sees the pod next to itself. */
	assert_int_equal(scan("0::/../../burstable/pod" POD "/" ID "\n"), 0);
	assert_string_equal(job.names.pod, "trainer-0");
}

static void test_a_pod_without_a_log_has_no_name(void **state)
{
	assert_int_equal(scan("0::/kubepods/pod" POD "/" ID "\n"), -ENOENT);
	tree_write(tree_path("logs/a_b_c-" OTHER ".log"), "");
	assert_int_equal(scan("0::/kubepods/pod" POD "/" ID "\n"), -ENOENT);
	assert_string_equal(job.cgroup, "");
}

/* A user can make a cgroup with the name of any container. */
static void test_containers_of_users_get_no_name_of_a_pod(void **state)
{
	tree_write(tree_path("logs/trainer-0_ml_main-" ID ".log"), "");
	assert_int_equal(scan("0::/user.slice/user-1000.slice/user@1000.service/pod" POD
			      "/docker-" ID ".scope\n"),
			 0);
	assert_string_equal(job.names.pod, "");
	assert_int_equal(scan("0::/docker/" ID "\n"), 0);
	assert_string_equal(job.names.pod, "");
}

static void test_a_slurm_job_is_named_by_the_environment(void **state)
{
	static const char claims[] = "A=b\0SLURM_JOB_NAME=train\0SLURM_JOB_ACCOUNT=phys";

	tree_write_bytes(tree_path("proc/7/environ"), claims, sizeof(claims));
	assert_int_equal(scan("0::" SLURM "/step_0/user/task_0\n"), 0);
	assert_string_equal(job.cgroup, SLURM);
	assert_string_equal(job.names.claimed_name, "train");
	assert_string_equal(job.names.claimed_account, "phys");
	/* The same variables outside of Slurm are no names. */
	assert_int_equal(scan("0::/system.slice/a.service\n"), 0);
	assert_string_equal(job.names.claimed_name, "");
}

static void test_an_environment_that_is_too_large_is_refused(void **state)
{
	static char large[3 << 20];

	memset(large, 'a', sizeof(large));
	tree_write_bytes(tree_path("proc/7/environ"), large, sizeof(large));
	assert_int_equal(scan("0::" SLURM "\n"), -E2BIG);
}

static void test_processes_that_cannot_be_read(void **state)
{
	assert_int_equal(scan("0::" SLURM "\n"), -ENOENT); /* no environment */
	assert_int_equal(scan("1:name=x:/y\n"), -ENODATA);
	assert_int_equal(scan(""), -ENODATA);
	assert_int_equal(job_scan(tree_config.procfs, "/absent", 8, &job), -ENOENT);
}

/* As zerneld sees them in a cgroup namespace of its own. */
static void test_cgroups_outside_of_the_namespace(void **state)
{
	assert_int_equal(scan("0::/../../system.slice/a.service\n"), 0);
	assert_string_equal(job.cgroup, "/system.slice/a.service");
	assert_int_equal(scan("0::/../..\n"), 0);
	assert_string_equal(job.cgroup, "/");
	assert_int_equal(scan("0::/..a/b\n"), 0);
	assert_string_equal(job.cgroup, "/..a/b");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_pod_is_named_by_the_log_of_its_container),
		TEST(test_a_pod_without_a_log_has_no_name),
		TEST(test_containers_of_users_get_no_name_of_a_pod),
		TEST(test_a_slurm_job_is_named_by_the_environment),
		TEST(test_an_environment_that_is_too_large_is_refused),
		TEST(test_processes_that_cannot_be_read),
		TEST(test_cgroups_outside_of_the_namespace),
	};

	return cmocka_run_group_tests_name("job scans", tests, NULL, NULL);
}
