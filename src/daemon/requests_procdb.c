/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests about learned profiles. They use the database in memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/base64.h"
#include "base/cleanup.h"
#include "daemon/requests.h"
#include "ipc/procdb_text.h"

/* Maximum number of profiles in one reply: it is fast to build, and it also fits in a request. */
#define PAGE_MAX 256

/*
 * Gets a page of the profiles of `name`, or of all profiles if `name` is NULL. *ret_next is the
 * start of the next page, or 0.
 */
static size_t take_page(const struct procdb *db, const char *name, size_t from,
			const struct procdb_profile *page[static PAGE_MAX], size_t *ret_next)
{
	const struct procdb_profile *p;
	size_t nr = 0, i = from;

	for (; (p = procdb_at(db, i)) && nr < PAGE_MAX; i++)
		if (procdb_text_is_named(p, name))
			page[nr++] = p;
	*ret_next = p ? i : 0;
	return nr;
}

static void list_named(struct requests *r, yyjson_val *params, const char *name,
		       struct reply *reply)
{
	const struct procdb_profile *page[PAGE_MAX];
	size_t from = yyjson_get_uint(yyjson_obj_get(params, "from")), next, length = 0;
	struct procdb_list list = { .profiles = page };
	char *text = NULL;

	list.nr = take_page(learning_database(r->learning), name, from, page, &next);
	if (name && list.nr == 0 && from == 0)
		reply_refuse(reply, PROTOCOL_NOT_FOUND, "no learned profile of %.64s", name);
	else if (procdb_text_line(&list, next, &text, &length) < 0)
		reply_refuse(reply, PROTOCOL_FAILED, "out of memory");
	else
		reply_accept(reply, text, length);
}

void procdb_list(struct requests *r, yyjson_val *params, struct reply *reply)
{
	list_named(r, params, NULL, reply);
}

void procdb_show(struct requests *r, yyjson_val *params, struct reply *reply)
{
	const char *name = yyjson_get_str(yyjson_obj_get(params, "name"));

	if (name)
		list_named(r, params, name, reply);
	else
		reply_refuse(reply, PROTOCOL_INVALID, "name must be the name of a program");
}

/* Encodes a page of profiles as a separate database file in base64. */
static int encode(const struct procdb_profile *const *page, size_t nr, char **ret,
		  size_t *ret_length)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	CLEANUP(procdb_free_cleanup) struct procdb *db = NULL;
	CLEANUP_FREE void *image = NULL;
	size_t size;
	int err;

	config.capacity = PAGE_MAX;
	err = procdb_new(&config, &db);
	for (size_t i = 0; err == 0 && i < nr; i++)
		err = procdb_restore(db, page[i], (u64)time(NULL));
	if (err < 0)
		return err;
	size = procdb_encoded_size(db);
	image = malloc(size);
	err = image ? procdb_encode(db, image, size, &size) : -ENOMEM;
	if (err < 0)
		return err;
	*ret = base64_encode(image, size, ret_length);
	return *ret ? 0 : -ENOMEM;
}

void procdb_export(struct requests *r, yyjson_val *params, struct reply *reply)
{
	const struct procdb_profile *page[PAGE_MAX];
	size_t from = yyjson_get_uint(yyjson_obj_get(params, "from")), next, nr, image_length;
	CLEANUP_FREE char *image = NULL;
	char *text = NULL, next_text[24] = "null";
	int length;

	nr = take_page(learning_database(r->learning), NULL, from, page, &next);
	if (encode(page, nr, &image, &image_length) < 0) {
		reply_refuse(reply, PROTOCOL_FAILED, "out of memory");
		return;
	}
	if (next)
		snprintf(next_text, sizeof(next_text), "%zu", next);
	length = asprintf(&text, "{\"image\":\"%s\",\"next\":%s}", image, next_text);
	reply_accept(reply, length < 0 ? NULL : text, (size_t)length);
}

static void reply_number(struct reply *reply, const char *name, size_t nr)
{
	char *text = NULL;
	int length = asprintf(&text, "{\"%s\":%zu}", name, nr);

	reply_accept(reply, length < 0 ? NULL : text, (size_t)length);
}

/* Existing profiles are not changed. */
static void take_over(struct requests *r, const struct procdb *from, struct reply *reply)
{
	const struct procdb_profile *p;
	size_t nr = 0;

	for (size_t i = 0; (p = procdb_at(from, i)); i++) {
		int err = learning_import(r->learning, p);

		if (err == -ENOSPC) {
			reply_refuse(reply, PROTOCOL_FAILED,
				     "the database is full: %zu profiles were imported", nr);
			return;
		}
		nr += err == 0;
	}
	reply_number(reply, "taken", nr);
}

void procdb_import(struct requests *r, yyjson_val *params, struct reply *reply)
{
	yyjson_val *image = yyjson_obj_get(params, "image");
	CLEANUP(procdb_free_cleanup) struct procdb *from = NULL;
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	char why[PROCDB_DEFECT_TEXT_MAX];
	struct procdb_report report = {};
	CLEANUP_FREE void *data = NULL;
	size_t size;
	int err;

	if (!yyjson_is_str(image) ||
	    base64_decode(yyjson_get_str(image), yyjson_get_len(image), &data, &size) < 0) {
		reply_refuse(reply, PROTOCOL_INVALID, "image must be a database file in base64");
		return;
	}
	err = procdb_new(&config, &from);
	if (err == 0)
		err = procdb_decode(from, data, size, (u64)time(NULL), &report);
	if (err == 0) {
		take_over(r, from, reply);
	} else if (err == -EBADMSG) {
		procdb_text_defect(&report, why, sizeof(why));
		reply_refuse(reply, PROTOCOL_INVALID, "the image is invalid: %s", why);
	} else {
		reply_refuse(reply, PROTOCOL_FAILED, "%s", strerror(-err));
	}
}

void procdb_forget_named(struct requests *r, yyjson_val *params, struct reply *reply)
{
	const char *name = yyjson_get_str(yyjson_obj_get(params, "name"));
	const struct procdb *db = learning_database(r->learning);
	bool all = yyjson_is_true(yyjson_obj_get(params, "all"));
	size_t nr = 0;

	if (all == (name != NULL)) {
		reply_refuse(reply, PROTOCOL_INVALID, "set either name or all=true");
		return;
	}
	/* Goes backwards, because the last profile takes the place of a deleted one. */
	for (size_t i = procdb_summarize(db).nr_profiles; i-- > 0;) {
		const struct procdb_profile *p = procdb_at(db, i);
		struct procdb_key key = p->key;

		if (procdb_text_is_named(p, name))
			nr += learning_forget(r->learning, &key) == 0;
	}
	if (nr == 0)
		reply_refuse(reply, PROTOCOL_NOT_FOUND, "no learned profile matches");
	else
		reply_number(reply, "forgotten", nr);
}
