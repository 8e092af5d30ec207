/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parses the headers Accept and Accept-Encoding: ranges with parameters. The gateway supports
 * only some of them.
 */
#include <string.h>
#include <strings.h>
#include "serve/request.h"

#define Q_ONE 1000

/* A piece of the header. */
struct span {
	const char *start;
	size_t length;
};

/* One media range, with the parameters that the gateway uses. */
struct range {
	struct span type;
	struct span version;
	struct span proto;
	struct span encoding;
	u32 q; /* per mille */
};

static struct span trim(struct span span)
{
	while (span.length && strchr(" \t", *span.start)) {
		span.start++;
		span.length--;
	}
	while (span.length && strchr(" \t", span.start[span.length - 1]))
		span.length--;
	return span;
}

/* Removes the text before the next `separator` from the front of `rest` and returns it. */
static struct span take(struct span *rest, char separator)
{
	const char *end = memchr(rest->start, separator, rest->length);
	struct span taken = { rest->start, end ? (size_t)(end - rest->start) : rest->length };
	size_t used = taken.length + (end ? 1 : 0);

	rest->start += used;
	rest->length -= used;
	return trim(taken);
}

static bool is(struct span span, const char *text)
{
	return span.length == strlen(text) && strncasecmp(span.start, text, span.length) == 0;
}

/* Parses a number such as "0.5". An invalid number is 0, so that its range is never chosen. */
static u32 parse_q(struct span text)
{
	u32 value = 0, digit = Q_ONE;

	for (size_t i = 0; i < text.length; i++) {
		char c = text.start[i];

		if (i == 1 ? c != '.' : (c < '0' || c > '9'))
			return 0;
		if (i == 1)
			continue;
		value += (u32)(c - '0') * digit;
		digit /= 10;
	}
	return value < Q_ONE ? value : Q_ONE;
}

static struct range parse_range(struct span text)
{
	struct range range = { .q = Q_ONE };

	range.type = take(&text, ';');
	while (text.length) {
		struct span value = take(&text, ';');
		struct span name = take(&value, '=');

		value = trim(value);
		if (is(name, "q"))
			range.q = parse_q(value);
		else if (is(name, "version"))
			range.version = value;
		else if (is(name, "proto"))
			range.proto = value;
		else if (is(name, "encoding"))
			range.encoding = value;
	}
	return range;
}

/* The format of a range, or BODY_NR when the gateway does not support it. */
static enum body_kind range_kind(const struct range *range)
{
	if (is(range->type, "application/vnd.google.protobuf"))
		return is(range->proto, "io.prometheus.client.MetricFamily") &&
				       is(range->encoding, "delimited")
			       ? BODY_PROTOBUF
			       : BODY_NR;
	if (is(range->type, "application/openmetrics-text"))
		return !range->version.length || is(range->version, "1.0.0") ? BODY_OPENMETRICS
									     : BODY_NR;
	if (is(range->type, "text/plain"))
		return !range->version.length || is(range->version, "0.0.4") ? BODY_TEXT : BODY_NR;
	return is(range->type, "*/*") || is(range->type, "text/*") ? BODY_TEXT : BODY_NR;
}

enum body_kind accept_choose(const char *accept)
{
	struct span rest = { accept, strlen(accept) };
	enum body_kind best = BODY_TEXT;
	u32 best_q = 0;

	while (rest.length) {
		struct range range = parse_range(take(&rest, ','));
		enum body_kind kind = range_kind(&range);

		if (kind != BODY_NR && range.q > best_q) {
			best = kind;
			best_q = range.q;
		}
	}
	return best;
}

bool accept_takes_gzip(const char *accept_encoding)
{
	struct span rest = { accept_encoding, strlen(accept_encoding) };
	bool others = rest.length == 0;

	while (rest.length) {
		struct range range = parse_range(take(&rest, ','));

		if (is(range.type, "gzip") || is(range.type, "x-gzip"))
			return range.q > 0;
		if (is(range.type, "*"))
			others = range.q > 0;
	}
	return others;
}
