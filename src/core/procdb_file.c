/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The file of the process database, little endian. All versions begin with the magic
 * `PDDB`, version u32, count u32. In version 3, a CRC-32C u32 follows, which covers the
 * whole file except this field. Then follow the entries of 88 bytes:
 *
 *	 0 executable u64	28 owner u32		56 deviation u64
 *	 8 comm 16		32 votes 3 x u32	64 wakeups u64
 *	24 role u8		44 observations u32	72 switches u64
 *	25 zero 3		48 average u64		80 last seen u64, s since the epoch
 *
 * A file of version 3 has exactly the length that follows from its count. Files of older
 * versions have no checksum and may be longer, because the reference implementation
 * accepts that. If a file claims an older version but would be valid as version 3, its
 * version field is damaged.
 */
#include "base/macros.h"
#include "core/procdb_format.h"
#include "core/procdb_index.h"

#include <errno.h>
#include <string.h>

#include "core/bytes.h"
#include "core/crc32c.h"

#define CHECKSUM_OFFSET PROCDB_HEADER_BYTES
#define V3_HEADER_BYTES 16
#define V3_ENTRY_BYTES	88

void procdb_put_header(u8 *file, u32 version, u32 count)
{
	memcpy(file, PROCDB_MAGIC, PROCDB_MAGIC_BYTES);
	put_u32(file + 4, version);
	put_u32(file + 8, count);
}

static u32 checksum_with(const u8 header[static PROCDB_HEADER_BYTES], const u8 *file, size_t size)
{
	struct crc32c_table table;
	u32 crc;

	crc32c_table_fill(&table);
	crc = crc32c_add(&table, ~0U, header, PROCDB_HEADER_BYTES);
	return ~crc32c_add(&table, crc, file + V3_HEADER_BYTES, size - V3_HEADER_BYTES);
}

u32 procdb_file_checksum(const void *file, size_t size)
{
	return checksum_with(file, file, size);
}

/* False if put_v3() cannot have written this entry. */
static bool get_v3(const u8 *at, struct procdb_profile *p)
{
	struct procdb_key normal;

	p->key.exe_id = get_u64(at);
	memcpy(p->key.comm, at + 8, COMM_LEN);
	p->key.role = at[24];
	memcpy(p->key.pad, at + 25, 3);
	p->owner = get_u32(at + 28);
	for (int i = 0; i < TIER_NR; i++)
		p->votes.nr[i] = get_u32(at + 32 + 4 * i);
	p->nr_observations = get_u32(at + 44);
	p->behaviour.runtime_avg_ns = get_u64(at + 48);
	p->behaviour.runtime_dev_ns = get_u64(at + 56);
	p->behaviour.wakeup_freq = get_u64(at + 64);
	p->behaviour.switch_rate = get_u64(at + 72);
	p->last_seen_s = get_u64(at + 80);

	normal = procdb_key_normalize(&p->key);
	return memcmp(&normal, &p->key, sizeof(normal)) == 0;
}

static void put_v3(u8 *at, const struct procdb_profile *p)
{
	put_u64(at, p->key.exe_id);
	memcpy(at + 8, p->key.comm, COMM_LEN);
	at[24] = p->key.role;
	memset(at + 25, 0, 3);
	put_u32(at + 28, p->owner);
	for (int i = 0; i < TIER_NR; i++)
		put_u32(at + 32 + 4 * i, p->votes.nr[i]);
	put_u32(at + 44, p->nr_observations);
	put_u64(at + 48, p->behaviour.runtime_avg_ns);
	put_u64(at + 56, p->behaviour.runtime_dev_ns);
	put_u64(at + 64, p->behaviour.wakeup_freq);
	put_u64(at + 72, p->behaviour.switch_rate);
	put_u64(at + 80, p->last_seen_s);
}

struct format {
	size_t header_bytes;
	size_t entry_bytes;
	bool has_checksum;
	bool (*get)(const u8 *at, struct procdb_profile *p);
};

static const struct format formats[PROCDB_VERSION_NEWEST + 1] = {
	[1] = { .header_bytes = PROCDB_HEADER_BYTES,
		.entry_bytes = PROCDB_V1_ENTRY_BYTES,
		.get = procdb_get_v1 },
	[2] = { .header_bytes = PROCDB_HEADER_BYTES,
		.entry_bytes = PROCDB_V2_ENTRY_BYTES,
		.get = procdb_get_v2 },
	[3] = { .header_bytes = V3_HEADER_BYTES,
		.entry_bytes = V3_ENTRY_BYTES,
		.has_checksum = true,
		.get = get_v3 },
};

size_t procdb_encoded_size(const struct procdb *db)
{
	return V3_HEADER_BYTES + V3_ENTRY_BYTES * procdb_summarize(db).nr_confident;
}

int procdb_encode(const struct procdb *db, void *buffer, size_t size, size_t *ret_size)
{
	const struct procdb_profile *p;
	size_t at = V3_HEADER_BYTES;
	u8 *file = buffer;
	u32 count = 0;

	if (size < V3_HEADER_BYTES)
		return -ENOBUFS;
	for (size_t i = 0; (p = procdb_at(db, i)); i++) {
		if (!procdb_profile_is_confident(p))
			continue;
		if (size - at < V3_ENTRY_BYTES)
			return -ENOBUFS;
		put_v3(file + at, p);
		at += V3_ENTRY_BYTES;
		count++;
	}
	procdb_put_header(file, PROCDB_VERSION_NEWEST, count);
	put_u32(file + CHECKSUM_OFFSET, procdb_file_checksum(file, at));
	*ret_size = at;
	return 0;
}

static u64 size_needed(const struct format *format, u32 count)
{
	return format->header_bytes + (u64)count * format->entry_bytes;
}

static bool is_sound_v3(const u8 *file, size_t size, u32 count)
{
	u8 header[PROCDB_HEADER_BYTES];

	if (size != size_needed(&formats[3], count))
		return false;
	procdb_put_header(header, 3, count);
	return get_u32(file + CHECKSUM_OFFSET) == checksum_with(header, file, size);
}

static enum procdb_defect check_size(const struct format *format, const u8 *file,
				     const struct procdb_report *r)
{
	if (r->size < r->size_needed)
		return PROCDB_FILE_TRUNCATED;
	if (r->size == r->size_needed)
		return PROCDB_FILE_SOUND;
	return !format->has_checksum && is_sound_v3(file, r->size, r->nr_entries)
		       ? PROCDB_FILE_FALSE_VERSION
		       : PROCDB_FILE_TRAILING;
}

static const u8 *entry_at(const struct format *format, const u8 *file, u32 i)
{
	return file + format->header_bytes + (size_t)i * format->entry_bytes;
}

static enum procdb_defect check_content(const struct format *format, const u8 *file,
					struct procdb_report *r)
{
	if (format->has_checksum &&
	    get_u32(file + CHECKSUM_OFFSET) != procdb_file_checksum(file, r->size))
		return PROCDB_FILE_BAD_CHECKSUM;
	for (u32 i = 0; i < r->nr_entries; i++) {
		struct procdb_profile ignored = {};

		if (!format->get(entry_at(format, file, i), &ignored)) {
			r->bad_entry = i;
			return PROCDB_FILE_BAD_ENTRY;
		}
	}
	return PROCDB_FILE_SOUND;
}

static bool is_usable(const struct format *format, enum procdb_defect defect)
{
	return defect == PROCDB_FILE_SOUND ||
	       (defect == PROCDB_FILE_TRAILING && !format->has_checksum);
}

/* Finds all defects before the first profile is restored. NULL if the file is not usable. */
static const struct format *check(const u8 *file, struct procdb_report *r)
{
	const struct format *format;
	enum procdb_defect content;

	r->defect = PROCDB_FILE_TOO_SHORT;
	if (r->size < PROCDB_HEADER_BYTES)
		return NULL;
	memcpy(r->magic, file, PROCDB_MAGIC_BYTES);
	r->defect = PROCDB_FILE_BAD_MAGIC;
	if (memcmp(file, PROCDB_MAGIC, PROCDB_MAGIC_BYTES) != 0)
		return NULL;
	r->version = get_u32(file + 4);
	r->defect = PROCDB_FILE_BAD_VERSION;
	if (r->version == 0 || r->version >= ARRAY_SIZE(formats))
		return NULL;
	format = &formats[r->version];
	r->nr_entries = get_u32(file + 8);
	r->size_needed = size_needed(format, r->nr_entries);
	r->defect = check_size(format, file, r);
	if (!is_usable(format, r->defect))
		return NULL;
	content = check_content(format, file, r);
	if (content != PROCDB_FILE_SOUND)
		r->defect = content;
	return is_usable(format, r->defect) ? format : NULL;
}

int procdb_decode(struct procdb *db, const void *file, size_t size, u64 now_s,
		  struct procdb_report *ret_report)
{
	const struct format *format;

	*ret_report = (struct procdb_report){ .size = size };
	format = check(file, ret_report);
	if (!format)
		return -EBADMSG;
	if (db->ticked)
		return -EBUSY;
	for (u32 i = 0; i < ret_report->nr_entries; i++) {
		struct procdb_profile p = {};
		int r;

		format->get(entry_at(format, file, i), &p);
		/* If a key occurs twice, the first entry stays. */
		r = procdb_restore(db, &p, now_s);
		if (r < 0 && r != -EEXIST)
			return r;
	}
	return 0;
}
