/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/job_names.h"

#define HASH "0d1d2d3d4d5d6d7d8d9dadbdcdddedfd"
#define ID   HASH HASH

static void test_a_log_names_pod_namespace_and_container(void **state)
{
	struct job_names names = {};

	assert_true(job_names_of_log("trainer-0.a_ml-team_main-" ID ".log", ID, &names));
	assert_string_equal(names.pod, "trainer-0.a");
	assert_string_equal(names.namespace, "ml-team");
	assert_string_equal(names.container_name, "main");
	assert_true(job_names_are_valid(&names));
}

static void test_other_files_name_nothing(void **state)
{
	static const char *const files[] = {
		"",
		".log",
		"trainer-0_ml_main-" HASH "0d1d2d3d4d5d6d7d8d9dadbdcdddedfe.log",
		"trainer-0_ml_main-" ID ".txt",
		"trainer-0_ml_main-" ID,
		"trainer-0_ml_main" ID ".log",
		"-" ID ".log",
		"trainer-0_main-" ID ".log",
		"__main-" ID ".log",
		"trainer-0_ml_-" ID ".log",
		"trainer-0_ml_a_b-" ID ".log",
		"Trainer_ml_main-" ID ".log",
		"trainer\033[31m_ml_main-" ID ".log",
		"trainer\xff_ml_main-" ID ".log",
		"trainer/0_ml_main-" ID ".log",
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct job_names names = {}, none = {};

		if (job_names_of_log(files[i], ID, &names))
			fail_msg("%s is accepted", files[i]);
		assert_memory_equal(&names, &none, sizeof(none));
	}
	assert_false(job_names_of_log("a_b_c-" ID ".log", "", &(struct job_names){}));
}

static void test_names_that_are_too_long_are_refused(void **state)
{
	struct job_names names = {};
	char file[512];

	/* The longest name of a file has 255 bytes. */
	snprintf(file, sizeof(file), "%.*s_n_c-%s.log", JOB_POD_LEN - 1,
		 HASH HASH HASH HASH HASH HASH, ID);
	assert_true(job_names_of_log(file, ID, &names));
	snprintf(file, sizeof(file), "%.*s_n_c-%s.log", JOB_POD_LEN, HASH HASH HASH HASH HASH HASH,
		 ID);
	assert_false(job_names_of_log(file, ID, &names));
	assert_false(job_names_of_log("p_" HASH HASH "_c-" ID ".log", ID, &names));
	assert_false(job_names_of_log("p_n_" HASH HASH "-" ID ".log", ID, &names));
}

#define CLAIMS(text) job_names_of_environment(text, sizeof(text) - 1, &names)

static void test_an_environment_claims_slurm_names(void **state)
{
	struct job_names names = {};

	CLAIMS("PATH=/bin\0SLURM_JOB_NAME=train\0SLURM_JOB_ACCOUNT=phys\0SLURM_ARRAY_JOB_ID=100\0"
	       "SLURM_ARRAY_TASK_ID=3\0");
	assert_string_equal(names.claimed_name, "train");
	assert_string_equal(names.claimed_account, "phys");
	assert_string_equal(names.claimed_array, "100_3");
	CLAIMS("XSLURM_JOB_NAME=x\0SLURM_ARRAY_JOB_ID=100");
	assert_string_equal(names.claimed_name, "");
	assert_string_equal(names.claimed_account, "");
	assert_string_equal(names.claimed_array, "");
	job_names_of_environment("", 0, &names);
	assert_true(job_names_are_valid(&names));
}

static void test_claims_are_bounded_and_printable(void **state)
{
	struct job_names names = {};

	CLAIMS("SLURM_JOB_NAME=a\033[31m\n\xff" HASH HASH HASH "\0SLURM_ARRAY_JOB_ID=" HASH HASH
	       "\0SLURM_ARRAY_TASK_ID=1");
	assert_memory_equal(names.claimed_name, "a?[31m??0d1d", 12);
	assert_int_equal(strlen(names.claimed_name), JOB_CLAIM_LEN - 1);
	assert_int_equal(strlen(names.claimed_array), JOB_ARRAY_LEN - 1);
	assert_true(job_names_are_valid(&names));
}

static void test_impossible_names_are_invalid(void **state)
{
	struct job_names names = { .pod = "a", .claimed_name = "b c" };

	assert_true(job_names_are_valid(&names));
	names.pod[1] = ' ';
	assert_false(job_names_are_valid(&names));
	memset(names.pod, 'a', sizeof(names.pod));
	assert_false(job_names_are_valid(&names));
	names.pod[0] = '\0';
	names.claimed_name[1] = '\n';
	assert_false(job_names_are_valid(&names));
	memset(names.claimed_name, 'a', sizeof(names.claimed_name));
	assert_false(job_names_are_valid(&names));
}

static void test_only_pods_and_slurm_jobs_have_names(void **state)
{
	struct job_names names = {};

	assert_true(job_names_are_missing(JOB_POD, &names));
	assert_true(job_names_are_missing(JOB_SLURM, &names));
	assert_false(job_names_are_missing(JOB_CONTAINER, &names));
	strcpy(names.pod, "a");
	assert_false(job_names_are_missing(JOB_POD, &names));
	assert_true(job_names_are_missing(JOB_SLURM, &names));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_log_names_pod_namespace_and_container),
		cmocka_unit_test(test_other_files_name_nothing),
		cmocka_unit_test(test_names_that_are_too_long_are_refused),
		cmocka_unit_test(test_an_environment_claims_slurm_names),
		cmocka_unit_test(test_claims_are_bounded_and_printable),
		cmocka_unit_test(test_impossible_names_are_invalid),
		cmocka_unit_test(test_only_pods_and_slurm_jobs_have_names),
	};

	return cmocka_run_group_tests_name("job names", tests, NULL, NULL);
}
