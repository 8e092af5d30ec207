/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vgpu/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "truth/truth.h"

/* Accepts numbers like 25e9. */
static u64 env_u64(const char *name, u64 fallback)
{
	const char *text = getenv(name);
	char *end;
	double value;

	if (!text || !*text)
		return fallback;
	value = strtod(text, &end);
	return *end || value < 0 || value >= 0x1p63 ? fallback : (u64)value;
}

/* The next number of a list, or `fallback` after its end. */
static u32 list_next(const char **list, u32 fallback)
{
	char *end;

	if (!*list || !**list)
		return fallback;
	fallback = (u32)strtoul(*list, &end, 10);
	*list = *end == ',' ? end + 1 : NULL;
	return fallback;
}

static void config_read(struct shm_config *ret)
{
	const char *numa = getenv("VGPU_NUMA"), *minors = getenv("VGPU_MINORS");
	const char *slices = getenv("VGPU_MIG");
	u64 nr = env_u64("VGPU_DEVICES", 1);
	u32 node = 0;

	memset(ret, 0, sizeof(*ret));
	ret->nr_devices = nr > SHM_DEVICES ? SHM_DEVICES : (u32)nr;
	ret->gpm = env_u64("VGPU_GPM", 1) != 0;
	ret->memory_bytes = env_u64("VGPU_MEMORY_BYTES", 16ULL << 30);
	ret->bandwidth = env_u64("VGPU_BANDWIDTH", 25000000000ULL) ?: 1;
	ret->nccl_bandwidth = env_u64("VGPU_NCCL_BANDWIDTH", 100000000000ULL) ?: 1;
	for (u32 i = 0; i < SHM_DEVICES; i++) {
		node = list_next(&numa, node);
		ret->numa_node[i] = node;
		ret->minor[i] = list_next(&minors, i);
		ret->nr_slices[i] = list_next(&slices, 0);
		if (ret->nr_slices[i] > SHM_SLICES)
			ret->nr_slices[i] = SHM_SLICES;
	}
}

u64 shm_starttime(u32 pid)
{
	char path[32], text[1024], *p;
	unsigned long long start = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	/* The name may contain any character, so count fields from its closing bracket. */
	p = strrchr(text, ')');
	if (!p || p[2] == 'Z' || p[2] == 'X')
		return 0;
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (p)
		sscanf(p, "%llu", &start);
	return start;
}

static bool proc_lives(u32 pid, u64 starttime)
{
	return pid && shm_starttime(pid) == starttime;
}

void shm_lock(struct shm *shm)
{
	if (pthread_mutex_lock(&shm->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&shm->lock);
}

void shm_unlock(struct shm *shm)
{
	pthread_mutex_unlock(&shm->lock);
}

static void proc_clear(struct shm *shm, u32 index)
{
	struct shm_proc *proc = &shm->procs[index];
	u64 now = truth_now_ns();

	/* Queued work ends with its process. */
	for (u32 d = 0; d < shm->config.nr_devices; d++)
		for (u32 i = 0; i < shm_span_count(&shm->devices[d]); i++) {
			struct shm_span *span = &shm->devices[d].spans[i];

			if (span->proc != index || !span->end_ns)
				continue;
			span->proc = SHM_ANY_PROC;
			if (span->end_ns > now)
				__atomic_store_n(&span->end_ns, now, __ATOMIC_RELEASE);
		}
	memset(proc, 0, sizeof(*proc));
}

static void comm_reap(struct shm_comm *comm)
{
	for (u32 r = 0; r < comm->nr_ranks; r++)
		if (comm->ranks[r].joined == 1 &&
		    proc_lives(comm->ranks[r].pid, comm->ranks[r].starttime))
			return;
	/* Clear only the part in use, so that the file stays sparse. */
	memset(comm->ranks, 0, comm->nr_ranks * sizeof(comm->ranks[0]));
	comm->id = 0;
}

void shm_reap(struct shm *shm)
{
	for (u32 i = 0; i < SHM_PROCS; i++)
		if (shm->procs[i].pid && !proc_lives(shm->procs[i].pid, shm->procs[i].starttime))
			proc_clear(shm, i);
	for (u32 i = 0; i < SHM_COMMS; i++)
		if (shm->comms[i].id)
			comm_reap(&shm->comms[i]);
}

static bool shm_in_use(const struct shm *shm)
{
	for (u32 i = 0; i < SHM_PROCS; i++)
		if (proc_lives(shm->procs[i].pid, shm->procs[i].starttime))
			return true;
	return false;
}

static void shm_make(struct shm *shm, const struct shm_config *config)
{
	pthread_mutexattr_t attr;
	u64 now = truth_now_ns();
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	shm->realtime_minus_monotonic_ns =
		(u64)real.tv_sec * NSEC_PER_SEC + (u64)real.tv_nsec - truth_now_ns();
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shm->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	shm->config = *config;
	shm->created_ns = now;
	shm->size = sizeof(*shm);
	for (u32 i = 0; i < SHM_DEVICES; i++) {
		shm->devices[i].numa_node = config->numa_node[i];
		shm->devices[i].fold.until_ns = now;
	}
	__atomic_store_n(&shm->magic, SHM_MAGIC, __ATOMIC_RELEASE);
}

static int shm_open_file(int *ret_fd)
{
	const char *env = getenv("VGPU_SHM");
	char path[4096];

	snprintf(path, sizeof(path), "/dev/shm/vgpu-%u", getuid());
	if (env && *env)
		snprintf(path, sizeof(path), "%s", env);
	/* Without O_CREAT first: the kernel refuses it for a file of another user in /dev/shm. */
	*ret_fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (*ret_fd < 0 && errno == ENOENT) {
		*ret_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
		/* Like the device files of a driver: monitors run as other users. */
		if (*ret_fd >= 0)
			fchmod(*ret_fd, 0666);
	}
	return *ret_fd < 0 ? -errno : 0;
}

int shm_attach(struct shm **ret)
{
	struct shm_config config;
	struct shm *shm;
	int fd, err;

	err = shm_open_file(&fd);
	if (err)
		return err;
	/* The file lock protects the creation of the devices. */
	if (flock(fd, LOCK_EX) < 0 || ftruncate(fd, sizeof(*shm)) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	shm = mmap(NULL, sizeof(*shm), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shm == MAP_FAILED) {
		err = -errno;
		close(fd);
		return err;
	}
	config_read(&config);
	if (shm->magic != SHM_MAGIC || shm->size != sizeof(*shm) ||
	    (memcmp(&shm->config, &config, sizeof(config)) && !shm_in_use(shm))) {
		/* Clear the file in place, because a monitor may have mapped it. */
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, sizeof(*shm));
		shm_make(shm, &config);
	}
	/* The mapping keeps the open file, so close() alone would not release the lock. */
	flock(fd, LOCK_UN);
	close(fd);
	*ret = shm;
	return 0;
}

int shm_join(struct shm *shm, u32 *ret_proc)
{
	SHM_LOCKED(shm);

	shm_reap(shm);
	for (u32 i = 0; i < SHM_PROCS; i++) {
		struct shm_proc *proc = &shm->procs[i];

		if (proc->pid)
			continue;
		proc->starttime = shm_starttime((u32)getpid());
		proc->pid = (u32)getpid();
		*ret_proc = i;
		return 0;
	}
	return -ENOSPC;
}

void shm_leave(struct shm *shm, u32 proc)
{
	SHM_LOCKED(shm);

	proc_clear(shm, proc);
}

u64 shm_memory_used(const struct shm *shm, u32 device)
{
	u64 used = 0;

	for (u32 i = 0; i < SHM_PROCS; i++)
		used += shm->procs[i].memory[device];
	return used;
}

static bool memory_fits(const struct shm *shm, u32 device, u64 bytes)
{
	u64 used = shm_memory_used(shm, device);

	return bytes <= shm->config.memory_bytes && used <= shm->config.memory_bytes - bytes;
}

int shm_charge(struct shm *shm, u32 proc, u32 device, u64 bytes)
{
	SHM_LOCKED(shm);

	if (!memory_fits(shm, device, bytes)) {
		shm_reap(shm);
		if (!memory_fits(shm, device, bytes))
			return -ENOMEM;
	}
	shm->procs[proc].memory[device] += bytes;
	return 0;
}

void shm_uncharge(struct shm *shm, u32 proc, u32 device, u64 bytes)
{
	SHM_LOCKED(shm);

	shm->procs[proc].memory[device] -= bytes;
}
