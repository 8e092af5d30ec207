/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/scan_queue.h"

#define BUCKETS	    SCAN_QUEUE_ROWS
#define NONE	    0xffffffffU
/* Slow processes that are remembered. */
#define RESTING_MAX 256
/* What a row counts for before the duration of its scan is known. */
#define ROW_NS	    NSEC_PER_MSEC

/* Indices instead of pointers; a row is in one list. */
struct list {
	u32 first, last;
};

struct node {
	struct scan_row row;
	u32 next;	/* in its list */
	u32 next_alike; /* with the same hash */
	bool is_wanted; /* and not: it only rests */
	u64 rests_until_ns;
};

struct owner {
	struct tenant tenant;
	struct list rows;
	u32 nr_rows;
	u64 used_ns; /* by its scans; an owner without rows gains nothing by waiting */
	u64 window_ns;
	struct scan_cost used; /* since then */
	u64 paused_until_ns;
	u64 blamed_ns; /* the last time */
	u32 nr_stuck;
	u64 nr_refused;
};

struct scan_queue {
	struct node nodes[SCAN_QUEUE_ROWS];
	u32 buckets[BUCKETS];
	struct list unused;
	struct list unowned;
	u32 resting[RESTING_MAX];
	u32 nr_resting;
	struct owner owners[SCAN_QUEUE_OWNERS];
	u32 nr_owners;
	u64 clock_ns; /* used_ns of the owner that was next */
	u64 nr_lost;  /* refused without an owner, or to owners that were replaced */
};

static void list_push(struct scan_queue *q, struct list *list, u32 at)
{
	q->nodes[at].next = NONE;
	if (list->first == NONE)
		list->first = at;
	else
		q->nodes[list->last].next = at;
	list->last = at;
}

static u32 list_pop(struct scan_queue *q, struct list *list)
{
	u32 at = list->first;

	if (at != NONE)
		list->first = q->nodes[at].next;
	return at;
}

static u32 bucket_of(pid_t pid, u32 kind)
{
	return ((u32)pid * 4 + kind) * 2654435761U % BUCKETS;
}

static u32 find(const struct scan_queue *q, pid_t pid, u32 kind)
{
	u32 at = q->buckets[bucket_of(pid, kind)];

	while (at != NONE && (q->nodes[at].row.pid != pid || q->nodes[at].row.kind != kind))
		at = q->nodes[at].next_alike;
	return at;
}

static u32 insert(struct scan_queue *q, const struct scan_row *row)
{
	u32 *bucket = &q->buckets[bucket_of(row->pid, row->kind)];
	u32 at = list_pop(q, &q->unused);

	if (at == NONE)
		return NONE;
	q->nodes[at] = (struct node){ .row = *row, .next_alike = *bucket };
	*bucket = at;
	return at;
}

static void discard(struct scan_queue *q, u32 at)
{
	const struct scan_row *row = &q->nodes[at].row;
	u32 *link = &q->buckets[bucket_of(row->pid, row->kind)];

	while (*link != at)
		link = &q->nodes[*link].next_alike;
	*link = q->nodes[at].next_alike;
	list_push(q, &q->unused, at);
}

/* A place for a new owner: an unused one, or else that of an owner who has nothing to wait for. */
static struct owner *free_owner(struct scan_queue *q)
{
	struct owner *idle = NULL;

	if (q->nr_owners < SCAN_QUEUE_OWNERS)
		return &q->owners[q->nr_owners++];
	for (u32 i = 0; i < SCAN_QUEUE_OWNERS; i++) {
		struct owner *owner = &q->owners[i];

		if (!owner->nr_rows && !owner->nr_stuck && !owner->used.nr_files &&
		    !owner->paused_until_ns && (!idle || owner->nr_refused < idle->nr_refused))
			idle = owner;
	}
	return idle;
}

/* If all places are in use, owners share one. */
static struct owner *owner_of(struct scan_queue *q, const struct tenant *tenant)
{
	struct owner *owner;

	for (u32 i = 0; i < q->nr_owners; i++)
		if (tenant_is_same(&q->owners[i].tenant, tenant))
			return &q->owners[i];
	owner = free_owner(q);
	if (!owner)
		return &q->owners[(tenant->uid + tenant->group) % SCAN_QUEUE_OWNERS];
	q->nr_lost += owner->nr_refused;
	*owner = (struct owner){ .tenant = *tenant, .rows = { NONE, NONE } };
	return owner;
}

static void give(struct scan_queue *q, u32 at)
{
	struct owner *owner = owner_of(q, &q->nodes[at].row.owner);

	if (owner->nr_rows >= TENANT_SHARE(SCAN_QUEUE_ROWS)) {
		owner->nr_refused++;
		discard(q, at);
		return;
	}
	if (!owner->nr_rows++ && owner->used_ns < q->clock_ns)
		owner->used_ns = q->clock_ns;
	list_push(q, &owner->rows, at);
}

/* A row that waits for its owner keeps its place, and the owner is not asked for again. */
static void add_again(struct node *node, const struct scan_row *row)
{
	node->is_wanted = true;
	if (!row->has_owner)
		return;
	node->row.has_owner = true;
	node->row.owner = row->owner;
}

void scan_queue_add(struct scan_queue *q, const struct scan_row *row)
{
	u32 at = find(q, row->pid, row->kind);

	if (at != NONE) {
		add_again(&q->nodes[at], row);
		return;
	}
	at = insert(q, row);
	if (at == NONE) {
		q->nr_lost++;
		return;
	}
	q->nodes[at].is_wanted = true;
	if (row->has_owner)
		give(q, at);
	else
		list_push(q, &q->unowned, at);
}

bool scan_queue_has(const struct scan_queue *q, pid_t pid, u32 kind)
{
	u32 at = find(q, pid, kind);

	return at != NONE && q->nodes[at].is_wanted;
}

static void wake_rested(struct scan_queue *q, u64 now_ns)
{
	for (u32 i = 0; i < q->nr_resting;) {
		u32 at = q->resting[i];

		if (now_ns < q->nodes[at].rests_until_ns) {
			i++;
			continue;
		}
		q->resting[i] = q->resting[--q->nr_resting];
		if (q->nodes[at].is_wanted)
			give(q, at);
		else
			discard(q, at);
	}
}

static struct owner *next_owner(struct scan_queue *q, u64 now_ns)
{
	struct owner *next = NULL;

	for (u32 i = 0; i < q->nr_owners; i++) {
		struct owner *owner = &q->owners[i];

		if (now_ns >= owner->window_ns + SCAN_QUEUE_WINDOW_NS)
			owner->used = (struct scan_cost){};
		if (now_ns >= owner->paused_until_ns)
			owner->paused_until_ns = 0;
		if (owner->nr_rows && owner->nr_stuck < SCAN_QUEUE_STUCK &&
		    !owner->paused_until_ns && (!next || owner->used_ns < next->used_ns))
			next = owner;
	}
	return next;
}

static struct scan_row take(struct scan_queue *q, u32 at)
{
	struct scan_row row = q->nodes[at].row;

	discard(q, at);
	return row;
}

/* Half of the room at most, so that many new processes do not keep known ones from being scanned.
 */
static u32 take_unowned(struct scan_queue *q, struct scan_row *ret, u32 max)
{
	u32 nr = 0, at;

	while (nr < max && (at = list_pop(q, &q->unowned)) != NONE)
		if (q->nodes[at].row.has_owner)
			give(q, at);
		else
			ret[nr++] = take(q, at);
	return nr;
}

u32 scan_queue_take(struct scan_queue *q, u64 now_ns, struct scan_row *ret, u32 max)
{
	u32 nr = take_unowned(q, ret, max / 2);
	struct owner *owner;

	wake_rested(q, now_ns);
	while (nr < max && (owner = next_owner(q, now_ns))) {
		q->clock_ns = owner->used_ns;
		owner->used_ns += ROW_NS;
		owner->nr_rows--;
		ret[nr++] = take(q, list_pop(q, &owner->rows));
	}
	return nr;
}

static void pause_owner(struct owner *owner, u64 until_ns)
{
	if (owner->paused_until_ns < until_ns)
		owner->paused_until_ns = until_ns;
	owner->nr_refused++;
}

/* The place of a process that was scanned is kept, so that it is found when it is wanted again. */
static void rest(struct scan_queue *q, const struct scan_row *row, u64 until_ns)
{
	u32 at = find(q, row->pid, row->kind);

	if (at != NONE || q->nr_resting == RESTING_MAX)
		return;
	at = insert(q, row);
	if (at == NONE)
		return;
	q->nodes[at].rests_until_ns = until_ns;
	q->resting[q->nr_resting++] = at;
}

void scan_queue_charge(struct scan_queue *q, const struct scan_row *row,
		       const struct scan_cost *cost, u64 now_ns)
{
	struct owner *owner = owner_of(q, &row->owner);

	if (now_ns >= owner->window_ns + SCAN_QUEUE_WINDOW_NS) {
		owner->window_ns = now_ns;
		owner->used = (struct scan_cost){};
	}
	if (cost->taken_ns > ROW_NS)
		owner->used_ns += cost->taken_ns - ROW_NS;
	owner->used.nr_files += cost->nr_files;
	owner->used.nr_bytes += cost->nr_bytes;
	if (owner->used.nr_files >= SCAN_QUEUE_FILES || owner->used.nr_bytes >= SCAN_QUEUE_BYTES)
		pause_owner(owner, owner->window_ns + SCAN_QUEUE_WINDOW_NS);
	if (cost->taken_ns >= SCAN_QUEUE_SLOW_NS)
		rest(q, row, now_ns + SCAN_QUEUE_SLOW_TIMES * cost->taken_ns);
}

void scan_queue_blame(struct scan_queue *q, const struct scan_row *row, bool has_hung, u64 began_ns,
		      u64 now_ns)
{
	struct owner *owner = owner_of(q, &row->owner);
	bool again = owner->blamed_ns && now_ns < owner->blamed_ns + 2 * SCAN_QUEUE_HUNG_NS;

	owner->blamed_ns = now_ns;
	owner->used_ns += now_ns - began_ns;
	/* One file on a server that does not answer must not hide the other jobs of its user. */
	if (has_hung)
		rest(q, row, now_ns + SCAN_QUEUE_HUNG_NS);
	pause_owner(owner, now_ns + (again ? SCAN_QUEUE_HUNG_NS : SCAN_QUEUE_ENDED_NS));
}

void scan_queue_stuck(struct scan_queue *q, const struct tenant *owner)
{
	owner_of(q, owner)->nr_stuck++;
}

void scan_queue_unstuck(struct scan_queue *q, const struct tenant *owner)
{
	struct owner *found = owner_of(q, owner);

	found->nr_stuck -= found->nr_stuck > 0;
}

u64 scan_queue_refused(const struct scan_queue *q)
{
	u64 nr = q->nr_lost;

	for (u32 i = 0; i < q->nr_owners; i++)
		nr += q->owners[i].nr_refused;
	return nr;
}

void scan_queue_quotas(const struct scan_queue *q, scan_quota_fn fn, void *ctx)
{
	for (u32 i = 0; i < q->nr_owners; i++)
		if (q->owners[i].nr_refused)
			fn(ctx, q->owners[i].tenant.uid, q->owners[i].nr_refused);
}

void scan_queue_clear(struct scan_queue *q)
{
	q->unused = q->unowned = (struct list){ NONE, NONE };
	q->nr_resting = 0;
	for (u32 i = 0; i < BUCKETS; i++)
		q->buckets[i] = NONE;
	for (u32 i = 0; i < SCAN_QUEUE_ROWS; i++)
		list_push(q, &q->unused, i);
	for (u32 i = 0; i < q->nr_owners; i++) {
		q->owners[i].rows = (struct list){ NONE, NONE };
		q->owners[i].nr_rows = 0;
	}
}

int scan_queue_new(struct scan_queue **ret)
{
	struct scan_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	scan_queue_clear(q);
	*ret = q;
	return 0;
}

struct scan_queue *scan_queue_free(struct scan_queue *q)
{
	free(q);
	return NULL;
}
