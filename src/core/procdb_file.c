/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The file of the process database, little endian. All versions begin with
 * magic `PDDB`, version u32, count u32. Version 3 goes on with a CRC-32C u32 over
 * the whole file but this field, then entries of 88 bytes:
 *
 *	 0 executable u64	28 owner u32		56 deviation u64
 *	 8 comm 16		32 votes 3 x u32	64 wakeups u64
 *	24 role u8		44 observations u32	72 switches u64
 *	25 zero 3		48 average u64		80 last seen u64, s since the epoch
 *
 * A file must have exactly the length its count calls for. That is also what
 * keeps a version 3 file whose version field was damaged from being read as one
 * of the older versions, which have no checksum.
 */
#include "base/macros.h"
#include "core/procdb_index.h"

#include <errno.h>
#include <string.h>

#include "core/bytes.h"
#include "core/crc32c.h"

#define VERSION_NEWEST	    3
#define COMMON_HEADER_BYTES 12
#define CHECKSUM_OFFSET	    12
#define V3_HEADER_BYTES	    16
#define V3_ENTRY_BYTES	    88

/*
 * Versions 1 and 2 hold the votes of the winning tier only, so a profile from
 * them looks unanimous. With no more than these votes six contrary observations
 * are enough to take its prediction back.
 */
#define IMPORTED_VOTES_MAX 8

static const u8 magic[4] = { 'P', 'D', 'D', 'B' };

u32 procdb_file_checksum(const void *file, size_t size)
{
	const u8 *bytes = file;
	struct crc32c_table table;
	u32 crc;

	crc32c_table_fill(&table);
	crc = crc32c_add(&table, ~0U, bytes, CHECKSUM_OFFSET);
	return ~crc32c_add(&table, crc, bytes + V3_HEADER_BYTES, size - V3_HEADER_BYTES);
}

/* Both old versions: the fields before the averages are the same. */
static void get_imported(const u8 *at, u32 nr_observations, u32 votes, struct procdb_profile *p)
{
	memcpy(p->key.comm, at, COMM_LEN);
	p->key = procdb_key_normalize(&p->key);
	p->votes.nr[tier_of(at[16])] = votes < IMPORTED_VOTES_MAX ? votes : IMPORTED_VOTES_MAX;
	p->nr_observations = nr_observations;
	p->behaviour.runtime_avg_ns = get_u64(at + 24);
	/* The age is not in the file: it counts as seen when it is imported. */
	p->last_seen_s = ~0ULL;
}

static bool get_v1(const u8 *at, struct procdb_profile *p)
{
	get_imported(at, get_u32(at + 32), get_u32(at + 36), p);
	return true;
}

static bool get_v2(const u8 *at, struct procdb_profile *p)
{
	get_imported(at, get_u32(at + 56), get_u32(at + 60), p);
	p->behaviour.runtime_dev_ns = get_u64(at + 32);
	p->behaviour.wakeup_freq = get_u64(at + 40);
	p->behaviour.switch_rate = get_u64(at + 48);
	return true;
}

/* False for an entry that put_v3() cannot have written. */
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

static const struct format formats[] = {
	[1] = { .header_bytes = COMMON_HEADER_BYTES, .entry_bytes = 40, .get = get_v1 },
	[2] = { .header_bytes = COMMON_HEADER_BYTES, .entry_bytes = 64, .get = get_v2 },
	[3] = { .header_bytes = V3_HEADER_BYTES,
		.entry_bytes = V3_ENTRY_BYTES,
		.has_checksum = true,
		.get = get_v3 },
};

static const char *const defect_texts[PROCDB_FILE_NR_DEFECTS] = {
	[PROCDB_FILE_SOUND] = "sound",
	[PROCDB_FILE_TOO_SHORT] = "too short for a process database",
	[PROCDB_FILE_BAD_MAGIC] = "not a process database",
	[PROCDB_FILE_BAD_VERSION] = "of a version this program does not know",
	[PROCDB_FILE_TRUNCATED] = "truncated",
	[PROCDB_FILE_TRAILING] = "longer than its entries",
	[PROCDB_FILE_BAD_CHECKSUM] = "damaged (wrong checksum)",
	[PROCDB_FILE_BAD_ENTRY] = "damaged (impossible entry)",
};

const char *procdb_defect_text(enum procdb_defect defect)
{
	return (unsigned int)defect < PROCDB_FILE_NR_DEFECTS ? defect_texts[defect] : "unknown";
}

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
	memcpy(file, magic, sizeof(magic));
	put_u32(file + 4, VERSION_NEWEST);
	put_u32(file + 8, count);
	put_u32(file + CHECKSUM_OFFSET, procdb_file_checksum(file, at));
	*ret_size = at;
	return 0;
}

/* Everything that can be wrong is found before the first profile is taken over. */
static enum procdb_defect file_check(const u8 *file, size_t size, const struct format **ret_format)
{
	const struct format *format;
	u32 version, count;
	u64 expected;

	if (size < COMMON_HEADER_BYTES)
		return PROCDB_FILE_TOO_SHORT;
	if (memcmp(file, magic, sizeof(magic)) != 0)
		return PROCDB_FILE_BAD_MAGIC;
	version = get_u32(file + 4);
	if (version == 0 || version >= ARRAY_SIZE(formats))
		return PROCDB_FILE_BAD_VERSION;
	format = &formats[version];
	count = get_u32(file + 8);
	expected = format->header_bytes + (u64)count * format->entry_bytes;
	if (size < expected)
		return PROCDB_FILE_TRUNCATED;
	if (size > expected)
		return PROCDB_FILE_TRAILING;
	if (format->has_checksum &&
	    get_u32(file + CHECKSUM_OFFSET) != procdb_file_checksum(file, size))
		return PROCDB_FILE_BAD_CHECKSUM;
	for (u32 i = 0; i < count; i++) {
		struct procdb_profile ignored = {};

		if (!format->get(file + format->header_bytes + i * format->entry_bytes, &ignored))
			return PROCDB_FILE_BAD_ENTRY;
	}
	*ret_format = format;
	return PROCDB_FILE_SOUND;
}

int procdb_decode(struct procdb *db, const void *file, size_t size, u64 now_s,
		  enum procdb_defect *ret_defect)
{
	const struct format *format = NULL;
	const u8 *bytes = file;

	*ret_defect = file_check(bytes, size, &format);
	if (*ret_defect != PROCDB_FILE_SOUND)
		return -EBADMSG;
	if (db->ticked)
		return -EBUSY;
	for (size_t at = format->header_bytes; at < size; at += format->entry_bytes) {
		struct procdb_profile p = {};
		int r;

		format->get(bytes + at, &p);
		/* A key that is there twice: the first one stays. */
		r = procdb_restore(db, &p, now_s);
		if (r < 0 && r != -EEXIST)
			return r;
	}
	return 0;
}
