/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a request asks for and whether it may come at all. Whoever is at the other
 * end wrote these bytes: nothing here trusts them, and nothing here does I/O.
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
};

/* Exact paths only. */
enum endpoint endpoint_find(const char *path);

/* What is rendered from a snapshot. */
enum body_kind {
	BODY_TEXT,
	BODY_OPENMETRICS,
	BODY_PROTOBUF,
	BODY_SNAPSHOT,
	BODY_NR,
};

/*
 * The format of /metrics for an Accept header: what has the highest q, of equals what
 * is named first. A header that names none of ours gets text, as scrapers expect.
 */
enum body_kind accept_choose(const char *accept);

#define INTERVAL_MIN_MS	    100
#define INTERVAL_MAX_MS	    60000
#define INTERVAL_DEFAULT_MS 1000

/* A whole number within the bounds, and nothing else; -EINVAL, -ERANGE. */
int interval_parse(const char *text, u32 *ret_ms);

/*
 * Which pages of a browser may ask: those of this very server, and those of the list.
 * `origin` and `host` are the headers, `scheme` is what this server speaks.
 */
struct origins {
	const char *const *allowed;
	size_t nr;
};

/* scheme://host[:port] and nothing more, as a browser writes it. */
bool origin_is_valid(const char *origin);
bool origin_is_allowed(const struct origins *origins, const char *origin, const char *scheme,
		       const char *host);

/*
 * A page that makes its own name resolve to this machine is "of this very server" in
 * the eyes of its browser. Where nothing else protects the server, its name has to
 * be one that no stranger can have: an address, localhost, or a host of the list.
 */
bool host_is_known(const struct origins *origins, const char *host);
