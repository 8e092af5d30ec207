/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts processes that map a GPU runtime library, and checks whether zerneld sees them. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "abi/runtime.h"
#include "base/cleanup.h"
#include "cli/doctor/doctor_internal.h"

static const struct {
	const char *label;
	const char *library;
} runtimes[RUNTIME_NR] = {
#define RUNTIME(id, label_, level, library_) [RUNTIME_##id] = { label_, library_ },
#include "abi/runtimes.def"
};

/* zerneld names this many functions. */
#define STEPPED_NAMES 5

struct census {
	u32 nr_processes;  /* that map a runtime library */
	u32 nr_seen;	   /* of these, known to zerneld */
	u32 nr_unreadable; /* processes of other users */
	u32 runtimes;	   /* one bit per runtime */
};

/* The runtimes that a /proc/PID/maps file names; 0 if it cannot be read. */
static u32 runtimes_of(const char *path, int *ret_err)
{
	CLEANUP_FREE char *line = NULL;
	FILE *file = fopen(path, "re");
	size_t room = 0;
	u32 found = 0;

	*ret_err = file ? 0 : -errno;
	while (file && getline(&line, &room, file) > 0) {
		const char *name = strrchr(line, '/');

		for (u32 i = 0; name && i < RUNTIME_NR; i++)
			if (strncmp(name + 1, runtimes[i].library, strlen(runtimes[i].library)) ==
			    0)
				found |= 1U << i;
	}
	if (file)
		fclose(file);
	return found;
}

static bool is_seen(const struct snapshot *snapshot, u32 pid)
{
	for (u32 i = 0; snapshot && i < snapshot->nr_processes; i++)
		if (snapshot->processes[i].pid == pid)
			return true;
	return false;
}

static void take_census(const struct doctor *doctor, struct census *census)
{
	char path[DOCTOR_PATH_LEN];
	struct dirent *entry;
	DIR *dir;

	doctor_path(doctor, "/proc", path);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		char maps[DOCTOR_PATH_LEN + 300];
		u32 found;
		int err;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		snprintf(maps, sizeof(maps), "%s/%s/maps", path, entry->d_name);
		found = runtimes_of(maps, &err);
		census->nr_unreadable += err == -EACCES || err == -EPERM;
		census->runtimes |= found;
		census->nr_processes += found != 0;
		census->nr_seen += found != 0 &&
				   is_seen(doctor->snapshot, (u32)strtoul(entry->d_name, NULL, 10));
	}
	if (dir)
		closedir(dir);
}

/* " cuda nccl" */
static void name_runtimes(u32 bits, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (u32 i = 0; i < RUNTIME_NR && used < size; i++)
		if (bits & (1U << i))
			used += (size_t)snprintf(text + used, size - used, " %s",
						 runtimes[i].label);
}

struct finding check_libraries(const struct doctor *doctor)
{
	struct census census = {};
	char names[128], hidden[64] = "";
	const struct snapshot_probes *probes;

	take_census(doctor, &census);
	name_runtimes(census.runtimes, names, sizeof(names));
	if (census.nr_unreadable)
		snprintf(hidden, sizeof(hidden), "; not readable by you: %u", census.nr_unreadable);
	if (census.nr_processes == 0)
		return finding(VERDICT_OK, NULL, "no process has a GPU runtime library mapped%s",
			       hidden);
	if (!doctor->snapshot)
		return finding(
			VERDICT_OK, NULL,
			"processes with%s mapped: %u; without zerneld the state of the probes is "
			"unknown%s",
			names, census.nr_processes, hidden);
	probes = &doctor->snapshot->probes;
	/* A process may have mapped a library without calling it yet. */
	return finding(probes->nr_libraries ? VERDICT_OK : VERDICT_WARNING, NULL,
		       "processes with%s mapped: %u; probes: %llu on %llu libraries; processes "
		       "with calls that zerneld saw: %u%s",
		       names, census.nr_processes, probes->nr_probes, probes->nr_libraries,
		       census.nr_seen, hidden);
}

/* The scheduler promotes none of these processes. */
struct finding check_evidence(const struct doctor *doctor)
{
	const struct snapshot *s = doctor->snapshot;
	const struct snapshot_process *first = NULL;
	u32 nr = 0;

	for (u32 i = 0; s && i < s->nr_processes; i++) {
		if (!snapshot_is_unproven(s, &s->processes[i]))
			continue;
		first = nr++ ? first : &s->processes[i];
	}
	if (!nr)
		return finding(VERDICT_OK, NULL,
			       "every process with calls of a GPU runtime has opened a GPU");
	return finding(VERDICT_WARNING, NULL,
		       "unproven processes: %u; they call a GPU runtime and have opened no GPU, so "
		       "the scheduler does not promote them; the first is %u (%s)",
		       nr, first->pid, first->comm);
}

/* A property of the libraries that works as it is, so it is never a warning. */
struct finding check_probe_cost(const struct doctor *doctor)
{
	const struct snapshot_probes *probes = doctor->snapshot ? &doctor->snapshot->probes : NULL;

	if (!probes || !probes->nr_probes)
		return finding(VERDICT_OK, NULL, "no function is probed");
	if (!probes->nr_stepped)
		return finding(VERDICT_OK, NULL,
			       "all probed functions begin with an instruction that makes probes "
			       "cheap");
	return finding(
		VERDICT_OK, NULL,
		"%llu of %llu probed functions are single-stepped: a call of one costs about "
		"10 times a cheap probe: %s%s",
		probes->nr_stepped, probes->nr_probes, probes->stepped,
		probes->nr_stepped > STEPPED_NAMES ? ", ..." : "");
}
