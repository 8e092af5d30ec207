/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Versions 1 and 2 of the file are those of the reference implementation. Its profiles have
 * a name but no executable. Its votes are only those of the dominant tier. Its rates have a
 * different unit.
 */
#include "core/procdb_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"

/*
 * The file contains only the votes of the dominant tier, so an imported profile looks
 * unanimous. With at most this many votes, six contrary observations are enough to
 * withdraw its prediction.
 */
#define IMPORTED_VOTES_MAX 8

/*
 * The reference implementation counts per 100 ms, Zernel counts per second. The scheduler
 * of the reference limits its rates to these maxima, so Zernel writes no higher rates.
 */
#define PERIODS_PER_S	10
#define WAKEUPS_V2_MAX	64
#define SWITCHES_V2_MAX 512

static u64 rate_from_v2(u64 per_period)
{
	return per_period < ~0ULL / PERIODS_PER_S ? per_period * PERIODS_PER_S : ~0ULL;
}

static u64 rate_to_v2(u64 per_s, u64 max)
{
	u64 per_period = per_s / PERIODS_PER_S + (per_s % PERIODS_PER_S >= PERIODS_PER_S / 2);

	return per_period < max ? per_period : max;
}

/* Reads the fields before the deviation, which are the same in both versions. */
static void get_imported(const u8 *at, u32 nr_observations, u32 votes, struct procdb_profile *p)
{
	memcpy(p->key.comm, at, COMM_LEN);
	p->key = procdb_key_normalize(&p->key);
	p->votes.nr[tier_of(at[16])] = votes < IMPORTED_VOTES_MAX ? votes : IMPORTED_VOTES_MAX;
	p->nr_observations = nr_observations;
	p->behaviour.runtime_avg_ns = get_u64(at + 24);
	/* The file has no last-seen time. The profile counts as seen at the import. */
	p->last_seen_s = ~0ULL;
}

bool procdb_get_v1(const u8 *at, struct procdb_profile *p)
{
	get_imported(at, get_u32(at + 32), get_u32(at + 36), p);
	return true;
}

bool procdb_get_v2(const u8 *at, struct procdb_profile *p)
{
	get_imported(at, get_u32(at + 56), get_u32(at + 60), p);
	p->behaviour.runtime_dev_ns = get_u64(at + 32);
	p->behaviour.wakeup_freq = rate_from_v2(get_u64(at + 40));
	p->behaviour.switch_rate = rate_from_v2(get_u64(at + 48));
	return true;
}

static void put_v2(u8 *at, const struct procdb_profile *p)
{
	memcpy(at, p->key.comm, COMM_LEN);
	at[16] = (u8)tier_dominant(&p->votes);
	memset(at + 17, 0, 7);
	put_u64(at + 24, p->behaviour.runtime_avg_ns);
	put_u64(at + 32, p->behaviour.runtime_dev_ns);
	put_u64(at + 40, rate_to_v2(p->behaviour.wakeup_freq, WAKEUPS_V2_MAX));
	put_u64(at + 48, rate_to_v2(p->behaviour.switch_rate, SWITCHES_V2_MAX));
	put_u32(at + 56, p->nr_observations);
	put_u32(at + 60, tier_votes_total(&p->votes));
}

/* By name, then most observations first. The rest of the key only makes the order definite. */
static int compare(const void *a, const void *b)
{
	const struct procdb_profile *x = *(const struct procdb_profile *const *)a;
	const struct procdb_profile *y = *(const struct procdb_profile *const *)b;
	int order = memcmp(x->key.comm, y->key.comm, COMM_LEN);

	if (order)
		return order;
	if (x->nr_observations != y->nr_observations)
		return x->nr_observations < y->nr_observations ? 1 : -1;
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

/* Moves one profile per name, in order, to the start of the list. Returns their number. */
static u32 keep_first_of_each_name(const struct procdb_profile **list, size_t nr)
{
	u32 nr_kept = 0;

	qsort(list, nr, sizeof(const struct procdb_profile *), compare);
	for (size_t i = 0; i < nr; i++)
		if (nr_kept == 0 ||
		    memcmp(list[nr_kept - 1]->key.comm, list[i]->key.comm, COMM_LEN) != 0)
			list[nr_kept++] = list[i];
	return nr_kept;
}

int procdb_encode_v2(const struct procdb *db, void **ret_file, size_t *ret_size, size_t *ret_nr)
{
	const struct procdb_profile **list, *p;
	size_t nr = 0, size;
	u32 count;
	u8 *file;

	list = calloc(procdb_summarize(db).nr_confident + 1, sizeof(const struct procdb_profile *));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; (p = procdb_at(db, i)); i++)
		if (procdb_profile_is_confident(p))
			list[nr++] = p;
	count = keep_first_of_each_name(list, nr);
	size = PROCDB_HEADER_BYTES + (size_t)count * PROCDB_V2_ENTRY_BYTES;
	file = malloc(size);
	if (file) {
		procdb_put_header(file, 2, count);
		for (u32 i = 0; i < count; i++)
			put_v2(file + PROCDB_HEADER_BYTES + i * PROCDB_V2_ENTRY_BYTES, list[i]);
		*ret_file = file;
		*ret_size = size;
		*ret_nr = count;
	}
	free(list);
	return file ? 0 : -ENOMEM;
}
