/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/ended.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "answers/why.h"
#include "base/cleanup.h"

int ended_answers_get(struct ended_answers *answers, const char *who, struct body **ret)
{
	for (u32 i = 0; i < ENDED_ANSWERS_MAX && i < answers->nr_added; i++) {
		const struct ended_answer *row = &answers->rows[i];

		if (strcmp(row->who, who) != 0)
			continue;
		if (!row->body)
			return -ENOENT;
		*ret = body_ref(row->body);
		return 0;
	}
	return -EAGAIN;
}

static int render(struct snapshot *ended, struct body **ret)
{
	CLEANUP(snapshot_free_cleanup) struct snapshot *before = NULL;
	CLEANUP(why_free_cleanup) struct why *why = NULL;
	CLEANUP_FREE char *text = NULL;
	size_t length;
	int err = why_ended_span(ended, &before);

	if (err == 0)
		err = why_new(before, ended, NULL, &why);
	if (err == 0)
		err = why_to_json(why, &text, &length);
	if (err < 0)
		return err;
	*ret = body_new(text, length);
	return *ret ? 0 : -ENOMEM;
}

int ended_answers_add(struct ended_answers *answers, const char *who, struct snapshot *ended)
{
	struct ended_answer *row = &answers->rows[answers->nr_added % ENDED_ANSWERS_MAX];
	struct body *body = NULL;
	int err = ended ? render(ended, &body) : 0;

	if (err < 0)
		return err;
	body_unref(row->body);
	row->body = body;
	snprintf(row->who, sizeof(row->who), "%s", who);
	answers->nr_added++;
	return 0;
}

void ended_answers_clear(struct ended_answers *answers)
{
	for (u32 i = 0; i < ENDED_ANSWERS_MAX; i++)
		body_unref(answers->rows[i].body);
	*answers = (struct ended_answers){};
}
