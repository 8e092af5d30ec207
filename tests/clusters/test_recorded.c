/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Cgroups and logs that Slurm, podman and containerd made in guests: see test_slurm.py and
 * test_containers.py. What zernel-discover reads about a process of each must name its job in a
 * snapshot.
 */
#include "collect/job_scan.h"
#include "collect/tree.h"
#include "daemon/job_names.h"

#define PID 7

struct recorded {
	const char *cgroup; /* of the process */
	const char *job_cgroup;
	const char *job;
	const char *log; /* the link that a kubelet makes for its container; or NULL */
	const char *pod, *namespace;
};

#define SLICE	 "/kubepods.slice"
#define SLURM	 "/system.slice/node1_slurmstepd.scope/job_1"
#define ID_1	 "39dadf51de5b3f0f76fe6bcc04fa5d39ae9fcb1baf2b427d1706666436e2a236"
#define ID_2	 "1a963eeb47e09ead690126a42d1c249c77bd8ee9613fdfc4975679ef3a1cb4ee"
#define ID_3	 "7cfa48ee5f634d59232b1cf57a09e1f745fec9c791ffe93ba379fe5bf704073e"
#define ID_4	 "f199cc0ff3bbe13db280f2f7587bdf74927151a197c832fa76f650830b766f45"
#define ID_5	 "a0a14971492a8964401b91e93280145025e267dca32b67c0d49d8d60f113c76e"
#define ID_6	 "83ce0532d9b7fd2e46471f662914eb105e16a8a54130ec253097c8cd0f8a84ce"
#define PODMAN_1 "df60220ab911f4bf56a0340db19cc7f9a455b5abbc32e33b93771749c9f30cf5"
#define PODMAN_2 "d58d5422703af2af57e99abdb5116d7c564e13e14d777c0df7c3309612300a39"

/* The slice of a pod, by the systemd driver, and its directory, by the driver cgroupfs. */
#define POD_1 SLICE "/kubepods-pod4e87d217_6b0d_49ca_aaef_3f119b6e4b14.slice"
#define POD_2                                                                                      \
	SLICE "/kubepods-burstable.slice"                                                          \
	      "/kubepods-burstable-podabc63c32_90ea_46ff_85e2_90d3ef213116.slice"
#define POD_3                                                                                      \
	SLICE "/kubepods-besteffort.slice"                                                         \
	      "/kubepods-besteffort-podf4ce6855_df63_4df0_9ada_cf288f7aa633.slice"
#define POD_4 "/kubepods/podb3ab5a17-7cdc-454c-ac8b-3c7ca118cb64"
#define POD_5 "/kubepods/burstable/pod2f69786b-f62b-401c-ae76-fc4452918361"
#define POD_6 "/kubepods/besteffort/pod078ff9dc-7855-4740-bbb2-bef5cb2214d9"

/* clang-format off */
static const struct recorded all[] = {
	{ SLURM "/step_0/user/task_0", SLURM, "slurm-1", NULL, "", "" },
	{ "/machine.slice/libpod-" PODMAN_1 ".scope/container", "/machine.slice/libpod-" PODMAN_1 ".scope",
	  "libpod-df60220ab911", NULL, "", "" },
	{ "/libpod_parent/libpod-" PODMAN_2, "/libpod_parent/libpod-" PODMAN_2, "libpod-d58d5422703a", NULL, "", "" },
	{ POD_1 "/cri-containerd-" ID_1 ".scope", POD_1, "pod-4e87d217-6b0d-49ca-aaef-3f119b6e4b14",
	  "train-systemd-guaranteed_team-guaranteed_main-" ID_1 ".log", "train-systemd-guaranteed", "team-guaranteed" },
	{ POD_2 "/cri-containerd-" ID_2 ".scope", POD_2, "pod-abc63c32-90ea-46ff-85e2-90d3ef213116",
	  "train-systemd-burstable_team-burstable_main-" ID_2 ".log", "train-systemd-burstable", "team-burstable" },
	{ POD_3 "/cri-containerd-" ID_3 ".scope", POD_3, "pod-f4ce6855-df63-4df0-9ada-cf288f7aa633",
	  "train-systemd-besteffort_team-besteffort_main-" ID_3 ".log", "train-systemd-besteffort", "team-besteffort" },
	{ POD_4 "/" ID_4, POD_4, "pod-b3ab5a17-7cdc-454c-ac8b-3c7ca118cb64",
	  "train-cgroupfs-guaranteed_team-guaranteed_main-" ID_4 ".log", "train-cgroupfs-guaranteed", "team-guaranteed" },
	{ POD_5 "/" ID_5, POD_5, "pod-2f69786b-f62b-401c-ae76-fc4452918361",
	  "train-cgroupfs-burstable_team-burstable_main-" ID_5 ".log", "train-cgroupfs-burstable", "team-burstable" },
	{ POD_6 "/" ID_6, POD_6, "pod-078ff9dc-7855-4740-bbb2-bef5cb2214d9",
	  "train-cgroupfs-besteffort_team-besteffort_main-" ID_6 ".log", "train-cgroupfs-besteffort", "team-besteffort" },
};
/* clang-format on */

void discovery_want_names(struct discovery *discovery, pid_t pid)
{
}

/* All logs are there at once, as on a node. */
static void write_logs(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].log)
			tree_write(tree_path("logs/%s", all[i].log), "");
}

/* `seen` is how zerneld sees the root of the cgroups: "/../.." in a container of its own. */
static void check(const struct recorded *recorded, const char *seen)
{
	struct snapshot_limits limits = { 4, 4, 4, 4, 4 };
	CLEANUP(snapshot_free_cleanup) struct snapshot *s = NULL;
	const struct snapshot_job *job;
	struct job_identity identity;
	struct job_scan result = {};
	char text[512], logs[512];

	snprintf(text, sizeof(text), "0::%s%s\n", seen, recorded->cgroup);
	tree_write(tree_path("proc/%d/cgroup", PID), text);
	tree_write(tree_path("proc/%d/environ", PID), "SLURM_JOB_NAME=lab-train");
	snprintf(logs, sizeof(logs), "%s", tree_path("logs"));
	assert_int_equal(job_scan_cgroup(tree_config.procfs, PID, text, sizeof(text)), 0);
	job_identify(text, &identity);
	assert_string_equal(identity.name, recorded->job);
	assert_string_equal(identity.cgroup, recorded->job_cgroup);

	assert_int_equal(snapshot_new(&limits, &s), 0);
	snapshot_add_process(s, PID)->job = snapshot_add_job(s, identity.cgroup, identity.name);
	s->jobs[0].kind = identity.kind;
	assert_int_equal(job_scan(tree_config.procfs, logs, PID, &result), 0);
	job_names_take(s, &result);
	job = &s->jobs[0];
	assert_string_equal(job->names.pod, recorded->pod);
	assert_string_equal(job->names.namespace, recorded->namespace);
	assert_string_equal(job->names.container_name, recorded->log ? "main" : "");
	assert_string_equal(job->names.claimed_name, identity.kind == JOB_SLURM ? "lab-train" : "");
}

static void test_recorded_jobs_have_their_names(void **state)
{
	write_logs();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		check(&all[i], "");
}

static void test_zerneld_in_a_container_sees_the_same_names(void **state)
{
	write_logs();
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		check(&all[i], "/../..");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_recorded_jobs_have_their_names),
		TEST(test_zerneld_in_a_container_sees_the_same_names),
	};

	return cmocka_run_group_tests_name("recorded jobs", tests, NULL, NULL);
}
