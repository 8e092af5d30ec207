/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Communicators: join, split, leave, and their helper threads; see nccl.h. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vgpu/nccl.h"

#define MEET_POLL_US   200
#define PEERS_CHECK_NS (100 * NSEC_PER_MSEC)

/* All communicators of the process, protected by the lock of the engine. */
static struct ncclComm *comms;

static struct shm_comm *shared_find(struct shm *shm, u64 id)
{
	struct shm_comm *unused = NULL;

	for (u32 i = 0; i < SHM_COMMS; i++) {
		if (shm->comms[i].id == id)
			return &shm->comms[i];
		if (!shm->comms[i].id && !unused)
			unused = &shm->comms[i];
	}
	return unused;
}

static ncclResult_t shared_join(u64 id, u32 nr_ranks, u32 rank, struct shm_comm **ret)
{
	struct shm *shm = VGPU_OPS.shm();
	struct shm_comm *shared;

	SHM_LOCKED(shm);
	shared = shared_find(shm, id);
	if (!shared) {
		shm_reap(shm);
		shared = shared_find(shm, id);
	}
	if (!shared)
		return ncclSystemError;
	if (shared->id && (shared->nr_ranks != nr_ranks || shared->ranks[rank].joined))
		return ncclInvalidUsage;
	shared->ranks[rank].pid = (u32)getpid();
	shared->ranks[rank].starttime = shm_starttime((u32)getpid());
	shared->nr_ranks = nr_ranks;
	shared->id = id;
	__atomic_store_n(&shared->ranks[rank].joined, 1, __ATOMIC_RELEASE);
	*ret = shared;
	return ncclSuccess;
}

ncclResult_t comm_join(u64 id, u32 nr_ranks, u32 rank, int device, struct ncclComm **ret)
{
	struct ncclComm *comm = calloc(1, sizeof(*comm));
	ncclResult_t r;

	if (!comm)
		return ncclSystemError;
	*comm = (struct ncclComm){ .id = id, .nr_ranks = nr_ranks, .rank = rank, .device = device };
	pthread_cond_init(&comm->wake, NULL);
	r = shared_join(id, nr_ranks, rank, &comm->shared);
	if (r != ncclSuccess)
		free(comm);
	else
		*ret = comm;
	return r;
}

static void shared_leave(struct ncclComm *comm)
{
	struct shm *shm = VGPU_OPS.shm();
	SHM_LOCKED(shm);

	comm->shared->ranks[comm->rank].joined = 2;
	shm_reap(shm);
}

static bool peer_is_gone(const struct ncclComm *comm)
{
	for (u32 r = 0; r < comm->nr_ranks; r++) {
		const struct shm_rank *rank = &comm->shared->ranks[r];

		if (rank->joined == 1 && shm_starttime(rank->pid) != rank->starttime)
			return true;
	}
	return false;
}

static bool comm_is_busy(const struct ncclComm *comm)
{
	return comm->nr_done != comm->nr_queued || truth_now_ns() < comm->last_end_ns;
}

static void helper_name(pthread_t thread, u32 rank)
{
	char name[16];

	snprintf(name, sizeof(name), "NCCL Progress%2u", rank % 100);
	pthread_setname_np(thread, name);
}

static void *helper_main(void *arg)
{
	struct ncclComm *comm = arg;
	u64 start = truth_now_ns(), checked = start;

	VGPU_OPS.lock();
	while (!comm->quit) {
		if (!comm_is_busy(comm)) {
			VGPU_OPS.sleep(&comm->wake);
			continue;
		}
		VGPU_OPS.progress();
		VGPU_OPS.unlock();
		sched_yield();
		if (truth_now_ns() - checked > PEERS_CHECK_NS) {
			checked = truth_now_ns();
			if (peer_is_gone(comm))
				__atomic_store_n(&comm->remote_error, true, __ATOMIC_RELAXED);
		}
		VGPU_OPS.lock();
	}
	VGPU_OPS.unlock();
	truth_log(VGPU_OPS.truth(), TRUTH_THREAD, TRUTH_ROLE_COLLECTIVE_HELPER, start,
		  truth_now_ns(), 0, 0, 0);
	return NULL;
}

/*
 * As in NCCL, where the service thread begins with the communicator and creates the progress
 * thread when the first work needs it.
 */
static void *service_main(void *arg)
{
	struct ncclComm *comm = arg;
	u64 start = truth_now_ns();
	pthread_t progress;
	bool quit;

	VGPU_OPS.lock();
	while (!comm->quit && !comm_is_busy(comm))
		VGPU_OPS.sleep(&comm->wake);
	quit = comm->quit;
	VGPU_OPS.unlock();
	if (!quit && pthread_create(&progress, NULL, helper_main, comm) == 0) {
		helper_name(progress, comm->rank);
		pthread_join(progress, NULL);
	}
	truth_log(VGPU_OPS.truth(), TRUTH_THREAD, TRUTH_ROLE_COLLECTIVE_HELPER, start,
		  truth_now_ns(), 0, 0, 0);
	return NULL;
}

static void helper_stop(struct ncclComm *comm)
{
	VGPU_OPS.lock();
	comm->quit = true;
	pthread_cond_signal(&comm->wake);
	VGPU_OPS.unlock();
	pthread_join(comm->helper, NULL);
}

/* Logs the helpers also for a program that never destroys its communicators. */
__attribute__((destructor)) static void helpers_stop(void)
{
	while (comms) {
		struct ncclComm *comm = comms;

		comms = comm->next;
		if (comm->shared->ranks[comm->rank].pid == (u32)getpid())
			helper_stop(comm);
	}
}

ncclResult_t comm_start(struct ncclComm *comm)
{
	const char *service = getenv("VGPU_NCCL_SERVICE");
	bool is_direct = !service || strcmp(service, "1") != 0;

	for (u32 r = 0; r < comm->nr_ranks; r++)
		while (!__atomic_load_n(&comm->shared->ranks[r].joined, __ATOMIC_ACQUIRE))
			usleep(MEET_POLL_US);
	if (pthread_create(&comm->helper, NULL, is_direct ? helper_main : service_main, comm))
		return ncclSystemError;
	if (is_direct)
		helper_name(comm->helper, comm->rank);
	else
		pthread_setname_np(comm->helper, "NCCL Service");
	VGPU_OPS.lock();
	comm->next = comms;
	comms = comm;
	VGPU_OPS.unlock();
	return ncclSuccess;
}

static ncclResult_t comm_leave(struct ncclComm *comm, bool abort)
{
	struct ncclComm **at = &comms;

	if (!comm)
		return ncclSuccess;
	VGPU_OPS.lock();
	comm->aborted = abort;
	VGPU_OPS.progress();
	while (comm->nr_done != comm->nr_queued) {
		VGPU_OPS.unlock();
		usleep(MEET_POLL_US);
		VGPU_OPS.lock();
	}
	while (*at && *at != comm)
		at = &(*at)->next;
	if (*at)
		*at = comm->next;
	VGPU_OPS.unlock();
	helper_stop(comm);
	shared_leave(comm);
	pthread_cond_destroy(&comm->wake);
	free(comm);
	return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	return comm_leave(comm, false);
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	return comm_leave(comm, true);
}

/* Ranks of one color, ordered by key and then by old rank, compute the same id. */
ncclResult_t split_finish(struct ncclComm *parent, u64 number, struct ncclComm **ret)
{
	const struct shm_rank *ranks = parent->shared->ranks;
	struct shm_split mine, split;
	u32 nr = 0, rank = 0;

	for (u32 r = 0; r < parent->nr_ranks; r++)
		while (__atomic_load_n(&ranks[r].split[number % SHM_COLL].number,
				       __ATOMIC_ACQUIRE) != number)
			usleep(MEET_POLL_US);
	mine = ranks[parent->rank].split[number % SHM_COLL];
	if (mine.color == NCCL_SPLIT_NOCOLOR) {
		*ret = NULL;
		return ncclSuccess;
	}
	for (u32 r = 0; r < parent->nr_ranks; r++) {
		split = ranks[r].split[number % SHM_COLL];
		if (split.color != mine.color)
			continue;
		nr++;
		rank += split.key < mine.key || (split.key == mine.key && r < parent->rank);
	}
	return comm_join((parent->id ^ (number << 32 | (u32)mine.color)) * 0x9e3779b97f4a7c15ULL |
				 1,
			 nr, rank, parent->device, ret);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *ret,
			   ncclConfig_t *config)
{
	struct shm_split *split;
	u64 number;

	if (!comm || !ret || color < NCCL_SPLIT_NOCOLOR)
		return ncclInvalidArgument;
	number = ++comm->split_number;
	split = &comm->shared->ranks[comm->rank].split[number % SHM_COLL];
	split->color = color;
	split->key = key;
	__atomic_store_n(&split->number, number, __ATOMIC_RELEASE);
	return group_add_split(comm, number, ret);
}

ncclResult_t ncclCommCount(ncclComm_t comm, int *count)
{
	if (!comm || !count)
		return ncclInvalidArgument;
	*count = (int)comm->nr_ranks;
	return ncclSuccess;
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int *rank)
{
	if (!comm || !rank)
		return ncclInvalidArgument;
	*rank = (int)comm->rank;
	return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int *device)
{
	if (!comm || !device)
		return ncclInvalidArgument;
	*device = comm->device;
	return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
	if (!comm || !error)
		return ncclInvalidArgument;
	*error = __atomic_load_n(&comm->remote_error, __ATOMIC_RELAXED) ? ncclRemoteError
									: ncclSuccess;
	return ncclSuccess;
}
