/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "serve/queue.h"
#include "truth/truth.h"
#include "work/workload.h"

#define SERVE_MAX_TOKENIZERS 256
#define SERVE_MAX_BATCH	     1024

/* The command line; main.c contains the table with defaults and help. */
struct serve_config {
	struct workload work;
	double rate;
	double seconds;
	u64 requests;
	u64 tokenizers;
	u64 tokenize_us;
	u64 prefill_us;
	u64 decode_us;
	u64 launches;
	u64 batch;
	u64 tokens;
};

/* A run. Threads share it; a request belongs to the thread that took it from a queue. */
struct serve {
	const struct serve_config *config;
	struct truth *truth;
	struct request *requests; /* before the run starts, arrival_ns is relative to its start */
	u64 nr_requests;
	struct queue *arrived;	 /* generator -> tokenizers */
	struct queue *tokenized; /* tokenizers -> launcher */
	u64 nr_tokenizers_left;
};

/* Thread bodies; `arg` is the struct serve. */
void *generator_thread(void *arg);
void *tokenizer_thread(void *arg);

/* Runs the launcher in the calling thread until every request is done. */
int launcher_run(struct serve *serve);
