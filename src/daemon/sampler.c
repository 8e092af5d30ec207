/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/sampler.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "collect/gpu_merge.h"
#include "collect/gpu_message.h"
#include "daemon/helper.h"

/* The first call of the vendor's library initializes every GPU of the machine. */
#define FIRST_NS    (60 * NSEC_PER_SEC)
#define ANSWER_NS   SAMPLER_STALE_NS
/* A driver that does not answer keeps processes from ending. More of them would not help. */
#define REMAINS_MAX 2

struct source {
	struct sampler *sampler;
	struct helper helper;
	bool is_slow; /* it did not answer in time, and has not answered since */
	u64 number;   /* of the last request */
	u64 sampled_ns;
	struct gpu_samples samples;
};

struct sampler {
	struct source sources[GPU_SOURCE_NR];
	struct gpu_request request;
	struct gpu_merge merge;
	struct gpu_samples merged;
	u64 nr_lost;
	void (*on_sample)(void *ctx);
	void *ctx;
};

static int on_answer(void *ctx, const void *message, size_t size, int fd)
{
	struct source *source = ctx;
	const struct gpu_reply *reply = message;
	u64 now_ns = time_now_ns();

	if (fd >= 0 || !gpu_reply_is_valid(reply, size, now_ns) || reply->number != source->number)
		return -EBADMSG;
	source->samples = reply->samples;
	source->sampled_ns = now_ns;
	source->is_slow = false;
	source->sampler->on_sample(source->sampler->ctx);
	return 0;
}

static const struct {
	enum program program;
	const char *name;
} rows[GPU_SOURCE_NR] = {
	[GPU_SOURCE_VENDOR] = { PROGRAM_GPU, "zernel-gpu" },
	[GPU_SOURCE_FDINFO] = { PROGRAM_FDINFO, "zernel-discover fdinfo" },
};

int sampler_new(struct starter *starter, struct loop *loop, void (*on_sample)(void *ctx), void *ctx,
		struct sampler **ret)
{
	static const struct helper_ops ops = { .message_bytes = sizeof(struct gpu_reply),
					       .max_remains = REMAINS_MAX,
					       .first_ns = FIRST_NS,
					       .answer_ns = ANSWER_NS,
					       .on_answer = on_answer };
	struct sampler *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return -ENOMEM;
	s->on_sample = on_sample;
	s->ctx = ctx;
	for (u32 i = 0; i < GPU_SOURCE_NR && err == 0; i++) {
		s->sources[i].sampler = s;
		err = helper_init(&s->sources[i].helper, starter, loop, rows[i].program,
				  rows[i].name, &ops, &s->sources[i]);
	}
	if (err < 0) {
		sampler_free(s);
		return err;
	}
	*ret = s;
	return 0;
}

struct sampler *sampler_free(struct sampler *s)
{
	if (!s)
		return NULL;
	for (u32 i = 0; i < GPU_SOURCE_NR; i++)
		if (s->sources[i].helper.ops)
			helper_done(&s->sources[i].helper);
	free(s);
	return NULL;
}

/* Descriptors are read only of the processes that can use a GPU. */
static bool is_needed(const struct sampler *s, u32 source)
{
	return source == GPU_SOURCE_VENDOR || s->request.nr_pids;
}

static bool is_fresh(const struct source *source, u64 now_ns)
{
	return source->sampled_ns && now_ns < source->sampled_ns + SAMPLER_STALE_NS;
}

static void ask(struct sampler *s, struct source *source, u64 now_ns)
{
	s->request.number = ++source->number;
	helper_ask(&source->helper, &s->request, sizeof(s->request), now_ns);
}

void sampler_tick(struct sampler *s, u64 now_ns)
{
	for (u32 i = 0; i < GPU_SOURCE_NR; i++) {
		struct source *source = &s->sources[i];

		if (!is_needed(s, i))
			continue;
		helper_tick(&source->helper, now_ns);
		if (helper_is_idle(&source->helper))
			ask(s, source, now_ns);
		else
			s->nr_lost += source->sampled_ns || source->helper.start_ns;
	}
}

void sampler_set_pids(struct sampler *s, const pid_t *pids, size_t nr)
{
	nr = nr < GPU_MAX_PROCESSES ? nr : GPU_MAX_PROCESSES;
	memcpy(s->request.pids, pids, nr * sizeof(*pids));
	s->request.nr_pids = (u32)nr;
}

/* Whether a snapshot should wait for the source. Asks it if it is idle. */
static bool is_awaited(struct sampler *s, u32 i, u64 now_ns)
{
	struct source *source = &s->sources[i];
	const struct helper *helper = &source->helper;

	if (!is_needed(s, i) || source->is_slow || !is_fresh(source, now_ns) ||
	    now_ns < source->sampled_ns + SAMPLER_RECENT_NS)
		return false;
	if (helper_is_idle(helper))
		ask(s, source, now_ns);
	else
		source->is_slow = now_ns >= helper->asked_ns + SAMPLER_REFRESH_NS;
	return helper->is_asked && !source->is_slow;
}

bool sampler_prepare(struct sampler *s, u64 now_ns)
{
	bool awaited = false;

	for (u32 i = 0; i < GPU_SOURCE_NR; i++)
		awaited |= is_awaited(s, i, now_ns);
	return !awaited;
}

/* The identity of a GPU does not change while its driver is silent. */
static void forget_values(struct gpu_samples *samples)
{
	for (u32 i = 0; i < samples->nr_devices; i++)
		samples->devices[i].valid &= GPU_IDENTITY;
	samples->nr_processes = 0;
	samples->nr_dropped = 0;
	samples->nr_stalled = samples->nr_devices != 0;
}

bool sampler_read(struct sampler *s, u64 now_ns, struct gpu_samples *ret)
{
	bool any = false;

	memset(&s->merged, 0, sizeof(s->merged));
	for (u32 i = 0; i < GPU_SOURCE_NR; i++) {
		struct source *source = &s->sources[i];

		/* The GPUs that the vendor's library numbers come first. */
		if (!source->sampled_ns || !s->sources[GPU_SOURCE_VENDOR].sampled_ns)
			continue;
		any = true;
		if (!is_fresh(source, now_ns))
			forget_values(&source->samples);
		source->samples.nr_stalled &= is_needed(s, i);
		gpu_merge_add(&s->merge, i, &source->samples, &s->merged);
	}
	if (any)
		*ret = s->merged;
	return any;
}

struct sampler_counts sampler_counts(const struct sampler *s)
{
	struct sampler_counts counts = { .nr_lost = s->nr_lost };

	for (u32 i = 0; i < GPU_SOURCE_NR; i++)
		counts.nr_restarts += s->sources[i].helper.nr_restarts;
	return counts;
}
