/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Jobs that use their device as frameworks do: they launch without waiting for it. Each
 * job has its own file; jobs.c has the table of jobs. The program `roles` has other jobs.
 */
#include <pthread.h>

#include "framework/torch.h"
#include "truth/summary.h"
#include "vgpu/include/vgpu_cudart.h"
#include "vgpu/include/vgpu_nccl.h"
#include "work/did.h"
#include "work/loader.h"
#include "work/workload.h"

enum framework_wait { WAIT_EPOLL, WAIT_SLEEP, WAIT_YIELD };

#define MEMBERS_MAX 16

/* The command line. Each job has its own defaults. */
struct framework_config {
	struct workload work;
	const char *program;
	struct loading loading;
	u64 ranks;
	u64 steps;
	double seconds;
	u64 launches;
	u64 kernel_us;
	u64 launch_gap_us;
	u64 sync_every;
	u64 log_us;
	u64 passes;
	u64 collective_bytes;
	u64 sm_percent;
	u64 slow_rank;
	double slow_factor;
	double rate;
	u64 wait; /* enum framework_wait */
	u64 members;
	u64 member_us;
	u64 scopes;
	u64 startup_ms;
};

/* No step begins after those that have begun in some rank. */
#define STARTED_LAST (1ULL << 63)

/* Memory that the ranks share. */
struct shared {
	pthread_barrier_t barrier;
	ncclUniqueId id;
	u64 started; /* steps that began in the rank that is ahead, and STARTED_LAST */
	struct truth_quantiles steps;
	double seconds;
	struct crew *crew; /* of a job with `begin` */
};

/*
 * A rank process. The first error is printed; after it, no function of a rank calls the
 * device and no step begins, so that jobs need no checks between calls.
 */
struct rank {
	const struct framework_config *config;
	struct shared *shared;
	u64 index;
	u64 kernel_ns;
	bool failed;
	struct truth *truth;
	struct did did; /* of the main thread */
	struct ring *ring;
	struct loaders *loaders;
	u64 nr_batches; /* taken */
	void *host, *device;
	void *gradients;
	ncclComm_t comm;
	u64 nr_begun; /* steps, by the thread that launches */
	u64 nr_ended; /* steps, by the thread that ends them */
	u64 begin_ns, step_ns;
	u64 *steps_ns;
	u64 room_steps;
};

struct job {
	const char *name;
	const char *help;
	void (*run)(struct rank *rank);
	struct framework_config defaults;
	/* Called before the ranks start and after they ended; may be NULL. They return 0, or a
	 * negative errno after an error message. */
	int (*begin)(const struct framework_config *config, struct shared *shared);
	int (*end)(struct shared *shared);
};

struct program {
	const char *name; /* also of its truth logs */
	const struct job *jobs;
	size_t nr_jobs;
};

/* cli.c: the main function of a program. */
int framework_main(const struct program *program, int argc, char **argv);

/* Runs a rank process. Returns 0, or a negative errno after an error message on stderr. */
int rank_run(const struct framework_config *config, struct shared *shared, u64 index,
	     void (*run)(struct rank *rank));
void rank_fail(struct rank *rank, const char *what, const char *why);
bool rank_failed(const struct rank *rank);
/* Returns whether the next step begins; all ranks run the same steps. */
bool rank_next_step(struct rank *rank);
/* Ends the step that began last, now. A single thread of a rank calls it. */
void rank_end_step(struct rank *rank);

/* device.c: calls on the device of the rank by the thread that `did` logs. */
void device_cuda(struct rank *rank, const char *what, cudaError_t error);
void device_nccl(struct rank *rank, const char *what, ncclResult_t result);
void device_open(struct rank *rank);
void device_use(struct rank *rank); /* once in every other thread that makes calls */
void device_close(struct rank *rank);
/* `nr` kernels, each after the CPU work between two launches. */
void device_kernels(struct rank *rank, struct did *did, cudaStream_t stream, u64 nr);
/* Copies a number to the host and waits for it, as `.item()` and `.tolist()` do. */
void device_item(struct rank *rank, struct did *did, cudaStream_t stream);
void device_drain(struct rank *rank, struct did *did);
cudaStream_t device_stream(struct rank *rank);
cudaEvent_t device_event(struct rank *rank);
void device_record(struct rank *rank, cudaEvent_t event, cudaStream_t stream);
/* Later work on the stream waits for the event. */
void device_follow(struct rank *rank, cudaStream_t stream, cudaEvent_t event);
void device_wait(struct rank *rank, struct did *did, cudaEvent_t event);

/* train.c: parts of a training loop. */
void train_batch(struct rank *rank, cudaStream_t stream);
void train_clear_gradients(struct rank *rank, cudaStream_t stream);
/* The last part of a step. */
void train_optimizer(struct rank *rank, cudaStream_t stream);
/* Reads and logs the loss after every --sync-every steps. */
void train_loss(struct rank *rank, cudaStream_t stream);

/* Jobs. */
void accumulate_run(struct rank *rank);
void autograd_run(struct rank *rank);
void graphs_run(struct rank *rank);
void idle_server_run(struct rank *rank);
void limiter_run(struct rank *rank);
void moe_run(struct rank *rank);
void overlap_run(struct rank *rank);
void pipeline_run(struct rank *rank);
void plain_run(struct rank *rank);
void serve_async_run(struct rank *rank);
