/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the lines and the exit status of zernel doctor. Each machine is a directory. */
#include "answers/capture.h"

#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#include "abi/feature.h"
#include "cli/doctor/doctor.h"
#include "unit/kernel_btf.h"

static char root[] = "/tmp/doctor.XXXXXX";

static char *path_of(const char *path)
{
	static char full[256];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return full;
}

/* Creates the parent directories, too. */
static void put_bytes(const char *path, const void *data, size_t size)
{
	char *full = path_of(path);
	FILE *file;

	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		mkdir(full, 0755);
	}
	file = fopen(full, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	fclose(file);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static void take_away(const char *path)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -r '%s'", path_of(path));
	assert_int_equal(system(command), 0);
}

static void put_btf(struct btf *btf)
{
	const void *data;
	u32 size;

	data = btf__raw_data(btf, &size);
	put_bytes("/sys/kernel/btf/vmlinux", data, size);
	btf__free(btf);
}

/* BTF in which the function has its hidden parameter. */
static struct btf *btf_that_shows_aux(const char *function)
{
	struct btf *btf = kernel_btf_complete(function);

	kernel_btf_add(btf, function, "aux");
	return btf;
}

static struct btf *btf_without_sched_ext(void)
{
	struct btf *btf = kernel_btf_empty();

	kernel_btf_add_features(btf);
	return btf;
}

/* A machine without problems. */
static int make_machine(void **state)
{
	put("/proc/sys/kernel/osrelease", "6.18.3\n");
	put("/proc/sys/kernel/pid_max", "4194304\n");
	put("/proc/self/status", "Name:\tzernel\nCapEff:\t000001ffffffffff\n"
				 "CapBnd:\t000001ffffffffff\n");
	put("/proc/self/limits",
	    "Limit                     Soft Limit           Hard Limit           Units     \n"
	    "Max open files            65536                65536                files     \n"
	    "Max locked memory         unlimited            unlimited            bytes     \n");
	put("/sys/kernel/sched_ext/state", "disabled\n");
	put("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
	put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
	put("/dev/nvidia0", "");
	put("/dev/nvidiactl", "");
	put_btf(kernel_btf_complete(NULL));
	return 0;
}

static int remove_machine(void **state)
{
	take_away("");
	return mkdir(root, 0755);
}

static struct snapshot *make_snapshot(void)
{
	const struct snapshot_limits limits = SNAPSHOT_LIMITS_DEFAULT;
	struct snapshot *snapshot;

	assert_int_equal(snapshot_new(&limits, &snapshot), 0);
	snapshot_set_text(snapshot->version, sizeof(snapshot->version), "0.1.0", 5);
	snapshot->sched.state = SCHED_ATTACHED;
	return snapshot;
}

static char *print(const struct doctor *doctor, int expected)
{
	struct capture capture = capture_begin();
	struct term term = { .out = capture.out };
	int status = doctor_print(doctor, &term);
	char *text = capture_end(&capture);

	if (status != expected)
		print_message("# %s", text);
	assert_int_equal(status, expected);
	return text;
}

/* Expects a line, the start of the remedy below it (NULL: no remedy), and the exit status. */
static void assert_found(const struct doctor *doctor, enum verdict verdict, const char *line,
			 const char *fix)
{
	char *text = print(doctor, (int)verdict), *at = strstr(text, line);

	if (!at)
		print_message("# '%s' is not in:\n%s", line, text);
	assert_non_null(at);
	at = strchr(at, '\n') + 1;
	at += strspn(at, " ");
	if (fix)
		assert_memory_equal(at, fix, strlen(fix));
	else
		assert_memory_not_equal(at, "->", 2);
	free(text);
}

/* zerneld answers, so all findings come from the machine. */
static struct doctor doctor_with(const struct snapshot *snapshot)
{
	return (struct doctor){ .root = root, .zerneld = ZERNELD_ANSWERS, .snapshot = snapshot };
}

static void test_good_kernel(void **state)
{
	struct snapshot *snapshot = make_snapshot();
	struct doctor doctor = doctor_with(snapshot);
	char *text = print(&doctor, 0);

	assert_non_null(strstr(text, "ok       kernel        6.18.3\n"));
	assert_non_null(strstr(
		text,
		"ok       BTF           complete, with all functions that schedulers call\n"));
	assert_non_null(strstr(text, "ok       scheduler     zernel is attached\n"));
	assert_non_null(strstr(text, "ok: 16, warnings: 0, failures: 0\n"));
	assert_null(strstr(text, "->"));
	free(text);
	snapshot_free(snapshot);
}

static void assert_machine(enum verdict verdict, const char *line, const char *fix)
{
	struct snapshot *snapshot = make_snapshot();
	struct doctor doctor = doctor_with(snapshot);

	assert_found(&doctor, verdict, line, fix);
	snapshot_free(snapshot);
}

/* As 5.15: what the kernel has decides, not its release. */
static void test_old_kernel(void **state)
{
	put("/proc/sys/kernel/osrelease", "5.15.0\n");
	put_btf(kernel_btf_new(NULL));
	assert_machine(VERDICT_FAILURE,
		       "failure  kernel        5.15.0 lacks ring_buffer, task_storage",
		       "-> boot Linux 6.1 or newer");
}

static void test_features(void **state)
{
	struct snapshot *snapshot = make_snapshot();
	struct doctor doctor = doctor_with(snapshot);
	struct capture capture;
	char *text;

	assert_found(&doctor, VERDICT_OK, "ok       features      all that zerneld uses\n", NULL);
	put_btf(btf_without_sched_ext());
	snapshot->refused = FEATURE_BIT(RANKS);
	assert_found(
		&doctor, VERDICT_WARNING,
		"warning  features      left out: ranks (refused by this kernel): no ranks and "
		"collectives; scheduler (Linux 6.12 with CONFIG_SCHED_CLASS_EXT): ",
		"-> boot a newer kernel");
	capture = capture_begin();
	doctor_print_json(&doctor, capture.out);
	text = capture_end(&capture);
	assert_non_null(
		strstr(text, "\"lacks\": [\n        \"ranks\",\n        \"scheduler\"\n    ]"));
	free(text);
	snapshot_free(snapshot);
}

static void test_kernel_without_sched_ext(void **state)
{
	take_away("/sys/kernel/sched_ext");
	assert_machine(VERDICT_WARNING, "warning  sched_ext     this kernel has no sched_ext",
		       "-> to use the scheduler, boot Linux 6.12");
}

static void test_broken_btf_kernel(void **state)
{
	put("/proc/sys/kernel/osrelease", "7.2.12+deb13-amd64\n");
	put_btf(kernel_btf_complete("scx_bpf_exit_bstr"));
	assert_machine(VERDICT_FAILURE,
		       "failure  BTF           the BTF of this kernel (7.2.12+deb13-amd64) lacks "
		       "function scx_bpf_exit_bstr: no sched_ext scheduler",
		       "-> to use the scheduler, boot another kernel");
}

/* As in 7.2.12 of trixie-backports: the function exists, but not as programs call it. */
static void test_btf_with_a_hidden_parameter(void **state)
{
	struct btf *sound = btf_that_shows_aux("scx_bpf_create_dsq");

	put("/proc/sys/kernel/osrelease", "7.2.12+deb13-amd64\n");
	put_btf(btf_that_shows_aux("scx_bpf_create_dsq"));
	assert_machine(VERDICT_FAILURE,
		       "failure  BTF           the BTF of this kernel (7.2.12+deb13-amd64) lacks "
		       "function scx_bpf_create_dsq in the form that programs call",
		       "-> to use the scheduler, boot another kernel");
	kernel_btf_add(sound, "scx_bpf_create_dsq_impl", "aux");
	put_btf(sound);
	assert_machine(VERDICT_OK,
		       "ok       BTF           complete, with all functions that schedulers call\n",
		       NULL);
}

static void test_btf_without_sched_ext(void **state)
{
	put_btf(btf_without_sched_ext());
	assert_machine(VERDICT_WARNING, "ok       BTF           complete, without sched_ext\n",
		       NULL);
}

static void test_no_btf(void **state)
{
	take_away("/sys/kernel/btf");
	assert_machine(VERDICT_FAILURE,
		       "failure  BTF           this kernel has no /sys/kernel/btf/vmlinux",
		       "-> boot a kernel that was built with");
}

static void test_damaged_btf(void **state)
{
	put("/sys/kernel/btf/vmlinux", "nonsense");
	assert_machine(VERDICT_FAILURE, "failure  BTF           /sys/kernel/btf/vmlinux cannot be",
		       "-> ");
}

static void test_no_privilege(void **state)
{
	struct doctor doctor = { .root = root, .answer = "No such file or directory" };

	put("/proc/self/status", "CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n");
	assert_found(&doctor, VERDICT_FAILURE,
		     "failure  capabilities  zerneld is not running, and you lack CAP_BPF",
		     "-> start zerneld as root: sudo systemctl start zerneld\n");
	put("/proc/self/status", "CapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\n");
	assert_found(&doctor, VERDICT_FAILURE,
		     "failure  capabilities  not even root has CAP_BPF here",
		     "-> start zerneld on the host");
	/* A container that may load BPF programs, but not change the user of a process. */
	put("/proc/self/status", "CapEff:\t000001ffffffff7f\nCapBnd:\t000001ffffffff7f\n");
	assert_found(&doctor, VERDICT_FAILURE,
		     "failure  capabilities  not even root has CAP_SETUID here",
		     "-> start zerneld on the host, or give this capability to the container");
	put("/proc/self/status", "CapEff:\t000001ffffffffbf\nCapBnd:\t000001ffffffffbf\n");
	assert_found(&doctor, VERDICT_FAILURE,
		     "failure  capabilities  not even root has CAP_SETGID here",
		     "-> start zerneld on the host, or give this capability to the container");
	/* If zerneld runs, the caller needs no capability. */
	doctor.zerneld = ZERNELD_REFUSES;
	assert_found(&doctor, VERDICT_WARNING, "ok       capabilities  zerneld is running", NULL);
	assert_found(&doctor, VERDICT_WARNING, "warning  zerneld       refuses your requests",
		     "-> join group zernel and log in again: sudo usermod -aG zernel $USER\n");
}

static void test_zerneld_is_not_running(void **state)
{
	struct doctor doctor = { .root = root, .answer = "No such file or directory" };

	assert_found(&doctor, VERDICT_WARNING,
		     "warning  zerneld       does not answer: No such file or directory\n",
		     "-> systemctl start zerneld\n");
	doctor.zerneld = ZERNELD_OTHER_VERSION;
	assert_found(&doctor, VERDICT_FAILURE,
		     "failure  zerneld       is running, but speaks another protocol version: "
		     "update both",
		     "-> systemctl restart zerneld\n");
	doctor.zerneld = ZERNELD_BROKEN;
	assert_found(&doctor, VERDICT_FAILURE, "failure  zerneld       sent an invalid reply",
		     "-> see journalctl -u zerneld");
}

static void test_processes_of_zerneld_fail(void **state)
{
	struct snapshot *snapshot = make_snapshot();
	struct doctor doctor = doctor_with(snapshot);

	snapshot->nr_restarts = 4;
	assert_found(&doctor, VERDICT_WARNING,
		     "warning  capabilities  zerneld started its processes again 4 times",
		     "-> see journalctl -u zerneld; if zerneld runs in a container, give it the "
		     "capabilities CAP_SETUID and CAP_SETGID");
	snapshot_free(snapshot);
}

static void test_lockdown(void **state)
{
	put("/sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
	assert_machine(VERDICT_OK, "ok       lockdown      integrity\n", NULL);
	put("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
	assert_machine(VERDICT_FAILURE, "failure  lockdown      confidentiality",
		       "-> Zernel works with lockdown mode");
}

static void test_another_scheduler(void **state)
{
	put("/sys/kernel/sched_ext/root/ops", "lavd\n");
	assert_machine(VERDICT_WARNING, "warning  scheduler     the scheduler lavd is attached",
		       "-> find the service that attached it");
	put("/sys/kernel/sched_ext/root/ops", "zernel\n");
	assert_machine(VERDICT_OK, "ok       scheduler     zernel is attached\n", NULL);
}

static void test_our_scheduler_was_ejected(void **state)
{
	struct snapshot *snapshot = make_snapshot();
	struct doctor doctor = doctor_with(snapshot);

	snapshot->sched.state = SCHED_EJECTED;
	snapshot_set_text(snapshot->sched.reason, sizeof(snapshot->sched.reason), "stall", 5);
	assert_found(&doctor, VERDICT_FAILURE,
		     "failure  scheduler     the kernel ejected zernel: stall\n",
		     "-> find the cause (journalctl -u zerneld)");
	snapshot_free(snapshot);
}

static void test_no_gpu(void **state)
{
	take_away("/dev/nvidia0");
	assert_machine(VERDICT_WARNING, "warning  GPU           no GPU found",
		       "-> check that the GPU and its driver are listed: lspci -nnk\n");
	put("/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
	put("/sys/bus/pci/devices/0000:00:02.0/vendor", "0x1234\n");
	assert_machine(VERDICT_WARNING, "warning  GPU           no GPU found",
		       "-> check that the GPU and its driver are listed: lspci -nnk\n");
	put("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n");
	put("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n");
	assert_machine(VERDICT_WARNING,
		       "warning  GPU           an NVIDIA GPU at 0000:01:00.0 has no driver",
		       "-> install the NVIDIA driver, or load it: sudo modprobe nvidia\n");
	put("/dev/dri/renderD128", "");
	assert_machine(VERDICT_OK, "ok       GPU           1 device files\n", NULL);
}

static void test_libraries_and_probes(void **state)
{
	struct snapshot *snapshot = make_snapshot();
	struct doctor doctor = doctor_with(snapshot);

	put("/proc/42/maps",
	    "7f00-7f01 r-xp 00000000 08:01 7 /usr/lib/libcuda.so.1\n"
	    "7f02-7f03 r-xp 00000000 08:01 8 /usr/lib/libnccl.so.2.21 (deleted)\n");
	put("/proc/43/maps", "7f00-7f01 r-xp 00000000 08:01 7 /usr/lib/libc.so.6\n");
	assert_found(&doctor, VERDICT_WARNING,
		     "warning  libraries     processes with cuda nccl mapped: 1; probes: 0 on 0 "
		     "libraries; processes with "
		     "calls that zerneld saw: 0\n",
		     "-> look for probe errors: journalctl -u zerneld\n");
	snapshot->probes = (struct snapshot_probes){ .nr_libraries = 2, .nr_probes = 47 };
	assert_non_null(snapshot_add_process(snapshot, 42));
	assert_found(&doctor, VERDICT_OK,
		     "ok       libraries     processes with cuda nccl mapped: 1; probes: 47 on 2 "
		     "libraries; processes with "
		     "calls that zerneld saw: 1\n",
		     NULL);
	assert_found(&doctor, VERDICT_OK,
		     "ok       probe cost    all probed functions begin with an instruction that "
		     "makes probes cheap\n",
		     NULL);
	snapshot->probes.nr_stepped = 6;
	snprintf(snapshot->probes.stepped, sizeof(snapshot->probes.stepped),
		 "ncclCommInitAll, zeMemFree");
	assert_found(
		&doctor, VERDICT_OK,
		"ok       probe cost    6 of 47 probed functions are single-stepped: a call of "
		"one costs about 10 times a cheap probe: ncclCommInitAll, zeMemFree, ...\n",
		NULL);
	assert_found(
		&doctor, VERDICT_OK,
		"ok       evidence      every process with calls of a GPU runtime has opened a "
		"GPU\n",
		NULL);
	snapshot->processes[0].gpu_evidence = GPU_EVIDENCE_NONE;
	assert_found(
		&doctor, VERDICT_WARNING,
		"warning  evidence      unproven processes: 1; they call a GPU runtime and have "
		"opened no GPU, so the scheduler does not promote them; the first is 42 (",
		"-> if the GPU has another device file, add it to device_files in "
		"zernel.conf(5)\n");
	doctor = (struct doctor){ .root = root };
	assert_found(&doctor, VERDICT_WARNING,
		     "ok       libraries     processes with cuda nccl mapped: 1; without zerneld",
		     "ok       probe cost    no function is probed\n");
	snapshot_free(snapshot);
}

static void test_clock_and_limits(void **state)
{
	put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
	put("/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet tsc\n");
	assert_machine(VERDICT_WARNING, "warning  clock         hpet is slow",
		       "-> the kernel offers tsc");
	put("/sys/devices/system/clocksource/clocksource0/available_clocksource", "hpet\n");
	assert_machine(VERDICT_WARNING, "warning  clock         hpet is slow",
		       "-> find out why tsc is not");
	put("/proc/self/limits", "Max open files            65536 256   files\n"
				 "Max locked memory         8192  8192  bytes\n");
	put("/proc/sys/kernel/pid_max", "1024\n");
	assert_machine(VERDICT_WARNING, "warning  memlock       8.0 KiB may be locked",
		       "-> raise the limit: ulimit -l");
	assert_machine(VERDICT_WARNING, "warning  open files    256: too few",
		       "-> raise the limit: ulimit -n");
	assert_machine(VERDICT_WARNING, "warning  pids          1024 threads",
		       "-> raise the limit: sysctl -w");
}

static void assert_next(const struct doctor *doctor, const char *command)
{
	struct capture capture = capture_begin();
	struct term term = { .out = capture.out };
	char *text, *line;

	doctor_print(doctor, &term);
	text = capture_end(&capture);
	line = strstr(text, "next: ");
	assert_non_null(line);
	assert_string_equal(line + strlen("next: "), command);
	free(text);
}

static void test_next_command(void **state)
{
	struct snapshot *snapshot = make_snapshot();
	struct doctor doctor = { .root = root, .zerneld = ZERNELD_ABSENT, .answer = "gone" };

	assert_next(&doctor, "sudo systemctl enable --now zerneld\n");
	doctor.zerneld = ZERNELD_OTHER_VERSION;
	assert_next(&doctor, "sudo systemctl restart zerneld\n");
	doctor = doctor_with(snapshot);
	assert_next(&doctor, "zernel demo\n");
	snapshot->nr_processes = 1;
	assert_next(&doctor, "zernel why\n");
	snapshot->nr_processes = 0;
	snapshot_free(snapshot);
}

static void test_json(void **state)
{
	struct doctor doctor = { .root = root, .answer = "gone" };
	struct capture capture = capture_begin();
	yyjson_val *checks, *check;
	size_t i, nr, nr_fixes = 0;
	yyjson_doc *doc;
	char *text;

	assert_int_equal(doctor_print_json(&doctor, capture.out), VERDICT_WARNING);
	text = capture_end(&capture);
	doc = yyjson_read(text, strlen(text), 0);
	assert_non_null(doc);
	assert_true(
		yyjson_equals_str(yyjson_obj_get(yyjson_doc_get_root(doc), "verdict"), "warning"));
	checks = yyjson_obj_get(yyjson_doc_get_root(doc), "checks");
	assert_int_equal(yyjson_arr_size(checks), 16);
	yyjson_arr_foreach(checks, i, nr, check) {
		bool ok = yyjson_equals_str(yyjson_obj_get(check, "verdict"), "ok");

		assert_int_equal(ok, yyjson_obj_get(check, "fix") == NULL);
		nr_fixes += !ok;
	}
	assert_int_equal(nr_fixes, 1);
	yyjson_doc_free(doc);
	free(text);
}

#define ON_A_MACHINE(test) cmocka_unit_test_setup_teardown(test, make_machine, remove_machine)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_A_MACHINE(test_good_kernel),
		ON_A_MACHINE(test_old_kernel),
		ON_A_MACHINE(test_features),
		ON_A_MACHINE(test_kernel_without_sched_ext),
		ON_A_MACHINE(test_broken_btf_kernel),
		ON_A_MACHINE(test_btf_with_a_hidden_parameter),
		ON_A_MACHINE(test_btf_without_sched_ext),
		ON_A_MACHINE(test_no_btf),
		ON_A_MACHINE(test_damaged_btf),
		ON_A_MACHINE(test_no_privilege),
		ON_A_MACHINE(test_zerneld_is_not_running),
		ON_A_MACHINE(test_lockdown),
		ON_A_MACHINE(test_processes_of_zerneld_fail),
		ON_A_MACHINE(test_another_scheduler),
		ON_A_MACHINE(test_our_scheduler_was_ejected),
		ON_A_MACHINE(test_no_gpu),
		ON_A_MACHINE(test_libraries_and_probes),
		ON_A_MACHINE(test_clock_and_limits),
		ON_A_MACHINE(test_next_command),
		ON_A_MACHINE(test_json),
	};
	int status;

	if (!mkdtemp(root))
		return 2;
	status = cmocka_run_group_tests_name("zernel doctor", tests, NULL, NULL);
	rmdir(root);
	return status;
}
