/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/job_names.h"
#include <string.h>
#include "base/macros.h"

#define ID_LEN (JOB_CONTAINER_LEN - 1)
#define SUFFIX ".log"
/* The characters of a DNS subdomain, of which pods, namespaces and containers are named. */
#define DNS    "abcdefghijklmnopqrstuvwxyz0123456789.-"

/* Copies the part up to `end`. False: it is empty, too long, or has other characters. */
static bool take_part(const char *begin, const char *end, char *ret, size_t size)
{
	size_t length = (size_t)(end - begin);

	if (length == 0 || length >= size || strspn(begin, DNS) < length)
		return false;
	memcpy(ret, begin, length);
	ret[length] = '\0';
	return true;
}

bool job_names_of_log(const char *file, const char *id, struct job_names *ret)
{
	size_t length = strlen(file), tail = 1 + ID_LEN + strlen(SUFFIX);
	const char *end, *namespace, *container;
	struct job_names names = *ret;

	if (length <= tail || strlen(id) != ID_LEN)
		return false;
	end = file + length - tail;
	if (*end != '-' || memcmp(end + 1, id, ID_LEN) != 0 ||
	    strcmp(end + 1 + ID_LEN, SUFFIX) != 0)
		return false;
	namespace = memchr(file, '_', (size_t)(end - file));
	container = namespace ? memchr(namespace + 1, '_', (size_t)(end - namespace - 1)) : NULL;
	if (!container || !take_part(file, namespace, names.pod, sizeof(names.pod)) ||
	    !take_part(namespace + 1, container, names.namespace, sizeof(names.namespace)) ||
	    !take_part(container + 1, end, names.container_name, sizeof(names.container_name)))
		return false;
	*ret = names;
	return true;
}

/* The value of a variable, or NULL. */
static const char *find(const char *environment, size_t size, const char *variable)
{
	size_t length = strlen(variable);

	for (size_t at = 0; at < size; at += strlen(environment + at) + 1)
		if (strncmp(environment + at, variable, length) == 0)
			return environment + at + length;
	return NULL;
}

static bool is_printable(char c)
{
	return c >= ' ' && c <= '~';
}

/* Appends a claim as far as it fits. */
static void append(char *to, size_t size, const char *claim)
{
	size_t used = strlen(to);

	for (; *claim && used + 1 < size; claim++)
		to[used++] = is_printable(*claim) ? *claim : '?';
	to[used] = '\0';
}

static void set(char *to, size_t size, const char *claim)
{
	*to = '\0';
	if (claim)
		append(to, size, claim);
}

void job_names_of_environment(const char *environment, size_t size, struct job_names *ret)
{
	const char *array = find(environment, size, "SLURM_ARRAY_JOB_ID=");
	const char *task = find(environment, size, "SLURM_ARRAY_TASK_ID=");

	set(ret->claimed_name, sizeof(ret->claimed_name),
	    find(environment, size, "SLURM_JOB_NAME="));
	set(ret->claimed_account, sizeof(ret->claimed_account),
	    find(environment, size, "SLURM_JOB_ACCOUNT="));
	set(ret->claimed_array, sizeof(ret->claimed_array), task ? array : NULL);
	if (!*ret->claimed_array)
		return;
	append(ret->claimed_array, sizeof(ret->claimed_array), "_");
	append(ret->claimed_array, sizeof(ret->claimed_array), task);
}

static bool consists_of_dns(const char *name, size_t size)
{
	return memchr(name, '\0', size) && !name[strspn(name, DNS)];
}

static bool claim_is_valid(const char *claim, size_t size)
{
	if (!memchr(claim, '\0', size))
		return false;
	while (is_printable(*claim))
		claim++;
	return !*claim;
}

bool job_names_are_valid(const struct job_names *names)
{
	return consists_of_dns(names->pod, sizeof(names->pod)) &&
	       consists_of_dns(names->namespace, sizeof(names->namespace)) &&
	       consists_of_dns(names->container_name, sizeof(names->container_name)) &&
	       claim_is_valid(names->claimed_name, sizeof(names->claimed_name)) &&
	       claim_is_valid(names->claimed_account, sizeof(names->claimed_account)) &&
	       claim_is_valid(names->claimed_array, sizeof(names->claimed_array));
}

bool job_names_are_missing(u32 kind, const struct job_names *names)
{
	return (kind == JOB_POD && !*names->pod) || (kind == JOB_SLURM && !*names->claimed_name);
}
