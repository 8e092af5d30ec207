/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * NVML calls hang when the driver hangs, so one thread makes all of them, from loading the
 * library to unloading it. The caller sends a request and waits for the reply until a
 * deadline. After a missed deadline, the source is stalled until the thread replies: GPUs
 * are still listed, but only their identity is valid.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/signals.h"
#include "base/time.h"
#include "collect/gpu.h"
#include "collect/gpu_nvml_api.h"

struct nvml {
	char *library; /* a copy, because a hanging thread can outlive the text of the caller */
	char *sysfs;
	u64 deadline_ns;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;

	/*
	 * Protected by the lock. The first request is to open the library; it is pending at the
	 * start.
	 */
	u64 nr_asked;
	u64 nr_answered;
	int open_error;
	bool quit;
	bool gone;
	bool abandoned;
	struct gpu_samples identity; /* constant after the reply to the first request */
	struct gpu_samples answer;

	struct gpu_samples work; /* used only by the thread */
};

static void nvml_destroy(struct nvml *nvml)
{
	if (!nvml)
		return;
	pthread_cond_destroy(&nvml->changed);
	pthread_mutex_destroy(&nvml->lock);
	free(nvml->library);
	free(nvml->sysfs);
	free(nvml);
}

DEFINE_CLEANUP(struct nvml, nvml_destroy);

/* The caller holds the lock. */
static void nvml_answer(struct nvml *nvml, struct gpu_samples *to)
{
	*to = nvml->work;
	nvml->nr_answered++;
	pthread_cond_broadcast(&nvml->changed);
}

/* The caller holds the lock. True: a request is pending; false: the thread must exit. */
static bool nvml_await_question(struct nvml *nvml)
{
	while (!nvml->quit && nvml->nr_asked == nvml->nr_answered)
		pthread_cond_wait(&nvml->changed, &nvml->lock);
	return !nvml->quit;
}

static void *nvml_thread(void *argument)
{
	struct nvml *nvml = argument;
	struct nvml_api *api = NULL;
	int err = nvml_api_open(nvml->library, &api);
	bool abandoned;

	if (api)
		nvml_api_identify(api, nvml->sysfs, &nvml->work);
	pthread_mutex_lock(&nvml->lock);
	nvml->open_error = err;
	nvml_answer(nvml, &nvml->identity);
	while (api && nvml_await_question(nvml)) {
		pthread_mutex_unlock(&nvml->lock);
		nvml->work = nvml->identity;
		nvml_api_measure(api, &nvml->work);
		pthread_mutex_lock(&nvml->lock);
		nvml_answer(nvml, &nvml->answer);
	}
	pthread_mutex_unlock(&nvml->lock);
	nvml_api_close(api);

	pthread_mutex_lock(&nvml->lock);
	nvml->gone = true;
	abandoned = nvml->abandoned;
	pthread_cond_broadcast(&nvml->changed);
	pthread_mutex_unlock(&nvml->lock);
	if (abandoned)
		nvml_destroy(nvml);
	return NULL;
}

/* The caller holds the lock. True when all requests have their reply before the deadline. */
static bool nvml_await_answer(struct nvml *nvml)
{
	struct timespec until = time_after(nvml->deadline_ns);
	int err = 0;

	while (!err && nvml->nr_answered < nvml->nr_asked)
		err = pthread_cond_clockwait(&nvml->changed, &nvml->lock, CLOCK_MONOTONIC, &until);
	return nvml->nr_answered == nvml->nr_asked;
}

static void nvml_close(void *source)
{
	struct nvml *nvml = source;
	struct timespec until;
	int err = 0;

	pthread_mutex_lock(&nvml->lock);
	/* A pending request already had its full deadline. */
	until = time_after(nvml->nr_answered < nvml->nr_asked ? 0 : nvml->deadline_ns);
	nvml->quit = true;
	pthread_cond_broadcast(&nvml->changed);
	while (!err && !nvml->gone)
		err = pthread_cond_clockwait(&nvml->changed, &nvml->lock, CLOCK_MONOTONIC, &until);
	if (!nvml->gone) {
		/*
		 * The thread hangs in the library and cannot be stopped safely. It uses this memory
		 * if the call ever returns, so the thread now owns the memory. The thread frees it
		 * before it exits; until then, both leak.
		 */
		nvml->abandoned = true;
		pthread_detach(nvml->thread);
		pthread_mutex_unlock(&nvml->lock);
		return;
	}
	pthread_mutex_unlock(&nvml->lock);
	pthread_join(nvml->thread, NULL);
	nvml_destroy(nvml);
}

static int nvml_open(const struct gpu_config *config, void **ret)
{
	CLEANUP(nvml_destroy_cleanup) struct nvml *nvml = calloc(1, sizeof(*nvml));
	struct nvml *started;
	int err;

	if (!nvml)
		return -ENOMEM;
	pthread_mutex_init(&nvml->lock, NULL);
	pthread_cond_init(&nvml->changed, NULL);
	nvml->deadline_ns = config->deadline_ns;
	nvml->nr_asked = 1;
	nvml->library = strdup(config->nvml_library);
	nvml->sysfs = strdup(config->sysfs);
	if (!nvml->library || !nvml->sysfs)
		return -ENOMEM;
	err = signals_start_thread(nvml_thread, nvml, &nvml->thread);
	if (err < 0)
		return err;

	started = TAKE_PTR(nvml);
	pthread_mutex_lock(&started->lock);
	err = nvml_await_answer(started) ? started->open_error : 0;
	pthread_mutex_unlock(&started->lock);
	if (err < 0) {
		nvml_close(started);
		return err;
	}
	*ret = started;
	return 0;
}

static int nvml_sample(void *source, const pid_t *pids, size_t nr_pids, u64 now_ns,
		       struct gpu_samples *samples)
{
	struct nvml *nvml = source;
	bool answered = false;

	pthread_mutex_lock(&nvml->lock);
	/*
	 * A pending request already had its deadline, and its reply would be old: do not wait
	 * again.
	 */
	if (nvml->nr_answered == nvml->nr_asked && !nvml->open_error) {
		nvml->nr_asked++;
		pthread_cond_broadcast(&nvml->changed);
		answered = nvml_await_answer(nvml);
	}
	*samples = answered ? nvml->answer : nvml->identity;
	if (!answered && !nvml->open_error)
		samples->nr_stalled = 1;
	pthread_mutex_unlock(&nvml->lock);
	return 0;
}

const struct gpu_source_ops gpu_nvml_ops = {
	.name = "nvml",
	.open = nvml_open,
	.sample = nvml_sample,
	.close = nvml_close,
};
