/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/procdb_client.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/ask.h"

/* Number of profiles that fit into one request as a base64 image. */
#define BATCH_MAX 256

/* The parameters of one page request; the name is escaped for JSON. */
static char *page_params(const char *name, size_t from)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "from", from);
	if (name)
		yyjson_mut_obj_add_str(doc, root, "name", name);
	text = yyjson_mut_write(doc, 0, NULL);
	yyjson_mut_doc_free(doc);
	return text;
}

static int ask_page(struct client *client, const char *method, const char *name, size_t from,
		    struct client_data *ret)
{
	CLEANUP_FREE char *params = page_params(name, from);

	return params ? ask(client, method, params, ret) : -ENOMEM;
}

/* Start of the next page; 0 after the last page. */
static size_t next_page(yyjson_val *page)
{
	return yyjson_get_uint(yyjson_obj_get(page, "next"));
}

static int take_profiles(yyjson_val *page, struct procdb_copies *copies)
{
	yyjson_val *list = yyjson_obj_get(page, "profiles"), *each;
	size_t i, nr, total = copies->nr + yyjson_arr_size(list);
	struct procdb_profile *larger =
		reallocarray(copies->profiles, total + 1, sizeof(*copies->profiles));

	if (!larger)
		return -ENOMEM;
	copies->profiles = larger;
	yyjson_arr_foreach(list, i, nr, each) {
		if (procdb_text_profile(each, &copies->profiles[copies->nr]))
			copies->nr++;
	}
	return 0;
}

int procdb_client_list(struct client *client, const char *name, struct procdb_copies *ret)
{
	struct procdb_copies copies = {};
	size_t from = 0;
	int err;

	do {
		CLEANUP(client_data_done) struct client_data page = {};

		err = ask_page(client, name ? "procdb.show" : "procdb.list", name, from, &page);
		if (err == 0)
			err = take_profiles(page.value, &copies);
		from = err == 0 ? next_page(page.value) : 0;
	} while (from);
	if (err < 0)
		free(copies.profiles);
	else
		*ret = copies;
	return err;
}

static int take_image(yyjson_val *image, struct procdb *into, u64 now_s)
{
	struct procdb_report report = {};
	CLEANUP_FREE void *data = NULL;
	size_t size;
	int err = -EPROTO;

	if (yyjson_is_str(image))
		err = base64_decode(yyjson_get_str(image), yyjson_get_len(image), &data, &size);
	if (err == 0)
		err = procdb_decode(into, data, size, now_s, &report);
	if (err < 0)
		log_error("zerneld sent an invalid database: %s. Run: zernel doctor",
			  strerror(-err));
	return err;
}

int procdb_client_export(struct client *client, struct procdb *into, u64 now_s)
{
	size_t from = 0;
	int err;

	do {
		CLEANUP(client_data_done) struct client_data page = {};

		err = ask_page(client, "procdb.export", NULL, from, &page);
		if (err == 0)
			err = take_image(yyjson_obj_get(page.value, "image"), into, now_s);
		from = err == 0 ? next_page(page.value) : 0;
	} while (from);
	return err;
}

/* Sends all profiles of the batch in one request. */
static int import_batch(struct client *client, const struct procdb *batch, size_t *nr)
{
	size_t size = procdb_encoded_size(batch), length;
	CLEANUP_FREE char *image = malloc(size), *text = NULL, *params = NULL;
	CLEANUP(client_data_done) struct client_data answer = {};
	int err = image ? procdb_encode(batch, image, size, &size) : -ENOMEM;

	if (err < 0)
		return err;
	text = base64_encode(image, size, &length);
	if (!text || asprintf(&params, "{\"image\":\"%s\"}", text) < 0) {
		params = NULL;
		return -ENOMEM;
	}
	err = ask(client, "procdb.import", params, &answer);
	if (err < 0)
		return err;
	*nr += yyjson_get_uint(yyjson_obj_get(answer.value, "taken"));
	return 0;
}

int procdb_client_import(struct client *client, const struct procdb *from, size_t *ret_nr)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	const struct procdb_profile *p = NULL;
	size_t i = 0, nr = 0;
	int err;

	config.capacity = BATCH_MAX;
	do {
		CLEANUP(procdb_free_cleanup) struct procdb *batch = NULL;

		err = procdb_new(&config, &batch);
		for (size_t end = i + BATCH_MAX; err == 0 && i < end && (p = procdb_at(from, i));
		     i++)
			err = procdb_restore(batch, p, p->last_seen_s);
		if (err == 0)
			err = import_batch(client, batch, &nr);
	} while (err == 0 && procdb_at(from, i));
	if (err < 0)
		return err;
	*ret_nr = nr;
	return 0;
}

int procdb_client_forget(struct client *client, const char *name, size_t *ret_nr)
{
	CLEANUP_FREE char *params = name ? page_params(name, 0) : strdup("{\"all\":true}");
	CLEANUP(client_data_done) struct client_data answer = {};
	int err = params ? ask(client, "procdb.forget", params, &answer) : -ENOMEM;

	if (err < 0)
		return err;
	*ret_nr = yyjson_get_uint(yyjson_obj_get(answer.value, "forgotten"));
	return 0;
}
