/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * serve: inference serving on the virtual GPU that logs the truth. Requests arrive
 * at random times, are tokenized on the CPU and answered in batches, one token at a
 * time.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/serve.h"
#include "truth/summary.h"

#define TRUTH_RECORDS (4U << 20)
#define MAX_REQUESTS  10000000
#define START_LEAD_NS (20 * NSEC_PER_MSEC) /* lets the threads start before the first arrival */
#define AT(field)     offsetof(struct serve_config, field)

static const struct option_row options[] = {
	/* clang-format off */
	{ "rate", OPTION_DOUBLE, AT(rate), 0, NULL, "mean number of requests per second (Poisson)" },
	{ "requests", OPTION_U64, AT(requests), 1, NULL, "number of requests" },
	{ "seconds", OPTION_DOUBLE, AT(seconds), 0, NULL, "generate requests for this many seconds, instead of --requests" },
	{ "tokenizers", OPTION_U64, AT(tokenizers), 1, NULL, "number of tokenizer threads" },
	{ "tokenize-us", OPTION_U64, AT(tokenize_us), 0, NULL, "CPU time to tokenize a request, +-20 %" },
	{ "prefill-us", OPTION_U64, AT(prefill_us), 0, NULL, "GPU time of the first token of a request" },
	{ "decode-us", OPTION_U64, AT(decode_us), 0, NULL, "GPU time of the next token of a batch" },
	{ "launches", OPTION_U64, AT(launches), 1, NULL, "kernel launches per token" },
	{ "batch", OPTION_U64, AT(batch), 1, NULL, "maximum number of requests in a batch" },
	{ "tokens", OPTION_U64, AT(tokens), 1, NULL, "tokens per answer" },
	WORKLOAD_OPTIONS,
	/* clang-format on */
};

static const struct serve_config defaults = {
	.rate = 50,
	.requests = 100,
	.tokenizers = 2,
	.tokenize_us = 1000,
	.prefill_us = 2000,
	.decode_us = 500,
	.launches = 20,
	.batch = 8,
	.tokens = 8,
	.work.seed = 1,
};

static const char *config_wrong(const void *arg)
{
	const struct serve_config *config = arg;

	if (config->tokenizers > SERVE_MAX_TOKENIZERS || config->batch > SERVE_MAX_BATCH)
		return "--tokenizers or --batch is too large";
	if (!(config->rate > 0))
		return "--rate must be greater than 0";
	if (config->requests > MAX_REQUESTS || config->rate * config->seconds > MAX_REQUESTS)
		return "too many requests";
	return NULL;
}

static const struct workload_kind kind = { "serve", options, ARRAY_SIZE(options), config_wrong };

/* Poisson arrivals: the gaps are exponentially distributed. */
static u64 arrival_gap_ns(const struct serve_config *config, u64 i)
{
	double u = ((double)(random_at(config->work.seed, i) >> 11) + 0.5) / (double)(1ULL << 53);

	return (u64)(-log(u) / config->rate * NSEC_PER_SEC);
}

static int requests_plan(const struct serve_config *config, struct serve *serve)
{
	u64 limit_ns = (u64)(config->seconds * NSEC_PER_SEC);
	u64 at = 0, nr = 0, room = 0;

	for (;; nr++) {
		at += arrival_gap_ns(config, nr);
		if (limit_ns ? at >= limit_ns : nr == config->requests)
			break;
		if (nr == room) {
			struct request *more;

			room = room ? room * 2 : 1024;
			more = realloc(serve->requests, room * sizeof(*more));
			if (!more)
				return -ENOMEM;
			serve->requests = more;
		}
		serve->requests[nr] = (struct request){
			.id = nr,
			.arrival_ns = at,
			.tokens_left = config->tokens,
		};
	}
	serve->nr_requests = nr;
	return 0;
}

static int serve_open(const struct serve_config *config, struct serve *serve)
{
	int r = requests_plan(config, serve);

	if (r < 0)
		return r;
	serve->config = config;
	serve->nr_tokenizers_left = config->tokenizers;
	serve->arrived = queue_new(serve->nr_requests);
	serve->tokenized = queue_new(serve->nr_requests);
	if (!serve->arrived || !serve->tokenized)
		return -ENOMEM;
	return config->work.truth
		       ? truth_open(config->work.truth, "serve", TRUTH_RECORDS, &serve->truth)
		       : 0;
}

static void serve_close(struct serve *serve)
{
	truth_free(serve->truth);
	queue_free(serve->arrived);
	queue_free(serve->tokenized);
	free(serve->requests);
}

/* Ends the program if a thread or the device fails, because no request would complete. */
static int serve_run(struct serve *serve)
{
	pthread_t threads[SERVE_MAX_TOKENIZERS + 1];
	u64 nr_threads = serve->config->tokenizers + 1;
	u64 start = truth_now_ns() + START_LEAD_NS;
	int r = 0;

	for (u64 i = 0; i < serve->nr_requests; i++)
		serve->requests[i].arrival_ns += start;
	for (u64 i = 0; i < nr_threads && r == 0; i++)
		r = -pthread_create(&threads[i], NULL, i ? tokenizer_thread : generator_thread,
				    serve);
	if (r == 0)
		r = launcher_run(serve);
	if (r < 0) {
		fprintf(stderr, "serve: %s\n", strerror(-r));
		exit(EXIT_FAILURE);
	}
	for (u64 i = 0; i < nr_threads; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static int report(const struct serve *serve)
{
	u64 *ttfts_ns = calloc(serve->nr_requests + 1, sizeof(*ttfts_ns));
	struct truth_quantiles ttft;

	if (!ttfts_ns)
		return -ENOMEM;
	for (u64 i = 0; i < serve->nr_requests; i++)
		ttfts_ns[i] = serve->requests[i].first_token_ns - serve->requests[i].arrival_ns;
	ttft = truth_quantiles_of(ttfts_ns, serve->nr_requests);
	free(ttfts_ns);
	printf("{\"requests\":%" PRIu64 ",\"ttft_mean_ms\":%.3f,\"ttft_p50_ms\":%.3f,"
	       "\"ttft_p99_ms\":%.3f,\"gpu_busy\":",
	       (uint64_t)ttft.nr, ttft.mean_ms, ttft.p50_ms, ttft.p99_ms);
	workload_print_busy(&serve->config->work, getpid());
	printf("}\n");
	return 0;
}

int main(int argc, char **argv)
{
	struct serve_config config = defaults;
	struct serve serve = {};
	int status, r;

	if (!workload_begin(&kind, argc, argv, &config.work, &status))
		return status;
	r = serve_open(&config, &serve);
	if (r == 0)
		r = serve_run(&serve);
	if (r == 0)
		r = report(&serve);
	if (r < 0)
		fprintf(stderr, "serve: %s\n", strerror(-r));
	serve_close(&serve);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
