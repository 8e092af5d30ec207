/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/sampler.h"
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/signals.h"
#include "base/time.h"
#include "daemon/loop.h"

/* How long sampler_free() waits for the thread before it abandons the thread. */
#define PATIENCE_S 2

struct sampler {
	struct gpu_config config; /* its strings are constants */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_cond_t sampled;

	/* Protected by the lock. */
	bool quit;
	bool asked; /* sample now */
	bool slow;  /* it did not answer in time, and has not answered since */
	pid_t pids[GPU_MAX_PROCESSES];
	size_t nr_pids;
	u64 sampled_ns; /* 0: never */
	struct gpu_samples answer;

	/* Used only by the thread. */
	pid_t work_pids[GPU_MAX_PROCESSES];
	struct gpu_samples work;
};

/* Call it with the lock held. Returns false if the thread must exit. */
static bool wait_a_second(struct sampler *s)
{
	const struct timespec until = time_after(NSEC_PER_SEC);

	while (!s->quit && !s->asked)
		if (pthread_cond_clockwait(&s->wake, &s->lock, CLOCK_MONOTONIC, &until))
			break;
	return !s->quit;
}

static void *sampler_thread(void *argument)
{
	struct sampler *s = argument;
	CLEANUP(gpu_free_cleanup) struct gpu *gpu = NULL;
	bool go_on = gpu_new(&s->config, &gpu) == 0;

	while (go_on) {
		size_t nr;
		int err;

		pthread_mutex_lock(&s->lock);
		s->asked = false;
		nr = s->nr_pids;
		memcpy(s->work_pids, s->pids, nr * sizeof(*s->pids));
		pthread_mutex_unlock(&s->lock);
		err = gpu_read(gpu, s->work_pids, nr, time_now_ns(), &s->work);
		pthread_mutex_lock(&s->lock);
		if (err == 0) {
			s->answer = s->work;
			s->sampled_ns = time_now_ns();
			s->slow = false;
			pthread_cond_signal(&s->sampled);
		}
		go_on = wait_a_second(s);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

int sampler_new(const struct gpu_config *config, struct sampler **ret)
{
	struct sampler *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	pthread_cond_init(&s->sampled, NULL);
	err = signals_start_thread(sampler_thread, s, &s->thread);
	if (err < 0) {
		free(s);
		return err;
	}
	*ret = s;
	return 0;
}

struct sampler *sampler_free(struct sampler *s)
{
	struct timespec until;

	if (!s)
		return NULL;
	pthread_mutex_lock(&s->lock);
	s->quit = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	until = time_after(PATIENCE_S * NSEC_PER_SEC);
	/* An abandoned thread still uses this memory, so the memory is not freed. */
	if (pthread_clockjoin_np(s->thread, NULL, CLOCK_MONOTONIC, &until)) {
		pthread_detach(s->thread);
		return NULL;
	}
	pthread_cond_destroy(&s->wake);
	pthread_cond_destroy(&s->sampled);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return NULL;
}

void sampler_set_pids(struct sampler *s, const pid_t *pids, size_t nr)
{
	nr = nr < GPU_MAX_PROCESSES ? nr : GPU_MAX_PROCESSES;
	pthread_mutex_lock(&s->lock);
	memcpy(s->pids, pids, nr * sizeof(*pids));
	s->nr_pids = nr;
	pthread_mutex_unlock(&s->lock);
}

static bool is_fresh(const struct sampler *s, u64 now_ns)
{
	return s->sampled_ns && now_ns < s->sampled_ns + SAMPLER_STALE_NS;
}

void sampler_refresh(struct sampler *s)
{
	const struct timespec until = time_after(SAMPLER_REFRESH_NS);
	u64 now_ns = time_now_ns(), wanted_ns;
	int err = 0;

	pthread_mutex_lock(&s->lock);
	wanted_ns = s->sampled_ns + SAMPLER_RECENT_NS;
	if (now_ns >= wanted_ns) {
		s->asked = true;
		pthread_cond_signal(&s->wake);
	}
	while (!err && !s->slow && is_fresh(s, now_ns) && s->sampled_ns < now_ns &&
	       now_ns >= wanted_ns)
		err = pthread_cond_clockwait(&s->sampled, &s->lock, CLOCK_MONOTONIC, &until);
	s->slow |= err != 0;
	pthread_mutex_unlock(&s->lock);
}

bool sampler_read(struct sampler *s, u64 now_ns, struct gpu_samples *ret)
{
	bool fresh;

	pthread_mutex_lock(&s->lock);
	fresh = is_fresh(s, now_ns);
	if (fresh)
		*ret = s->answer;
	pthread_mutex_unlock(&s->lock);
	return fresh;
}
