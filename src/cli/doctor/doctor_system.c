/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks of the system: capabilities of the caller, zerneld, GPUs, clock, limits. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include "base/cleanup.h"
#include "cli/doctor/doctor_internal.h"
#include "ipc/protocol.h"

#define CLOCKS	       "/sys/devices/system/clocksource/clocksource0/"
#define MEMLOCK_MIN    (64ULL << 10)
#define OPEN_FILES_MIN 4096
#define PID_MAX_MIN    32768
#define PCI_CLASS_LEN  6 /* of "0x0302"; the interface follows */
#define PCI_DEVICES    "/sys/bus/pci/devices"

static const struct {
	u32 bit;
	const char *name;
} needed[] = {
	{ CAP_BPF, "CAP_BPF" },
	{ CAP_PERFMON, "CAP_PERFMON" },
	{ CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
	{ CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH" },
	/* To start zernel-gpu and zernel-discover as users of their own. */
	{ CAP_SETUID, "CAP_SETUID" },
	{ CAP_SETGID, "CAP_SETGID" },
};

#define ADD_CAPABILITIES                                                                           \
	"see journalctl -u zerneld; if zerneld runs in a container, give it the capabilities "     \
	"CAP_SETUID and CAP_SETGID"

/* Reads a capability set of /proc/self/status, for example "CapEff:". */
static bool read_set(const char *status, const char *name, u64 *ret)
{
	const char *line = strstr(status, name);

	if (!line)
		return false;
	*ret = strtoull(line + strlen(name), NULL, 16);
	return true;
}

/* The first missing capability, or NULL. */
static const char *first_missing(u64 set)
{
	for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
		if (!(set & (1ULL << needed[i].bit)))
			return needed[i].name;
	return NULL;
}

struct finding check_capabilities(const struct doctor *doctor)
{
	char status[4096];
	u64 bounding, effective;

	if (doctor->snapshot && doctor->snapshot->nr_restarts)
		return finding(VERDICT_WARNING, ADD_CAPABILITIES,
			       "zerneld started its processes again %llu times: without them, it "
			       "finds no library and samples no GPU",
			       doctor->snapshot->nr_restarts);
	if (doctor->zerneld != ZERNELD_ABSENT)
		return finding(VERDICT_OK, NULL, "zerneld is running and has them");
	if (!doctor_read(doctor, "/proc/self/status", status, sizeof(status)) ||
	    !read_set(status, "CapBnd:", &bounding) || !read_set(status, "CapEff:", &effective))
		return finding(VERDICT_WARNING, NULL,
			       "cannot read the capabilities in /proc/self/status");
	if (first_missing(bounding))
		return finding(
			VERDICT_FAILURE,
			"start zerneld on the host, or give this capability to the container",
			"not even root has %s here, as in a container: zerneld or its processes "
			"cannot start",
			first_missing(bounding));
	if (first_missing(effective))
		return finding(VERDICT_FAILURE, NULL,
			       "zerneld is not running, and you lack %s to start it",
			       first_missing(effective));
	return finding(VERDICT_OK, NULL, "you have all capabilities that zerneld needs");
}

struct finding check_zerneld(const struct doctor *doctor)
{
	if (doctor->zerneld == ZERNELD_ABSENT)
		return finding(VERDICT_WARNING, NULL, "does not answer: %s", doctor->answer);
	if (doctor->zerneld == ZERNELD_REFUSES)
		return finding(VERDICT_WARNING,
			       "join group zernel and log in again: sudo usermod -aG zernel $USER",
			       "refuses your requests: %s", doctor->answer);
	if (doctor->zerneld == ZERNELD_OTHER_VERSION)
		return finding(VERDICT_FAILURE, "systemctl restart zerneld",
			       "is running, but " PROTOCOL_UPDATE_BOTH);
	if (doctor->zerneld == ZERNELD_BROKEN)
		return finding(VERDICT_FAILURE,
			       "see journalctl -u zerneld, then run: systemctl restart zerneld",
			       "sent an invalid reply: %s", doctor->answer);
	return finding(VERDICT_OK, NULL, "version %s answers", doctor->snapshot->version);
}

static bool is_device_file(const char *name)
{
	static const char *const prefixes[] = { "nvidia", "renderD" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t length = strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], length) == 0 && name[length] >= '0' &&
		    name[length] <= '9')
			return true;
	}
	return false;
}

/* Counts the GPU device files in a directory, and those that the caller may not open. */
static u32 count_devices(const struct doctor *doctor, const char *directory, u32 *nr_forbidden)
{
	char path[DOCTOR_PATH_LEN];
	struct dirent *entry;
	u32 nr = 0;
	DIR *dir;

	doctor_path(doctor, directory, path);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (!is_device_file(entry->d_name))
			continue;
		nr++;
		*nr_forbidden += faccessat(dirfd(dir), entry->d_name, R_OK | W_OK, 0) < 0;
	}
	if (dir)
		closedir(dir);
	return nr;
}

static const struct {
	const char *vendor;
	const char *name;
	const char *fix;
} vendors[] = {
	{ "0x10de", "an NVIDIA GPU",
	  "install the NVIDIA driver, or load it: sudo modprobe nvidia" },
	{ "0x1002", "an AMD GPU", "install the amdgpu driver, or load it: sudo modprobe amdgpu" },
	{ "0x8086", "an Intel GPU", "install the xe driver, or load it: sudo modprobe xe" },
};
#define NR_VENDORS ARRAY_SIZE(vendors)

/* The vendor of a display, 3D or accelerator device; NR_VENDORS for any other device. */
static size_t vendor_of(const struct doctor *doctor, const char *device)
{
	static const char *const classes[] = { "0x0300", "0x0302", "0x0380", "0x1200" };
	char path[DOCTOR_PATH_LEN], class[16], vendor[16];
	bool is_gpu = false;
	size_t i;

	snprintf(path, sizeof(path), PCI_DEVICES "/%s/class", device);
	if (!doctor_read(doctor, path, class, sizeof(class)))
		return NR_VENDORS;
	for (i = 0; i < ARRAY_SIZE(classes); i++)
		is_gpu |= strncmp(class, classes[i], PCI_CLASS_LEN) == 0;
	snprintf(path, sizeof(path), PCI_DEVICES "/%s/vendor", device);
	if (!is_gpu || !doctor_read(doctor, path, vendor, sizeof(vendor)))
		return NR_VENDORS;
	for (i = 0; i < NR_VENDORS && strcmp(vendor, vendors[i].vendor) != 0; i++)
		;
	return i;
}

/* No GPU device file exists. A GPU without a driver may still be on the PCI bus. */
static struct finding without_driver(const struct doctor *doctor)
{
	struct finding ret =
		finding(VERDICT_WARNING, NULL, "no GPU found: zerneld has nothing to watch");
	char path[DOCTOR_PATH_LEN];
	struct dirent *entry;
	DIR *dir;

	doctor_path(doctor, PCI_DEVICES, path);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		size_t i = vendor_of(doctor, entry->d_name);

		if (i < NR_VENDORS)
			ret = finding(VERDICT_WARNING, vendors[i].fix,
				      "%s at %s has no driver, or its driver has no device files",
				      vendors[i].name, entry->d_name);
	}
	if (dir)
		closedir(dir);
	return ret;
}

struct finding check_gpus(const struct doctor *doctor)
{
	u32 nr_forbidden = 0;
	u32 nr = count_devices(doctor, "/dev", &nr_forbidden);

	nr += count_devices(doctor, "/dev/dri", &nr_forbidden);
	if (nr == 0)
		return without_driver(doctor);
	if (nr_forbidden)
		return finding(
			VERDICT_WARNING,
			"join their groups and log in again: sudo usermod -aG video,render $USER",
			"you may not open %u of %u device files: your jobs cannot use these GPUs",
			nr_forbidden, nr);
	if (doctor->snapshot && doctor->snapshot->nr_gpus)
		return finding(VERDICT_OK, NULL, "%u device files, zerneld samples %u GPUs", nr,
			       doctor->snapshot->nr_gpus);
	return finding(VERDICT_OK, NULL, "%u device files", nr);
}

struct finding check_clock(const struct doctor *doctor)
{
	/* Clock sources without fast access from user space, or behind a slow bus. */
	static const char *const slow[] = { "hpet", "acpi_pm", "jiffies", "refined-jiffies",
					    "pit" };
	char name[64], available[256] = "";

	if (!doctor_read(doctor, CLOCKS "current_clocksource", name, sizeof(name)))
		return finding(VERDICT_WARNING, "check the files in " CLOCKS,
			       "the clock source is unknown");
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
		if (strcmp(name, slow[i]) != 0)
			continue;
		doctor_read(doctor, CLOCKS "available_clocksource", available, sizeof(available));
		return finding(
			VERDICT_WARNING,
			strstr(available, "tsc")
				? NULL
				: "find out why tsc is not available: dmesg | grep -i clocksource",
			"%s is slow to read, and every probe reads it: probes cost more CPU time",
			name);
	}
	return finding(VERDICT_OK, NULL, "%s", name);
}

/* Reads a limit from a line of /proc/self/limits: the soft or the hard one. ~0 means no limit. */
static bool read_limit(const struct doctor *doctor, const char *name, bool is_hard, u64 *ret)
{
	char text[4096];
	const char *line;

	if (!doctor_read(doctor, "/proc/self/limits", text, sizeof(text)))
		return false;
	line = strstr(text, name);
	if (!line)
		return false;
	line += strlen(name);
	line += strspn(line, " ");
	if (is_hard) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	*ret = *line == 'u' ? ~0ULL : strtoull(line, NULL, 10);
	return true;
}

struct finding check_memlock(const struct doctor *doctor)
{
	u64 limit;

	if (!read_limit(doctor, "Max locked memory", false, &limit))
		return finding(VERDICT_WARNING, "print it: ulimit -l", "the limit is unknown");
	if (limit == ~0ULL)
		return finding(VERDICT_OK, NULL, "no limit");
	return finding(limit < MEMLOCK_MIN ? VERDICT_WARNING : VERDICT_OK, NULL,
		       "%s may be locked in memory%s", unit_bytes(limit).text,
		       limit < MEMLOCK_MIN ? ": too little for the buffers of the probes" : "");
}

struct finding check_files(const struct doctor *doctor)
{
	u64 limit;

	/* zerneld raises its limit to the hard one. */
	if (!read_limit(doctor, "Max open files", true, &limit))
		return finding(VERDICT_WARNING, "print it: ulimit -n", "the limit is unknown");
	if (limit == ~0ULL)
		return finding(VERDICT_OK, NULL, "no limit");
	return finding(limit < OPEN_FILES_MIN ? VERDICT_WARNING : VERDICT_OK, NULL, "%llu%s", limit,
		       limit < OPEN_FILES_MIN
			       ? ": too few, because the probes of each library need about 30"
			       : "");
}

struct finding check_pids(const struct doctor *doctor)
{
	char text[32];
	u64 limit;

	if (!doctor_read(doctor, "/proc/sys/kernel/pid_max", text, sizeof(text)))
		return finding(VERDICT_WARNING, "print it: sysctl kernel.pid_max",
			       "the limit is unknown");
	limit = strtoull(text, NULL, 10);
	return finding(limit < PID_MAX_MIN ? VERDICT_WARNING : VERDICT_OK, NULL,
		       "%llu threads at once%s", limit,
		       limit < PID_MAX_MIN ? ": jobs with many loaders need more" : "");
}
