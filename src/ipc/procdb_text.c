/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ipc/procdb_text.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>
#include "base/cleanup.h"
#include "core/procdb_format.h"
#include "core/process.h"
#include "core/snapshot.h"

u32 procdb_text_sure(const struct procdb_profile *p)
{
	return tier_behaviour_permille(&p->votes, p->nr_observations, p->behaviour.runtime_avg_ns,
				       p->behaviour.runtime_dev_ns);
}

void procdb_text_executable(const struct procdb_profile *p, char text[static 17])
{
	text[0] = '\0';
	if (p->key.exe_id)
		snprintf(text, 17, "%016llx", p->key.exe_id);
}

static void text_bad_magic(const struct procdb_report *r, char *text, size_t size)
{
	snprintf(text, size, "the first four bytes are %02x %02x %02x %02x, not " PROCDB_MAGIC,
		 r->magic[0], r->magic[1], r->magic[2], r->magic[3]);
}

void procdb_text_defect(const struct procdb_report *r, char *text, size_t size)
{
	switch (r->defect) {
	case PROCDB_FILE_SOUND: snprintf(text, size, "the file is valid"); break;
	case PROCDB_FILE_TOO_SHORT:
		snprintf(text, size, "%llu bytes are too few: the header has %d", r->size,
			 PROCDB_HEADER_BYTES);
		break;
	case PROCDB_FILE_BAD_MAGIC: text_bad_magic(r, text, size); break;
	case PROCDB_FILE_BAD_VERSION:
		snprintf(text, size, "version %u is unknown, versions 1 to %d are known",
			 r->version, PROCDB_VERSION_NEWEST);
		break;
	case PROCDB_FILE_FALSE_VERSION:
		snprintf(text, size, "the header says version %u, the checksum says version %d",
			 r->version, PROCDB_VERSION_NEWEST);
		break;
	case PROCDB_FILE_TRUNCATED:
		snprintf(text, size, "%llu of %llu bytes are missing (%u entries of version %u)",
			 r->size_needed - r->size, r->size_needed, r->nr_entries, r->version);
		break;
	case PROCDB_FILE_TRAILING:
		snprintf(text, size, "%llu bytes follow the last of %u entries of version %u",
			 r->size - r->size_needed, r->nr_entries, r->version);
		break;
	case PROCDB_FILE_BAD_CHECKSUM:
		snprintf(text, size, "the checksum of the %llu bytes is wrong", r->size);
		break;
	case PROCDB_FILE_BAD_ENTRY:
		snprintf(text, size, "entry %u of %u is not valid", r->bad_entry + 1,
			 r->nr_entries);
		break;
	}
}

static void add_profile(yyjson_mut_doc *doc, yyjson_mut_val *array, const struct procdb_profile *p)
{
	yyjson_mut_val *o = yyjson_mut_arr_add_obj(doc, array), *votes;
	char executable[17], name[SNAPSHOT_COMM_LEN];

	procdb_text_executable(p, executable);
	/* A program chooses its own name, so the name can contain any bytes. */
	snapshot_set_text(name, sizeof(name), p->key.comm, sizeof(p->key.comm));
	yyjson_mut_obj_add_strcpy(doc, o, "name", name);
	if (*executable)
		yyjson_mut_obj_add_strcpy(doc, o, "executable", executable);
	else
		yyjson_mut_obj_add_null(doc, o, "executable");
	yyjson_mut_obj_add_str(doc, o, "role", role_label(p->key.role));
	yyjson_mut_obj_add_str(doc, o, "tier", tier_label(tier_dominant(&p->votes)));
	votes = yyjson_mut_obj_add_obj(doc, o, "votes");
	for (u32 tier = 0; tier < TIER_NR; tier++)
		yyjson_mut_obj_add_uint(doc, votes, tier_label(tier), p->votes.nr[tier]);
	yyjson_mut_obj_add_real(doc, o, "confidence", procdb_text_sure(p) / 1000.0);
	yyjson_mut_obj_add_real(doc, o, "tier_confidence",
				tier_confidence_permille(&p->votes) / 1000.0);
	yyjson_mut_obj_add_bool(doc, o, "predicted", procdb_profile_is_confident(p));
	yyjson_mut_obj_add_uint(doc, o, "observations", p->nr_observations);
	yyjson_mut_obj_add_uint(doc, o, "runtime_avg_ns", p->behaviour.runtime_avg_ns);
	yyjson_mut_obj_add_uint(doc, o, "runtime_dev_ns", p->behaviour.runtime_dev_ns);
	yyjson_mut_obj_add_uint(doc, o, "wakeups_per_s", p->behaviour.wakeup_freq);
	yyjson_mut_obj_add_uint(doc, o, "switches_per_s", p->behaviour.switch_rate);
	yyjson_mut_obj_add_uint(doc, o, "last_seen_s", p->last_seen_s);
	yyjson_mut_obj_add_uint(doc, o, "owner", p->owner);
}

static yyjson_mut_val *add_list(yyjson_mut_doc *doc, const struct procdb_list *list)
{
	yyjson_mut_val *root = yyjson_mut_obj(doc), *profiles;

	yyjson_mut_doc_set_root(doc, root);
	profiles = yyjson_mut_obj_add_arr(doc, root, "profiles");
	for (size_t i = 0; i < list->nr; i++)
		add_profile(doc, profiles, list->profiles[i]);
	return root;
}

int procdb_text_json(FILE *out, const struct procdb_list *list)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	CLEANUP_FREE char *text = NULL;

	add_list(doc, list);
	text = yyjson_mut_write(doc, YYJSON_WRITE_PRETTY, NULL);
	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	return fprintf(out, "%s\n", text) < 0 ? -EIO : 0;
}

int procdb_text_line(const struct procdb_list *list, size_t next, char **ret, size_t *ret_length)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = add_list(doc, list);
	char *text;

	if (next)
		yyjson_mut_obj_add_uint(doc, root, "next", next);
	else
		yyjson_mut_obj_add_null(doc, root, "next");
	text = yyjson_mut_write(doc, 0, ret_length);
	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}

static u64 number(yyjson_val *object, const char *name)
{
	return yyjson_get_uint(yyjson_obj_get(object, name));
}

bool procdb_text_profile(yyjson_val *object, struct procdb_profile *ret)
{
	const char *name = yyjson_get_str(yyjson_obj_get(object, "name"));
	const char *executable = yyjson_get_str(yyjson_obj_get(object, "executable"));
	yyjson_val *role = yyjson_obj_get(object, "role"), *votes = yyjson_obj_get(object, "votes");
	struct procdb_profile p = {
		.behaviour = { .runtime_avg_ns = number(object, "runtime_avg_ns"),
			       .runtime_dev_ns = number(object, "runtime_dev_ns"),
			       .wakeup_freq = number(object, "wakeups_per_s"),
			       .switch_rate = number(object, "switches_per_s") },
		.last_seen_s = number(object, "last_seen_s"),
		.nr_observations = (u32)number(object, "observations"),
		.owner = (u32)number(object, "owner"),
	};

	if (!name || !votes)
		return false;
	snprintf(p.key.comm, sizeof(p.key.comm), "%s", name);
	p.key.exe_id = executable ? strtoull(executable, NULL, 16) : 0;
	for (u32 i = 0; i < ROLE_NR; i++)
		if (yyjson_equals_str(role, role_label(i)))
			p.key.role = (u8)i;
	for (u32 tier = 0; tier < TIER_NR; tier++)
		p.votes.nr[tier] = (u32)number(votes, tier_label(tier));
	*ret = p;
	return true;
}

bool procdb_text_is_named(const struct procdb_profile *p, const char *name)
{
	char executable[17];

	if (!name || strncmp(p->key.comm, name, sizeof(p->key.comm)) == 0)
		return true;
	procdb_text_executable(p, executable);
	return *executable && strcmp(executable, name) == 0;
}
