/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests the accounting of the set, in a directory that replaces /proc. */
#include "base/macros.h"
#include "discovery/support.h"

#include <sys/resource.h>
#include <sys/sysmacros.h>

#define NR_FILES 16384 /* enough for LIBRARY_MAX libraries */

static const char *fixture, *driver;
static char proc[] = "/tmp/discovery-proc.XXXXXX";

/* A path below the directory; creates its parent directories. */
static const char *in_proc(const char *format, ...)
{
	static char path[4096];
	int used = snprintf(path, sizeof(path), "%s/", proc);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(path + used, sizeof(path) - (size_t)used, format, arguments);
	va_end(arguments);
	for (char *slash = path + used; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	return path;
}

/* Adds a process that has one file mapped under a name; map_files can be inaccessible. */
static void add_process(int pid, const char *name, const char *file, bool with_map_files)
{
	struct stat st;
	FILE *maps;

	assert_int_equal(stat(file, &st), 0);
	maps = fopen(in_proc("%d/maps", pid), "we");
	assert_non_null(maps);
	fprintf(maps, "1000-2000 r--p 00000000 00:01 %lu %s\n", (unsigned long)st.st_ino, name);
	fprintf(maps, "2000-3000 r-xp 00001000 00:01 %lu %s\n", (unsigned long)st.st_ino, name);
	fclose(maps);
	if (with_map_files)
		assert_int_equal(symlink(file, in_proc("%d/map_files/2000-3000", pid)), 0);
}

static void remove_process(int pid)
{
	remove_tree(in_proc("%d", pid));
}

/* Creates a file that only this process uses, with the content of another file. */
static char *own_copy(int pid, const char *from)
{
	CLEANUP_FREE char *source = strdup(from);
	char *path = strdup(in_proc("%d/file", pid));

	copy_file(source, path);
	return path;
}

static struct library_set *set_make(struct recorder *recorder)
{
	struct library_set *set = NULL;

	assert_int_equal(library_set_new(proc, &recorder_ops, recorder, &set), 0);
	return set;
}

static void test_names(void **state)
{
	static const struct {
		const char *name;
		int runtime;
	} cases[] = {
		{ "/usr/lib/libcuda.so.1", RUNTIME_CUDA_DRIVER },
		{ "libcuda.so", RUNTIME_CUDA_DRIVER },
		{ "/x/libcudart.so.12.4.127", RUNTIME_CUDA },
		{ "/x/libcudart-d0da41ae.so.11.0", RUNTIME_CUDA },
		{ "/x/libcudart-abc123.so.12", RUNTIME_CUDA },
		{ "/x/libnccl.so.2", RUNTIME_NCCL },
		{ "/x/libnccl-net.so", -ENOENT },
		{ "/x/libnccl-net.so.2", -ENOENT },
		{ "/x/libcudart-.so", -ENOENT },
		{ "/x/libcudart.software", -ENOENT },
		{ "/x/libcudart", -ENOENT },
		{ "/x/libcudart.so/other", -ENOENT },
		{ "/x/libmpi.so.40", RUNTIME_MPI },
		{ "/x/libmpi_mpifh.so.40", -ENOENT },
		{ "/x/libmpich.so.12.4.1", RUNTIME_MPI },
		{ "/x/libmpichfort.so.12", -ENOENT },
		{ "/x/mylibcuda.so", -ENOENT },
		{ "", -ENOENT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (library_runtime_of(cases[i].name) != cases[i].runtime)
			fail_msg("%s", cases[i].name);
}

static void test_collective_names(void **state)
{
	static const struct {
		const char *name;
		bool is_collective;
	} cases[] = {
		{ "/x/libnccl.so.2", true },	  { "/x/libnccl-hidden.so", true },
		{ "/x/librccl.so.1.0", true },	  { "libnccl-net.so", true },
		{ "/dev/shm/nccl-4fQk", true },	  { "/x/libnccl.conf", false },
		{ "/x/libnccl.so/other", false }, { "/x/libcudart.so.12", false },
		{ "/x/mylibnccl.so", false },	  { "/tmp/dev/shm/nccl-4fQk", false },
		{ "/dev/shm/other", false },	  { "", false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (library_is_collective(cases[i].name) != cases[i].is_collective)
			fail_msg("%s", cases[i].name);
}

/* Adds a mapping to a process. */
static void add_mapping(int pid, const char *permissions, const char *name)
{
	FILE *maps = fopen(in_proc("%d/maps", pid), "ae");

	assert_non_null(maps);
	fprintf(maps, "4000-5000 %s 00000000 00:01 77 %s\n", permissions, name);
	fclose(maps);
}

/* A collective library without traced calls is reported for a process that uses other libraries. */
static void test_collective_library(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	add_process(7, "/libcudart.so.12", fixture, true);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_collective, 0);
	add_mapping(7, "r-xp", "/x/libnccl-hidden.so");
	for (int i = 0; i < 2; i++)
		assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_collective, 1);
	/* A child inherits the mappings of its parent. */
	assert_int_equal(library_set_fork_process(set, 7, 8), 0);
	assert_int_equal(recorder.nr_collective, 2);
	/* The mapping is gone, as after an exec. */
	remove_process(7);
	add_process(7, "/libcudart.so.12", fixture, true);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_not_collective, 1);
	remove_process(7);
}

/* Data mappings have no event, so the process is scanned again at growing intervals. */
static void test_collective_buffers(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	u64 now = 1000 * NSEC_PER_SEC;

	add_process(7, "/libcudart.so.12", fixture, true);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	library_set_look_again(set, now);
	add_mapping(7, "rw-s", "/dev/shm/nccl-4fQk (deleted)");
	library_set_look_again(set, now + NSEC_PER_SEC - 1);
	assert_int_equal(recorder.nr_collective, 0);
	library_set_look_again(set, now + NSEC_PER_SEC);
	assert_int_equal(recorder.nr_collective, 1);
	remove_process(7);

	add_process(9, "/libcudart.so.12", fixture, true);
	assert_int_equal(library_set_scan_process(set, 9), 0);
	library_set_look_again(set, now);
	library_set_look_again(set, now + NSEC_PER_SEC);
	add_mapping(9, "rw-s", "/dev/shm/nccl-5fQk");
	library_set_look_again(set, now + 2 * NSEC_PER_SEC);
	assert_int_equal(recorder.nr_collective, 1);
	library_set_look_again(set, now + 3 * NSEC_PER_SEC);
	assert_int_equal(recorder.nr_collective, 2);
	remove_process(9);
}

/* Maps the driver in a process that maps the runtime already, as at the first CUDA call. */
static void add_driver(int pid)
{
	FILE *maps = fopen(in_proc("%d/maps", pid), "ae");
	struct stat st;

	assert_non_null(maps);
	assert_int_equal(stat(driver, &st), 0);
	fprintf(maps, "6000-7000 r-xp 00001000 00:01 %lu /libcuda.so.1\n",
		(unsigned long)st.st_ino);
	fclose(maps);
	assert_int_equal(symlink(driver, in_proc("%d/map_files/6000-7000", pid)), 0);
}

/* The launches of the runtime are probed while one of its processes has no probed driver. */
static void test_launches_at_one_level(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	add_process(7, "/libcudart.so.12", fixture, true);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_extra_here, 1);
	add_driver(7);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_attached, 2);
	assert_int_equal(recorder.nr_extra_here, 0);
	/* A child inherits both. */
	assert_int_equal(library_set_fork_process(set, 7, 8), 0);
	assert_int_equal(recorder.nr_extra_here, 0);
	/* A second process begins with the runtime alone. */
	add_process(9, "/libcudart.so.12", fixture, true);
	assert_int_equal(library_set_scan_process(set, 9), 0);
	assert_int_equal(recorder.nr_extra_here, 1);
	library_set_forget_process(set, 7);
	library_set_forget_process(set, 8);
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 1);
	assert_int_equal(recorder.nr_extra_here, 1);
	add_driver(9);
	/* What fails is tried again. */
	recorder.fail_with = -EMFILE;
	assert_int_equal(library_set_scan_process(set, 9), 0);
	assert_int_equal(recorder.nr_extra_here, 1);
	recorder.fail_with = 0;
	assert_int_equal(library_set_scan_process(set, 9), 0);
	assert_int_equal(recorder.nr_extra_here, 0);
	/* The launches of the driver itself are always probed there. */
	assert_int_equal(recorder.last.runtime, RUNTIME_CUDA_DRIVER);
	assert_int_equal(library_extra(RUNTIME_CUDA_DRIVER), CALL_KIND_NR);
	remove_process(7);
	remove_process(9);
}

/* The next job finds the library attached. */
static void test_kept_without_users(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	u64 now = 1000 * NSEC_PER_SEC;

	for (int pid = 7; pid <= 9; pid++) {
		add_process(pid, "/libcudart.so.12", fixture, true);
		assert_int_equal(library_set_scan_process(set, pid), 0);
		assert_int_equal(recorder.nr_attached, 1);
		library_set_forget_process(set, pid);
		library_set_drop_unused(set, now);
		now += LIBRARY_KEEP_NS - 1;
		library_set_drop_unused(set, now);
		assert_int_equal(recorder.nr_detached, 0);
		remove_process(pid);
	}
	library_set_drop_unused(set, now + 1);
	assert_int_equal(recorder.nr_detached, 1);
}

/* The only user exits during the attach, and another process maps the file during the detach. */
static void test_changes_during_an_operation(void **state)
{
	struct recorder recorder = { .later = LIBRARY_LATER };
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	add_process(7, "/libcuda.so.1", driver, true);
	for (int i = 0; i < 2; i++)
		assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(library_set_fork_process(set, 7, 8), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_int_equal(library_set_count(set).nr_libraries, 0);
	assert_int_equal(library_set_count(set).nr_probes, 0);
	library_set_forget_process(set, 7);
	library_set_forget_process(set, 8);
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 0);
	library_set_done(set, 0, 0);
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 1);
	assert_int_equal(library_set_count(set).nr_libraries, 0);

	add_process(9, "/libcuda.so.1", driver, true);
	assert_int_equal(library_set_scan_process(set, 9), 0);
	assert_int_equal(recorder.nr_attached, 2);
	library_set_done(set, 0, 0);
	assert_null(library_set_at(set, 0));
	library_set_done(set, 1, 0);
	assert_int_equal(recorder.nr_detached, 1);
	assert_int_equal(library_set_count(set).nr_libraries, 1);
	assert_int_equal(library_set_count(set).nr_probes, recorder.last.probes.nr);
	remove_process(7);
	remove_process(9);
}

/* A process does not use a library whose attach failed later, and the next scan tries again. */
static void test_late_failure_of_an_attach(void **state)
{
	struct recorder recorder = { .later = LIBRARY_LATER };
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	add_process(7, "/libcudart.so.12", fixture, true);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	library_set_done(set, 0, -EPERM);
	assert_null(library_set_at(set, 0));
	assert_false(library_set_has_process(set, 7));
	assert_int_equal(library_set_count(set).nr_attach_failed, 1);
	recorder.nr_extra_here = 0; /* the attach that failed left none */
	assert_int_equal(library_set_scan_process(set, 7), 0);
	library_set_done(set, 0, 0);
	assert_int_equal(recorder.nr_extra_here, 1);

	/* The launches move to the driver, and back when its attach fails. */
	add_driver(7);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_extra_here, 0);
	library_set_done(set, 1, -EPERM);
	library_set_done(set, 0, 0);
	assert_int_equal(recorder.nr_extra_here, 1);
	assert_true(library_set_has_process(set, 7));
	/* The failure to place launches is not repeated at once. */
	library_set_done(set, 0, -EMFILE);
	assert_int_equal(recorder.nr_extra_here, 1);
	assert_int_equal(library_set_count(set).nr_attach_failed, 3);
	assert_int_equal(library_set_at(set, 0)->state, LIBRARY_ATTACHED);
	assert_false(library_set_at(set, 0)->has_extra);
	remove_process(7);
}

/* The number of single-stepped probes, and the names of the first five functions. */
static void test_stepped_probes(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	struct library_counts counts;
	u32 nr = 0, nr_names = 0;

	add_process(7, "/libcuda.so.1", driver, true);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	counts = library_set_count(set);
	for (u32 i = 0; i < recorder.last.probes.nr; i++) {
		const struct library_probe *probe = &recorder.last.probes.probe[i];

		nr += probe->is_stepped;
		nr_names +=
			probe->is_stepped && strstr(counts.stepped, library_symbol(probe->call));
	}
	print_message("# single-stepped: %u, for example %s\n", nr, counts.stepped);
	assert_int_equal(counts.nr_stepped, nr);
	assert_in_range(nr_names, nr < 5 ? nr : 5, nr);
	assert_true(strlen(counts.stepped) + 1 < sizeof(counts.stepped));
	remove_process(7);
}

static void test_deleted_but_mapped(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	add_process(7, "/gone/libcudart.so.12 (deleted)", fixture, true);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_string_equal(recorder.last.name, "libcudart.so.12");
	remove_process(7);
}

/* Without map_files, a file with the same name but another inode must not be used. */
static void test_stale_name(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	add_process(7, "/libcudart.so.12", fixture, false);
	copy_file(fixture, in_proc("7/root/libcudart.so.12"));
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_attached, 0);
	assert_int_equal(library_set_count(set).nr_unreadable, 1);
	remove_process(7);
}

/* A link in the root of the process is resolved inside that root. */
static void test_link_stays_in_root(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	CLEANUP_FREE char *link = strdup(in_proc("7/root/libcudart.so.12"));
	struct mapping mapping = { .path = "/libcudart.so.12" };
	struct stat st;
	int fd;

	assert_int_equal(symlink(fixture, link), 0);
	assert_int_equal(stat(link, &st), 0);
	mapping.inode = st.st_ino;
	mapping.major = major(st.st_dev);
	mapping.minor = minor(st.st_dev);
	assert_int_equal(library_open_mapped(proc, 7, &mapping), -ESTALE);
	/* The same file in place of the link is found. */
	assert_int_equal(unlink(link), 0);
	copy_file(fixture, link);
	assert_int_equal(stat(link, &st), 0);
	mapping.inode = st.st_ino;
	mapping.major = major(st.st_dev);
	mapping.minor = minor(st.st_dev);
	fd = library_open_mapped(proc, 7, &mapping);
	assert_true(fd >= 0);
	close(fd);
	remove_process(7);
}

/* A file that cannot be read at one scan is still in use. */
static void test_unreadable_keeps_its_use(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	add_process(7, "/libcudart.so.12", fixture, true);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_int_equal(unlink(in_proc("7/map_files/2000-3000")), 0);
	mkdir(in_proc("7/root"), 0755);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_detached, 0);
	assert_int_equal(library_set_count(set).nr_processes, 1);
	assert_int_equal(library_set_count(set).nr_probes, recorder.last.probes.nr);
	remove_process(7);
}

/* A failed attach is tried again. No file is searched again. */
static void test_failed_attach_and_file_without_calls(void **state)
{
	struct recorder recorder = { .fail_with = -EPERM };
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	CLEANUP_FREE char *barren = NULL;

	add_process(7, "/libcudart.so.12", fixture, true);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(library_set_count(set).nr_attach_failed, 1);
	assert_int_equal(library_set_count(set).nr_libraries, 0);
	recorder.fail_with = 0;
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_attached, 1);

	/* Not an ELF file at first, despite its name. */
	barren = own_copy(8, in_proc("7/maps"));
	add_process(8, "/libcudart.so.12", barren, true);
	for (int i = 0; i < 3; i++)
		assert_int_equal(library_set_scan_process(set, 8), 0);
	assert_int_equal(library_set_count(set).nr_examined, 2);
	assert_int_equal(library_set_count(set).nr_processes, 1);
	copy_file(fixture, barren);
	assert_int_equal(library_set_scan_process(set, 8), 0);
	assert_int_equal(recorder.nr_attached, 2);
	assert_int_equal(library_set_count(set).nr_unreadable, 0);
	remove_process(7);
	remove_process(8);
}

/* The libraries of a node with many containers are searched once. */
static void test_many_libraries_stay_known(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	u64 nr_examined;

	for (int pid = 1; pid <= LIBRARY_MAX; pid++) {
		CLEANUP_FREE char *copy = own_copy(pid, fixture);

		add_process(pid, "/libcudart.so.12", copy, true);
		assert_int_equal(library_set_scan_process(set, pid), 0);
	}
	nr_examined = library_set_count(set).nr_examined;
	assert_int_equal(nr_examined, LIBRARY_MAX);
	assert_int_equal(library_set_scan_all(set), 0);
	/* More files than ways can have one hash, but few of them do. */
	assert_in_range(library_set_count(set).nr_examined - nr_examined, 0, LIBRARY_MAX / 16);
	for (int pid = 1; pid <= LIBRARY_MAX; pid++)
		remove_process(pid);
}

/*
 * Another user can execute a library that is not the user's own. It is then searched for the CUDA
 * runtime, which it does not have.
 */
static void test_executed_library_stays_known(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	assert_int_equal(symlink(driver, in_proc("7/exe")), 0);
	fclose(fopen(in_proc("7/maps"), "we"));
	assert_int_equal(library_set_exec_process(set, 7), 0);
	assert_int_equal(library_set_count(set).nr_examined, 1);
	add_process(8, "/libcuda.so.1", driver, true);
	assert_int_equal(library_set_scan_process(set, 8), 0);
	assert_int_equal(recorder.nr_attached, 1);
	/* The search of the executable is not repeated. */
	assert_int_equal(library_set_exec_process(set, 7), 0);
	assert_int_equal(library_set_count(set).nr_examined, 2);
	remove_process(7);
	remove_process(8);
}

/* A file that is mapped many times is opened once, and only a bounded number of files is. */
static void test_many_mappings(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	struct stat st;
	FILE *maps;

	add_process(7, "/libcudart.so.12", fixture, true);
	assert_int_equal(stat(fixture, &st), 0);
	maps = fopen(in_proc("7/maps"), "ae");
	for (u32 i = 3; i < 5000; i++)
		fprintf(maps, "%x000-%x000 r-xp 00001000 00:01 %lu /libcudart.so.12\n", i, i + 1,
			(unsigned long)st.st_ino);
	fclose(maps);
	/* Only the first mapping can be opened. */
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_int_equal(library_set_count(set).nr_unreadable, 0);
	maps = fopen(in_proc("7/maps"), "ae");
	for (u32 i = 0; i < 100; i++)
		fprintf(maps, "%x000-%x000 r-xp 00001000 00:02 %u /libcuda.so.1\n", i + 1, i + 2,
			i + 1);
	fclose(maps);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	/* Beside them, the first file and the executable have a place. */
	assert_int_equal(library_set_count(set).nr_unreadable, 100 - (LIBRARY_FOUND_MAX - 2));
	assert_true(library_set_has_process(set, 7));
	remove_process(7);
}

/* A name that a user gave to the file does not decide for the users of its real name. */
static void test_file_with_two_names(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	add_process(7, "/libcudart.so.12", fixture, true);
	add_process(8, "/libcuda.so.1", fixture, true);
	assert_int_equal(library_set_scan_process(set, 8), 0);
	assert_int_equal(recorder.nr_attached, 0);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_int_equal(library_set_scan_process(set, 8), 0);
	assert_true(library_set_has_process(set, 7));
	assert_false(library_set_has_process(set, 8));
	remove_process(7);
	remove_process(8);
}

/* A process without libraries is not scanned when its executable is known to have no calls. */
static void test_exec(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	CLEANUP_FREE char *barren = NULL, *exe = NULL;

	add_process(7, "/lib/libc.so.6", fixture, true);
	barren = own_copy(8, in_proc("7/maps"));
	exe = strdup(in_proc("7/exe"));
	assert_int_equal(library_set_exec_process(set, 7), -ENOENT);
	assert_int_equal(symlink(barren, exe), 0);
	assert_int_equal(library_set_exec_process(set, 7), 0);
	assert_int_equal(library_set_count(set).nr_examined, 1);
	remove_process(7);
	add_process(7, "/libcudart.so.12", fixture, true);
	assert_int_equal(symlink(barren, exe), 0);
	assert_int_equal(library_set_exec_process(set, 7), 0);
	assert_int_equal(recorder.nr_attached, 0);

	/* After an exec, a process may no longer use its libraries. */
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_int_equal(truncate(in_proc("7/maps"), 0), 0);
	assert_int_equal(library_set_exec_process(set, 7), 0);
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 1);

	/* New content, with calls. */
	copy_file(fixture, barren);
	assert_int_equal(library_set_exec_process(set, 7), 0);
	assert_int_equal(recorder.nr_attached, 2);
	remove_process(7);
	remove_process(8);
}

static void test_scan_all(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	for (int pid = 1; pid <= 9; pid++)
		add_process(pid, "/libcudart.so.12", fixture, true);
	fclose(fopen(in_proc("cpuinfo"), "we"));
	assert_int_equal(library_set_scan_all(set), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_int_equal(library_set_count(set).nr_processes, 9);
	for (int pid = 1; pid <= 8; pid++)
		remove_process(pid);
	assert_int_equal(library_set_scan_all(set), 0);
	assert_int_equal(library_set_count(set).nr_processes, 1);
	assert_int_equal(recorder.nr_detached, 0);
	remove_process(9);
	assert_int_equal(library_set_scan_all(set), 0);
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 1);
}

static void test_excess_processes(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	CLEANUP_FREE char *copy = own_copy(9999, fixture);

	add_process(1, "/libcudart.so.12", fixture, true);
	assert_int_equal(library_set_scan_process(set, 1), 0);
	for (int pid = 2; pid <= LIBRARY_PROCESS_MAX; pid++)
		assert_int_equal(library_set_fork_process(set, 1, pid), 0);
	assert_int_equal(library_set_fork_process(set, 1, LIBRARY_PROCESS_MAX + 1), -ENOSPC);
	assert_true(library_set_has_process(set, LIBRARY_PROCESS_MAX));
	assert_false(library_set_has_process(set, LIBRARY_PROCESS_MAX + 1));
	assert_int_equal(library_set_count(set).nr_processes, LIBRARY_PROCESS_MAX);
	assert_int_equal(library_set_count(set).nr_processes_excess, 1);
	/* A process that does not fit attaches nothing, because it could not be detached later. */
	add_process(9999, "/libcudart.so.12", copy, true);
	assert_int_equal(library_set_scan_process(set, 9999), 0);
	assert_int_equal(recorder.nr_attached, 1);
	assert_int_equal(library_set_count(set).nr_processes_excess, 2);
	for (int pid = LIBRARY_PROCESS_MAX; pid >= 1; pid--) {
		drop_unused(set);
		assert_int_equal(recorder.nr_detached, 0);
		library_set_forget_process(set, pid);
	}
	drop_unused(set);
	assert_int_equal(recorder.nr_detached, 1);
	remove_process(1);
	remove_process(9999);
}

static void test_excess_libraries(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	for (int pid = 1; pid <= LIBRARY_MAX + 3; pid++) {
		CLEANUP_FREE char *copy = own_copy(pid, fixture);

		add_process(pid, "/libcudart.so.12", copy, true);
		assert_int_equal(library_set_scan_process(set, pid), 0);
	}
	assert_int_equal(recorder.nr_attached, LIBRARY_MAX);
	assert_int_equal(library_set_count(set).nr_libraries_excess, 3);
	/* The slot of a library without users is used again at once. */
	library_set_forget_process(set, 5);
	assert_int_equal(library_set_scan_process(set, LIBRARY_MAX + 1), 0);
	assert_int_equal(recorder.nr_detached, 1);
	assert_non_null(library_set_at(set, 4));
	assert_int_equal(recorder.nr_attached, LIBRARY_MAX + 1);
	for (int pid = 1; pid <= LIBRARY_MAX + 3; pid++)
		remove_process(pid);
}

static void set_owner(int pid, u32 uid, const char *cgroup)
{
	FILE *file = fopen(in_proc("%d/status", pid), "we");

	assert_non_null(file);
	fprintf(file, "Name:\tx\nUid:\t%u\t%u\t%u\t%u\n", uid, uid, uid, uid);
	fclose(file);
	file = fopen(in_proc("%d/cgroup", pid), "we");
	assert_non_null(file);
	fprintf(file, "0::%s\n", cgroup);
	fclose(file);
}

/* Descriptors that libraries may not use. */
static u32 reserved(void)
{
	return 512 + 2 * (u32)sysconf(_SC_NPROCESSORS_CONF);
}

/*
 * Returns the number of libraries that are attached with this limit of descriptors, of `wanted`
 * ones that need `nr_fds` for their probes. Those of `uid` are counted.
 */
static u32 attached_with(u32 nr_files, u32 nr_fds, u32 uid, int wanted)
{
	struct recorder recorder = { .nr_fds = nr_fds };
	struct rlimit before;
	struct library_set *set;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ nr_files, before.rlim_max }),
			 0);
	set = set_make(&recorder);
	for (int pid = 1; pid <= wanted; pid++) {
		CLEANUP_FREE char *copy = own_copy(pid, fixture);

		add_process(pid, "/libcudart.so.12", copy, true);
		set_owner(pid, uid, "/");
		assert_int_equal(library_set_scan_process(set, pid), 0);
	}
	assert_int_equal(recorder.nr_attached + library_set_count(set).nr_libraries_excess, wanted);
	library_set_free(set);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	for (int pid = 1; pid <= wanted; pid++)
		remove_process(pid);
	return recorder.nr_attached;
}

/* A library needs a descriptor for its file, and those of its probes. */
static void test_libraries_leave_descriptors(void **state)
{
	assert_int_equal(attached_with(reserved() + 30 * 10, 29, 0, 12), 10);
	assert_int_equal(attached_with(reserved() + 30 * 10 - 1, 29, 0, 12), 9);
	assert_int_equal(attached_with(reserved() + 513 * 3, 512, 0, 12), 3);
	assert_int_equal(attached_with(reserved(), 0, 0, 1), 0);
	assert_int_equal(attached_with(200, 0, 0, 1), 0);
}

/* Libraries with many probes take no more of the descriptors than those with few. */
static void test_descriptors_of_a_user_are_capped(void **state)
{
	assert_int_equal(attached_with(reserved() + 100 * 8, 99, 1000, 8), 6);
	assert_int_equal(attached_with(reserved() + 100 * 8, 49, 1000, 16), 12);
	assert_int_equal(attached_with(reserved() + 100 * 8, 799, 1000, 1), 0);
}

/* A user or a group leaves a quarter of the processes to others. */
static void check_process_cap(u32 uid, const char *cgroup, u32 other_uid, const char *other_cgroup)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	int nr = TENANT_SHARE(LIBRARY_PROCESS_MAX), other = LIBRARY_PROCESS_MAX + 2;

	add_process(1, "/libcudart.so.12", fixture, true);
	set_owner(1, uid, cgroup);
	assert_int_equal(library_set_scan_process(set, 1), 0);
	for (int pid = 2; pid <= nr; pid++)
		assert_int_equal(library_set_fork_process(set, 1, pid), 0);
	assert_int_equal(library_set_fork_process(set, 1, nr + 1), -ENOSPC);
	add_process(nr + 1, "/libcudart.so.12", fixture, true);
	set_owner(nr + 1, uid, cgroup);
	assert_int_equal(library_set_scan_process(set, nr + 1), 0);
	assert_false(library_set_has_process(set, nr + 1));
	assert_int_equal(library_set_count(set).nr_processes_excess, 2);
	add_process(other, "/libcudart.so.12", fixture, true);
	set_owner(other, other_uid, other_cgroup);
	assert_int_equal(library_set_scan_process(set, other), 0);
	assert_true(library_set_has_process(set, other));
	/* A process that exits makes room. */
	library_set_forget_process(set, 2);
	assert_int_equal(library_set_scan_process(set, nr + 1), 0);
	assert_true(library_set_has_process(set, nr + 1));
	remove_process(1);
	remove_process(nr + 1);
	remove_process(other);
}

static void test_processes_of_a_user_are_capped(void **state)
{
	check_process_cap(1000, "/", 1001, "/");
}

static void test_processes_of_a_group_are_capped(void **state)
{
	check_process_cap(0, "/kubepods/burstable/pod1/a", 0, "/kubepods/burstable/pod2/a");
}

static void test_libraries_of_a_user_are_capped(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	int nr = TENANT_SHARE(LIBRARY_MAX) + 2;

	for (int pid = 1; pid <= nr; pid++) {
		CLEANUP_FREE char *copy = own_copy(pid, fixture);

		add_process(pid, "/libcudart.so.12", copy, true);
		set_owner(pid, pid < nr ? 1000 : 1001, "/");
		assert_int_equal(library_set_scan_process(set, pid), 0);
	}
	assert_int_equal(recorder.nr_attached, TENANT_SHARE(LIBRARY_MAX) + 1);
	assert_int_equal(library_set_count(set).nr_libraries_excess, 1);
	for (int pid = 1; pid <= nr; pid++)
		remove_process(pid);
}

/* A user at the cap makes room among the own unused libraries, and not among those of others. */
static void test_a_user_at_the_cap_detaches_no_library_of_others(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	int nr = TENANT_SHARE(LIBRARY_MAX), other = nr + 1, more = nr + 2;

	for (int pid = 1; pid <= more; pid++) {
		CLEANUP_FREE char *copy = own_copy(pid, fixture);

		add_process(pid, "/libcudart.so.12", copy, true);
		set_owner(pid, pid == other ? 1001 : 1000, "/");
		assert_int_equal(library_set_scan_process(set, pid), 0);
		if (pid == other)
			library_set_forget_process(set, other);
	}
	assert_int_equal(recorder.nr_attached, nr + 1);
	assert_int_equal(recorder.nr_detached, 0);
	library_set_forget_process(set, 1);
	assert_int_equal(library_set_scan_process(set, more), 0);
	assert_int_equal(recorder.nr_attached, nr + 2);
	assert_int_equal(recorder.nr_detached, 1);
	for (int pid = 1; pid <= more; pid++)
		remove_process(pid);
}

/* The open files are looked at until a GPU is found, and again after an exec. */
static void test_looks_for_a_gpu(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);
	u64 now = 1000 * NSEC_PER_SEC;

	add_process(7, "/libcudart.so.12", fixture, true);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_looks, 1);
	library_set_look_again(set, now);
	library_set_look_again(set, now + NSEC_PER_SEC);
	assert_int_equal(recorder.nr_looks, 2);
	recorder.holds_gpu = true;
	library_set_look_again(set, now + 3 * NSEC_PER_SEC);
	assert_int_equal(recorder.nr_looks, 3);
	library_set_look_again(set, now + 70 * NSEC_PER_SEC);
	assert_int_equal(library_set_scan_process(set, 7), 0);
	assert_int_equal(recorder.nr_looks, 3);
	assert_int_equal(library_set_exec_process(set, 7), 0);
	assert_int_equal(recorder.nr_looks, 4);
	remove_process(7);
}

static int make_proc(void **state)
{
	return mkdtemp(proc) ? 0 : -1;
}

static void count_torch(void *ctx, pid_t pid)
{
	((struct recorder *)ctx)->nr_torch++;
}

/* The result of a scan: it maps a library of PyTorch or another one. */
static void scanned_of(struct library_set *set, pid_t pid, bool has_torch)
{
	struct library_found found = { .runtime = has_torch ? RUNTIME_C10 : RUNTIME_CUDA,
				       .id.inode = has_torch ? 1 : 2,
				       .probes = { .nr = has_torch } };
	CLEANUP_FD int fd = open(fixture, O_RDONLY | O_CLOEXEC);

	found.probes.probe[0].call = CALL_C10__ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE;
	library_set_begin(set, pid, -1);
	library_set_found(set, &found, fd);
	library_set_scanned(set, &(struct library_scanned){ .pid = pid });
}

static void scanned(struct library_set *set, bool has_torch)
{
	scanned_of(set, 7, has_torch);
}

/* A program that maps and unmaps the library is looked at until there is an answer. */
static void test_torch_is_told_until_it_is_known(void **state)
{
	struct library_ops ops = recorder_ops;
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = NULL;

	ops.torch = count_torch;
	assert_int_equal(library_set_new(proc, &ops, &recorder, &set), 0);
	scanned(set, false);
	assert_int_equal(recorder.nr_torch, 0);
	scanned(set, true);
	library_set_know_torch(set, 8);
	scanned(set, true);
	assert_int_equal(recorder.nr_torch, 2);
	library_set_know_torch(set, 7);
	for (int i = 0; i < 3; i++) {
		scanned(set, false);
		scanned(set, true);
	}
	assert_int_equal(recorder.nr_torch, 2);
	/* Another program. The scan of this call finds no process. */
	assert_int_equal(library_set_exec_process(set, 7), -ESRCH);
	scanned(set, true);
	assert_int_equal(recorder.nr_torch, 3);
}

/* The probes were not wanted for long enough. */
static void drop_unwatched(struct library_set *set)
{
	library_set_drop_unused(set, 3 * LIBRARY_KEEP_NS);
	library_set_drop_unused(set, 4 * LIBRARY_KEEP_NS);
}

/* A library that PyTorch's calls can be found in, with the call or without it. */
static void set_reports(struct library_set *set, bool has_reports)
{
	static const enum call calls[] = {
		CALL_C10__ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE,
		CALL_C10__ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE,
	};
	struct library_found found = { .runtime = RUNTIME_C10, .id.inode = has_reports ? 1 : 3 };
	CLEANUP_FD int fd = open(fixture, O_RDONLY | O_CLOEXEC);

	found.probes.nr = 1 + has_reports;
	for (u32 i = 0; i < found.probes.nr; i++)
		found.probes.probe[i].call = calls[i];
	library_set_begin(set, 7, -1);
	library_set_found(set, &found, fd);
	library_set_scanned(set, &(struct library_scanned){ .pid = 7 });
}

/* A PyTorch whose name of the call is not known. */
static void test_usage_that_is_not_reported(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	set_reports(set, false);
	assert_int_equal(library_set_want_usage(set, 7, true), 0);
	assert_int_equal(library_set_has_usage(set, 7), -ENODATA);
	set_reports(set, true);
	assert_int_equal(library_set_has_usage(set, 7), 1);
}

/* The allocator is probed while one of the processes with its library is watched. */
static void test_usage_is_probed_while_it_is_wanted(void **state)
{
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	assert_int_equal(library_set_want_usage(set, 7, true), -ENOENT);
	scanned_of(set, 7, false);
	assert_int_equal(library_set_want_usage(set, 7, true), -ENOENT);
	recorder.nr_extra_here = 0; /* a CUDA runtime without a driver has launches */
	scanned_of(set, 8, true);
	scanned_of(set, 9, true);
	assert_int_equal(recorder.nr_extra_here, 0);
	assert_int_equal(library_set_want_usage(set, 8, true), 0);
	assert_int_equal(library_set_want_usage(set, 8, true), 0);
	assert_int_equal(library_set_want_usage(set, 9, true), 0);
	assert_int_equal(recorder.nr_extra_here, 1);
	assert_int_equal(library_set_has_usage(set, 8), 1);
	assert_int_equal(library_set_has_usage(set, 7), -ENOENT);
	assert_int_equal(library_set_want_usage(set, 8, false), 0);
	assert_int_equal(recorder.nr_extra_here, 1);
	/* The last one ends without a word. The probe stays for a while, and a new watch keeps it.
	 */
	library_set_forget_process(set, 9);
	assert_int_equal(library_set_has_usage(set, 8), -EIO);
	library_set_drop_unused(set, 1);
	library_set_drop_unused(set, LIBRARY_KEEP_NS);
	assert_int_equal(recorder.nr_extra_here, 1);
	assert_int_equal(library_set_want_usage(set, 8, true), 0);
	library_set_drop_unused(set, 2 * LIBRARY_KEEP_NS);
	assert_int_equal(recorder.nr_extra_here, 1);
	/* The process unmaps the library during the watch, and maps it again after it. */
	scanned_of(set, 8, false);
	assert_int_equal(library_set_has_usage(set, 8), -ENOENT);
	assert_int_equal(library_set_want_usage(set, 8, false), 0);
	scanned_of(set, 8, true);
	recorder.nr_extra_here = 1;
	drop_unwatched(set);
	assert_int_equal(recorder.nr_extra_here, 0);
}

static void test_usage_is_probed_later(void **state)
{
	struct recorder recorder = { .later = LIBRARY_LATER };
	CLEANUP_SET struct library_set *set = set_make(&recorder);

	scanned(set, true);
	assert_int_equal(library_set_want_usage(set, 7, true), 0);
	assert_int_equal(library_set_has_usage(set, 7), 0);
	library_set_done(set, 0, 0); /* the attach, after which the change begins */
	assert_int_equal(library_set_at(set, 0)->state, LIBRARY_CHANGING);
	assert_int_equal(library_set_has_usage(set, 7), 0);
	library_set_done(set, 0, -EMFILE);
	assert_int_equal(library_set_has_usage(set, 7), -EIO);
	assert_int_equal(library_set_want_usage(set, 7, true), 0);
	library_set_done(set, 0, 0);
	assert_int_equal(library_set_has_usage(set, 7), 1);
}

static int refuse_torch(void *ctx, int parent, int child)
{
	return -ESRCH;
}

static int inherit_torch(void *ctx, int parent, int child)
{
	assert_true(parent >= 0 && child >= 0 && parent != child);
	return 0;
}

/* A forked child has the program of its parent, so only the parent is asked for. */
static void test_torch_is_inherited(void **state)
{
	struct library_ops ops = recorder_ops;
	struct recorder recorder = {};
	CLEANUP_SET struct library_set *set = NULL;
	pid_t self = getpid(), child = getppid();

	ops.torch = count_torch;
	ops.torch_inherited = inherit_torch;
	assert_int_equal(library_set_new(proc, &ops, &recorder, &set), 0);
	scanned_of(set, self, true);
	assert_int_equal(recorder.nr_torch, 1);
	/* The answer for the parent is not there yet. */
	assert_int_equal(library_set_fork_process(set, self, child), 0);
	scanned_of(set, child, true);
	assert_int_equal(recorder.nr_torch, 2);
	library_set_know_torch(set, self);
	assert_int_equal(library_set_fork_process(set, self, child), 0);
	scanned_of(set, child, true);
	assert_int_equal(recorder.nr_torch, 2);
	assert_int_equal(library_set_exec_process(set, child), -ESRCH);
	scanned_of(set, child, true);
	assert_int_equal(recorder.nr_torch, 3);
	ops.torch_inherited = refuse_torch;
	assert_int_equal(library_set_fork_process(set, self, child), 0);
	scanned_of(set, child, true);
	assert_int_equal(recorder.nr_torch, 4);
}

static int remove_proc(void **state)
{
	remove_tree(proc);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_collective_names),
		cmocka_unit_test(test_collective_library),
		cmocka_unit_test(test_collective_buffers),
		cmocka_unit_test(test_launches_at_one_level),
		cmocka_unit_test(test_kept_without_users),
		cmocka_unit_test(test_changes_during_an_operation),
		cmocka_unit_test(test_late_failure_of_an_attach),
		cmocka_unit_test(test_stepped_probes),
		cmocka_unit_test(test_deleted_but_mapped),
		cmocka_unit_test(test_stale_name),
		cmocka_unit_test(test_link_stays_in_root),
		cmocka_unit_test(test_unreadable_keeps_its_use),
		cmocka_unit_test(test_failed_attach_and_file_without_calls),
		cmocka_unit_test(test_many_libraries_stay_known),
		cmocka_unit_test(test_executed_library_stays_known),
		cmocka_unit_test(test_many_mappings),
		cmocka_unit_test(test_file_with_two_names),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_scan_all),
		cmocka_unit_test(test_excess_processes),
		cmocka_unit_test(test_excess_libraries),
		cmocka_unit_test(test_libraries_leave_descriptors),
		cmocka_unit_test(test_descriptors_of_a_user_are_capped),
		cmocka_unit_test(test_processes_of_a_user_are_capped),
		cmocka_unit_test(test_processes_of_a_group_are_capped),
		cmocka_unit_test(test_libraries_of_a_user_are_capped),
		cmocka_unit_test(test_a_user_at_the_cap_detaches_no_library_of_others),
		cmocka_unit_test(test_looks_for_a_gpu),
		cmocka_unit_test(test_torch_is_told_until_it_is_known),
		cmocka_unit_test(test_torch_is_inherited),
		cmocka_unit_test(test_usage_is_probed_while_it_is_wanted),
		cmocka_unit_test(test_usage_is_probed_later),
		cmocka_unit_test(test_usage_that_is_not_reported),
	};

	/* The number of libraries depends on it. */
	if (setrlimit(RLIMIT_NOFILE, &(struct rlimit){ NR_FILES, NR_FILES }) < 0)
		return EXIT_FAILURE;
	if (argc != 3)
		return 2;
	fixture = argv[1];
	driver = argv[2];
	return cmocka_run_group_tests_name("library set", tests, make_proc, remove_proc);
}
