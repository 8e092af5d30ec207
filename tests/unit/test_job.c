/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include "base/macros.h"
#include "core/job.h"

#define UID_DASHES "0d1d2d3d-4d5d-6d7d-8d9d-adbdcdddedfd"
#define UID_BARS   "0d1d2d3d_4d5d_6d7d_8d9d_adbdcdddedfd"
#define HASH	   "0d1d2d3d4d5d6d7d8d9dadbdcdddedfd"
#define ID	   HASH HASH
#define SLURM	   "/system.slice/slurmstepd.scope/job_1234"
#define BURSTABLE                                                                                  \
	"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_BARS ".slice"
#define USER "/user.slice/user-1000.slice/user@1000.service"

struct row {
	const char *path;
	u32 kind;
	const char *cgroup; /* NULL: the whole path */
	const char *name;   /* NULL: the whole path */
	const char *container;
	const char *step;
};

/* clang-format off */
static const struct row rows[] = {
	/* Slurm: the job, at any depth */
	{ SLURM "/step_0/user/task_0", JOB_SLURM, SLURM, "slurm-1234", "", "0" },
	{ SLURM "/step_0/user/task_7", JOB_SLURM, SLURM, "slurm-1234", "", "0" },
	{ SLURM "/step_batch/user", JOB_SLURM, SLURM, "slurm-1234", "", "batch" },
	{ SLURM, JOB_SLURM, NULL, "slurm-1234", "", "" },
	{ "/system.slice/node1_slurmstepd.scope/job_8/step_0", JOB_SLURM, "/system.slice/node1_slurmstepd.scope/job_8",
	  "slurm-8", "", "0" },
	{ "/slurm/uid_1000/job_7", JOB_SLURM, NULL, "slurm-7", "", "" },
	{ SLURM "/step_0/user/task_0/libpod-" ID ".scope", JOB_SLURM, SLURM, "slurm-1234", "", "0" },
	{ "/slurm/job_/step_0", JOB_CGROUP, NULL, NULL, "", "" },
	{ "/slurm/job_12x", JOB_CGROUP, NULL, NULL, "", "" },
	{ "/batch/job_12", JOB_CGROUP, NULL, NULL, "", "" },
	/* Kubernetes: the pod, with its drivers and classes */
	{ BURSTABLE "/cri-containerd-" ID ".scope", JOB_POD, BURSTABLE, "pod-" UID_DASHES, ID, "" },
	{ "/kubepods.slice/kubepods-pod" UID_BARS ".slice/crio-" ID ".scope/container", JOB_POD,
	  "/kubepods.slice/kubepods-pod" UID_BARS ".slice", "pod-" UID_DASHES, ID, "" },
	{ "/kubepods/besteffort/pod" UID_DASHES "/" ID, JOB_POD, "/kubepods/besteffort/pod" UID_DASHES, "pod-" UID_DASHES,
	  ID, "" },
	{ "/kubepods/pod" HASH "/" ID, JOB_POD, "/kubepods/pod" HASH, "pod-" HASH, ID, "" },
	{ "/system.slice/containerd.service" "/kubepods-burstable-pod" UID_BARS ".slice:cri-containerd:" ID, JOB_POD,
	  "/system.slice/containerd.service" "/kubepods-burstable-pod" UID_BARS ".slice", "pod-" UID_DASHES, ID, "" },
	{ "/docker/" ID "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_BARS ".slice/cri-containerd-" HASH ID,
	  JOB_POD, "/docker/" ID "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_BARS ".slice",
	  "pod-" UID_DASHES, "", "" },
	{ "/kubepods/tripod" UID_DASHES, JOB_CGROUP, NULL, NULL, "", "" },
	/* a Slurm node in a pod */
	{ BURSTABLE "/cri-containerd-" ID ".scope" SLURM "/step_0", JOB_SLURM, BURSTABLE "/cri-containerd-" ID ".scope" SLURM,
	  "slurm-1234", "", "0" },
	/* containers */
	{ "/system.slice/docker-" ID ".scope", JOB_CONTAINER, NULL, "docker-0d1d2d3d4d5d", ID, "" },
	{ "/docker/" ID "/system.slice/train.service", JOB_CONTAINER, "/docker/" ID, "docker-0d1d2d3d4d5d", ID, "" },
	{ "/machine.slice/libpod-" ID ".scope/container", JOB_CONTAINER, "/machine.slice/libpod-" ID ".scope",
	  "libpod-0d1d2d3d4d5d", ID, "" },
	{ USER "/user.slice/libpod-" ID ".scope/container", JOB_CONTAINER, USER "/user.slice/libpod-" ID ".scope",
	  "user-1000/libpod-0d1d2d3d4d5d", ID, "" },
	/* units: what is inside belongs to the unit, except for those of a user */
	{ "/system.slice/train.service", JOB_UNIT, NULL, "train.service", "", "" },
	{ "/system.slice/train.service/worker-0/x.scope", JOB_UNIT, "/system.slice/train.service", "train.service", "", "" },
	{ USER "/app.slice/run-r1.scope/x", JOB_UNIT, USER "/app.slice/run-r1.scope", "user-1000/run-r1.scope", "", "" },
	{ USER "/init", JOB_MANAGER, USER, "user-1000/user@1000.service", "", "" },
	{ "/user.slice/user-1000.slice/session-3.scope", JOB_SESSION, NULL, "user-1000/session-3.scope", "", "" },
	/* what users make in their part of the tree is no job of others */
	{ USER "/slurm/job_1234", JOB_MANAGER, USER, "user-1000/user@1000.service", "", "" },
	{ USER "/slurmstepd.scope/job_1234", JOB_UNIT, USER "/slurmstepd.scope", "user-1000/slurmstepd.scope", "", "" },
	{ USER "/kubepods/pod" UID_DASHES, JOB_MANAGER, USER, "user-1000/user@1000.service", "", "" },
	{ USER "/user-0.slice/train.service", JOB_UNIT, USER "/user-0.slice/train.service", "user-1000/train.service", "", "" },
	/* no manager */
	{ "/user.slice", JOB_CGROUP, NULL, NULL, "", "" },
	{ "/.service", JOB_CGROUP, NULL, NULL, "", "" },
	{ "/", JOB_CGROUP, NULL, NULL, "", "" },
	{ "//a", JOB_CGROUP, NULL, NULL, "", "" },
	{ "", JOB_CGROUP, NULL, NULL, "", "" },
};
/* clang-format on */

static void cgroups_have_the_expected_jobs(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		struct job_identity job;

		job_identify(row->path, &job);
		assert_int_equal(job.kind, row->kind);
		assert_string_equal(job.cgroup, row->cgroup ?: row->path);
		assert_string_equal(job.name, row->name ?: row->path);
		assert_string_equal(job.container, row->container);
		assert_string_equal(job.step, row->step);
	}
}

static void long_paths_are_distinct(void **state)
{
	char path[2 * JOB_CGROUP_LEN];
	struct job_identity a, b;

	for (size_t length = 1; length < sizeof(path); length++) {
		memset(path, 'x', length);
		path[0] = '/';
		path[length] = '\0';
		job_identify(path, &a);
		path[length - 1] = 'y';
		job_identify(path, &b);
		assert_string_not_equal(a.cgroup, b.cgroup);
		assert_int_equal(strlen(a.cgroup),
				 length < JOB_CGROUP_LEN ? length : JOB_CGROUP_LEN - 1);
		assert_true(strlen(a.name) < JOB_NAME_LEN);
	}
}

/* The name is also that of a process that is deeper inside of the job. */
static void depth_does_not_change_the_job(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct job_identity job, inside;
		char path[1024];

		if (rows[i].kind == JOB_CGROUP || rows[i].kind == JOB_MANAGER)
			continue;
		snprintf(path, sizeof(path), "%s/a/b", rows[i].path);
		job_identify(rows[i].path, &job);
		job_identify(path, &inside);
		assert_string_equal(inside.cgroup, job.cgroup);
		assert_string_equal(inside.name, job.name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cgroups_have_the_expected_jobs),
		cmocka_unit_test(long_paths_are_distinct),
		cmocka_unit_test(depth_does_not_change_the_job),
	};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
