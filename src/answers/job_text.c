/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "answers/job_text.h"
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

/* Appends a word and a name, unless the name is empty. */
static void add(struct job_text *to, const char *word, const char *name)
{
	size_t used = strlen(to->text);

	if (*name)
		snprintf(to->text + used, sizeof(to->text) - used, "%s%s%s", used ? ", " : "", word,
			 name);
}

struct job_text job_names_text(const struct snapshot_job *job)
{
	const struct job_names *names = &job->names;
	struct job_text ret = {};

	if (*names->pod)
		snprintf(ret.text, sizeof(ret.text), "%s/%s", names->namespace, names->pod);
	add(&ret, "container ", names->container_name);
	add(&ret, "claims the name ", names->claimed_name);
	add(&ret, *names->claimed_name ? "account " : "claims the account ",
	    names->claimed_account);
	add(&ret, "array ", names->claimed_array);
	return ret;
}

struct job_text job_describe(const struct snapshot_job *job, const char *user)
{
	struct job_text names = job_names_text(job), ret = {};

	if (job->uid != SNAPSHOT_UID_UNKNOWN)
		add(&ret, "user ", user);
	add(&ret, "", names.text);
	return ret;
}

struct job_text job_title(const struct snapshot_job *job)
{
	const struct job_names *names = &job->names;
	struct job_text ret;
	char number[16];

	if (*names->pod)
		snprintf(ret.text, sizeof(ret.text), "%s/%s", names->namespace, names->pod);
	else if (*names->claimed_name)
		snprintf(ret.text, sizeof(ret.text), "%s \"%s\"", job->name, names->claimed_name);
	else
		snprintf(ret.text, sizeof(ret.text), "%s", job->name);
	snprintf(number, sizeof(number), "%u", job->uid);
	if (job->uid != SNAPSHOT_UID_UNKNOWN)
		add(&ret, "user ", number);
	return ret;
}

void job_names_to_json(const struct snapshot_job *job, yyjson_mut_doc *doc, yyjson_mut_val *object)
{
	const struct {
		const char *key;
		const char *name;
	} names[] = {
		{ "namespace", job->names.namespace },
		{ "pod", job->names.pod },
		{ "container_name", job->names.container_name },
		{ "claimed_name", job->names.claimed_name },
		{ "claimed_account", job->names.claimed_account },
		{ "claimed_array", job->names.claimed_array },
	};

	if (job->uid != SNAPSHOT_UID_UNKNOWN)
		yyjson_mut_obj_add_uint(doc, object, "uid", job->uid);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (*names[i].name)
			yyjson_mut_obj_add_str(doc, object, names[i].key, names[i].name);
}
