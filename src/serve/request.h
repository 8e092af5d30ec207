/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Parses requests and decides whether they are allowed. The client is not trusted, so every
 * input is validated. The functions do no I/O.
 */
#include <stdbool.h>
#include <stddef.h>
#include "abi/types.h"

enum endpoint {
	ENDPOINT_NONE,
	ENDPOINT_METRICS,
	ENDPOINT_SNAPSHOT,
	ENDPOINT_WS,
	ENDPOINT_HEALTH,
	ENDPOINT_READY,
	ENDPOINT_HEALTH_DETAILS,
	ENDPOINT_WHY,
	ENDPOINT_JOBS,
	ENDPOINT_HISTORY,
	ENDPOINT_RECORDING,
	ENDPOINT_LINES,
};

/* Matches exact paths only. */
enum endpoint endpoint_find(const char *path);

/* The formats that a snapshot is rendered in. */
enum body_kind {
	BODY_TEXT,
	BODY_OPENMETRICS,
	BODY_PROTOBUF,
	BODY_SNAPSHOT,
	BODY_EVENTS, /* the same, and the events since the one before */
	BODY_JOBS,
	BODY_NR,
};

/*
 * Chooses the format of /metrics for an Accept header: the highest q, and the first range
 * among equals. A header without a supported format gets text, as scrapers expect.
 */
enum body_kind accept_choose(const char *accept);

/*
 * Whether a client with this Accept-Encoding header takes gzip, as every browser does. Without
 * the header, a client takes any encoding.
 */
bool accept_takes_gzip(const char *accept_encoding);

/* Parses a decimal integer. -EINVAL: not an integer. -ERANGE: out of the bounds. */
int number_parse(const char *text, u64 min, u64 max, u64 *ret);

#define INTERVAL_MIN_MS	    100
#define INTERVAL_MAX_MS	    60000
#define INTERVAL_DEFAULT_MS 1000

int interval_parse(const char *text, u32 *ret_ms);

/*
 * The origins whose web pages may send requests: this server, and the configured list.
 * `origin` and `host` are the headers; `scheme` is the scheme of this server.
 */
struct origins {
	const char *const *allowed;
	size_t nr;
};

/* True for exactly scheme://host[:port], as a browser writes it. */
bool origin_is_valid(const char *origin);
bool origin_is_allowed(const struct origins *origins, const char *origin, const char *scheme,
		       const char *host);

/*
 * Protects against DNS rebinding: an attacker can make the name of a page resolve to this
 * machine, and the browser then treats the page as same-origin. When the server has no
 * token and no client certificates, the Host header must be a name that an attacker cannot
 * own: an IP address, localhost, or a host of the list.
 */
bool host_is_known(const struct origins *origins, const char *host);
