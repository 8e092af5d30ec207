/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/job.h"

#define UID_DASHES "0d1d2d3d-4d5d-6d7d-8d9d-adbdcdddedfd"
#define UID_BARS   "0d1d2d3d_4d5d_6d7d_8d9d_adbdcdddedfd"

static void cgroups_have_the_expected_job_names(void **state)
{
	static const struct {
		const char *cgroup;
		const char *name;
	} rows[] = {
		{ "/system.slice/slurmstepd.scope/job_1234/step_0/user/task_0", "slurm-1234" },
		{ "/slurm/uid_1000/job_7", "slurm-7" },
		{ "/slurm/job_/step_0", "/slurm/job_/step_0" },
		{ "/slurm/job_12x", "/slurm/job_12x" },
		{ "/kubepods/burstable/pod" UID_DASHES "/c0ffee", "pod-" UID_DASHES },
		{ "/kubepods.slice/kubepods-burstable.slice/"
		  "kubepods-burstable-pod" UID_BARS ".slice/cri-containerd-c0ffee.scope",
		  "pod-" UID_DASHES },
		{ "/kubepods/tripod" UID_DASHES, "/kubepods/tripod" UID_DASHES },
		{ "/system.slice/train.service", "train.service" },
		{ "/user.slice/user-1000.slice/user@1000.service/app.slice/run-r1.scope",
		  "run-r1.scope" },
		{ "/user.slice", "/user.slice" },
		{ "/.service", "/.service" },
		{ "/", "/" },
		{ "", "" },
	};
	char name[128];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		job_name(rows[i].cgroup, name, sizeof(name));
		assert_string_equal(name, rows[i].name);
	}
}

static void a_long_name_is_truncated(void **state)
{
	char name[8];

	for (size_t size = 1; size <= sizeof(name); size++) {
		memset(name, '#', sizeof(name));
		job_name("/slurm/job_123456", name, size);
		assert_int_equal(strlen(name), size - 1);
		assert_memory_equal(name, "slurm-123456", size - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cgroups_have_the_expected_job_names),
		cmocka_unit_test(a_long_name_is_truncated),
	};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
