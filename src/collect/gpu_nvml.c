/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * NVML calls hang when the driver does, so one thread makes all of them, from
 * loading the library to unloading it. The caller asks, waits up to a deadline
 * and goes on without an answer; until the thread is back, the source is stalled:
 * devices are still listed, with nothing but their identity valid.
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
	char *library; /* copies: a stuck thread may outlive the caller's */
	char *sysfs;
	u64 deadline_ns;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;

	/* Under the lock. The first question is the opening, so it is asked from the start. */
	u64 nr_asked;
	u64 nr_answered;
	int open_error;
	bool quit;
	bool gone;
	bool abandoned;
	struct gpu_samples identity; /* constant once the first question is answered */
	struct gpu_samples answer;

	struct gpu_samples work; /* the thread's own */
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

/* With the lock held, as the functions below. */
static void nvml_answer(struct nvml *nvml, struct gpu_samples *to)
{
	*to = nvml->work;
	nvml->nr_answered++;
	pthread_cond_broadcast(&nvml->changed);
}

/* True when there is a question, false when it is time to go. */
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

/* With the lock held. True when all that was asked is answered in time. */
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
	/* It already had its deadline when a question is open. */
	until = time_after(nvml->nr_answered < nvml->nr_asked ? 0 : nvml->deadline_ns);
	nvml->quit = true;
	pthread_cond_broadcast(&nvml->changed);
	while (!err && !nvml->gone)
		err = pthread_cond_clockwait(&nvml->changed, &nvml->lock, CLOCK_MONOTONIC, &until);
	if (!nvml->gone) {
		/*
		 * The thread is stuck in the library and cannot be stopped safely, and it
		 * will touch this memory if it ever comes back. So both are left to it: it
		 * frees the memory on its way out, or they leak until the program ends.
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
	/* An open question had its deadline: look, do not wait again. Its answer would be old. */
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
