/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/request.h"
#include "base/macros.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define HOST_MAX 255

enum endpoint endpoint_find(const char *path)
{
	static const struct {
		const char *path;
		enum endpoint endpoint;
	} endpoints[] = {
		{ "/metrics", ENDPOINT_METRICS },
		{ "/api/v1/snapshot", ENDPOINT_SNAPSHOT },
		{ "/api/v1/why", ENDPOINT_WHY },
		{ "/api/v1/jobs", ENDPOINT_JOBS },
		{ "/api/v1/history", ENDPOINT_HISTORY },
		{ "/api/v1/recording", ENDPOINT_RECORDING },
		{ "/api/v1/lines", ENDPOINT_LINES },
		{ "/api/v1/health", ENDPOINT_HEALTH_DETAILS },
		{ "/ws", ENDPOINT_WS },
		{ "/healthz", ENDPOINT_HEALTH },
		{ "/readyz", ENDPOINT_READY },
	};

	for (size_t i = 0; i < ARRAY_SIZE(endpoints); i++)
		if (strcmp(endpoints[i].path, path) == 0)
			return endpoints[i].endpoint;
	return ENDPOINT_NONE;
}

int number_parse(const char *text, u64 min, u64 max, u64 *ret)
{
	u64 value = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		if (value > (max - (u64)(*text - '0')) / 10)
			return -ERANGE;
		value = value * 10 + (u64)(*text - '0');
	}
	if (value < min)
		return -ERANGE;
	*ret = value;
	return 0;
}

int interval_parse(const char *text, u32 *ret_ms)
{
	u64 value;
	int err = number_parse(text, INTERVAL_MIN_MS, INTERVAL_MAX_MS, &value);

	if (err == 0)
		*ret_ms = (u32)value;
	return err;
}

/* The part after "scheme://", or NULL when the text has no scheme. */
static const char *origin_host(const char *origin)
{
	const char *colon = strstr(origin, "://");

	return colon && colon > origin ? colon + 3 : NULL;
}

bool origin_is_valid(const char *origin)
{
	const char *host = origin_host(origin);

	if (!host || !*host)
		return false;
	for (const char *c = origin; *c; c++)
		if (*c <= ' ' || *c > '~' || strchr("?#@\\,", *c))
			return false;
	return !strchr(host, '/');
}

bool origin_is_allowed(const struct origins *origins, const char *origin, const char *scheme,
		       const char *host)
{
	size_t length = strlen(scheme);

	if (!origin_is_valid(origin))
		return false;
	if (strncasecmp(origin, scheme, length) == 0 && strncmp(origin + length, "://", 3) == 0 &&
	    strcasecmp(origin + length + 3, host) == 0)
		return true;
	for (size_t i = 0; i < origins->nr; i++)
		if (strcasecmp(origins->allowed[i], origin) == 0)
			return true;
	return false;
}

/* An IPv4 address, an IPv6 address in brackets, or localhost; each with or without a port. */
static bool host_is_local(const char *host)
{
	const char *end = *host == '[' ? strchr(host, ']') : host + strcspn(host, ":");
	char name[HOST_MAX + 1];
	struct in6_addr address;
	size_t length;

	if (!end || end - host > HOST_MAX)
		return false;
	length = (size_t)(end - host);
	memcpy(name, host, length);
	name[length] = '\0';
	end += *end == ']';
	if (*end && (*end != ':' || strspn(end + 1, "0123456789") != strlen(end + 1)))
		return false;
	if (name[0] == '[')
		return inet_pton(AF_INET6, name + 1, &address) == 1;
	return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &address) == 1;
}

bool host_is_known(const struct origins *origins, const char *host)
{
	if (host_is_local(host))
		return true;
	for (size_t i = 0; i < origins->nr; i++) {
		const char *allowed = origin_host(origins->allowed[i]);

		if (allowed && strcasecmp(allowed, host) == 0)
			return true;
	}
	return false;
}
