/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/discovery.h"
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "collect/library_message.h"
#include "daemon/helper.h"

/* The kernel has no larger pid. */
#define PIDS_MAX	 (1U << 22)
#define WORDS		 (PIDS_MAX / 64)
#define FIRST_NS	 (20 * NSEC_PER_SEC)
#define ANSWER_NS	 (10 * NSEC_PER_SEC)
/* A scan that takes longer than this is slow. The next one waits for as long as 20 of them take. */
#define SLOW_NS		 (50 * NSEC_PER_MSEC)
#define SLOW_FACTOR	 20
#define HUNG_PAUSE_NS	 (300 * NSEC_PER_SEC)
#define ENDED_PAUSE_NS	 (5 * NSEC_PER_SEC)
#define SLOW_MAX	 256
/* Environments that wait to be read. */
#define ENVIRONMENTS_MAX 64

struct slow {
	pid_t pid;
	u64 until_ns;
};

struct discovery {
	struct helper helper;
	struct library_set *set;
	struct kernel *kernel;
	/* Positions only grow; taken <= added. */
	struct gpu_event environments[ENVIRONMENTS_MAX];
	u32 nr_added;
	u32 nr_taken;
	u64 start_ns[SCAN_ROWS_MAX]; /* of the process of a row SCAN_ENVIRONMENT */
	/* A bit for each process that is wanted. */
	u64 wanted[LIBRARY_SCAN_KIND_NR][WORDS];
	u32 nr_wanted[LIBRARY_SCAN_KIND_NR];
	u32 next_word; /* where the search for the next wanted process begins */
	bool wants_list;
	bool is_listing;
	bool is_foreign;	   /* the batch was wanted for a set that does not exist any more */
	struct scan_request batch; /* under way */
	int pidfds[SCAN_ROWS_MAX]; /* opened before the scan */
	u32 nr_done;		   /* rows of the batch */
	u32 nr_found;		   /* files of the current row */
	u64 row_ns;		   /* when the current row began */
	struct slow slow[SLOW_MAX];
	u32 next_slow;
	u64 nr_lost;
};

static u64 bit_of(pid_t pid)
{
	return 1ULL << (u32)pid % 64;
}

static bool is_wanted_as(const struct discovery *d, pid_t pid, u32 kind)
{
	return d->wanted[kind][(u32)pid / 64] & bit_of(pid);
}

void discovery_want(struct discovery *d, pid_t pid, enum library_scan_kind kind)
{
	if (pid <= 0 || (u32)pid >= PIDS_MAX || !d->set || is_wanted_as(d, pid, kind))
		return;
	d->wanted[kind][(u32)pid / 64] |= bit_of(pid);
	d->nr_wanted[kind]++;
}

static void unwant(struct discovery *d, pid_t pid, u32 kind)
{
	if (!is_wanted_as(d, pid, kind))
		return;
	d->wanted[kind][(u32)pid / 64] &= ~bit_of(pid);
	d->nr_wanted[kind]--;
}

void discovery_want_numbers(struct discovery *d, const struct gpu_event *event)
{
	if (d->nr_added - d->nr_taken == ENVIRONMENTS_MAX)
		d->nr_lost++;
	else
		d->environments[d->nr_added++ % ENVIRONMENTS_MAX] = *event;
}

void discovery_want_all(struct discovery *d)
{
	d->wants_list = true;
}

bool discovery_is_wanted(const struct discovery *d, pid_t pid)
{
	if (pid <= 0 || (u32)pid >= PIDS_MAX)
		return false;
	for (u32 i = d->nr_done; i < d->batch.nr; i++)
		if (d->batch.rows[i].pid == pid)
			return true;
	return is_wanted_as(d, pid, LIBRARY_SCAN_MAPS) || is_wanted_as(d, pid, LIBRARY_SCAN_EXEC);
}

static void postpone(struct discovery *d, pid_t pid, u64 until_ns)
{
	d->slow[d->next_slow++ % SLOW_MAX] = (struct slow){ pid, until_ns };
}

static bool is_postponed(const struct discovery *d, pid_t pid, u64 now_ns)
{
	for (u32 i = 0; i < SLOW_MAX; i++)
		if (d->slow[i].pid == pid && now_ns < d->slow[i].until_ns)
			return true;
	return false;
}

static void add_row(struct discovery *d, pid_t pid, u32 kind)
{
	u32 i = d->batch.nr++;

	unwant(d, pid, kind);
	d->batch.rows[i].pid = pid;
	d->batch.rows[i].kind = kind;
	d->pidfds[i] = library_open_process(pid);
}

static void add_environments(struct discovery *d)
{
	while (d->nr_taken != d->nr_added && d->batch.nr < SCAN_ROWS_MAX) {
		const struct gpu_event *event = &d->environments[d->nr_taken++ % ENVIRONMENTS_MAX];
		u32 i = d->batch.nr++;

		d->batch.rows[i].pid = (pid_t)event->event.tgid;
		d->batch.rows[i].kind = SCAN_ENVIRONMENT;
		d->batch.rows[i].runtime = event->event.value;
		d->start_ns[i] = event->start_ns;
		d->pidfds[i] = -EBADF;
	}
}

static void add_word(struct discovery *d, u32 word, u64 now_ns)
{
	for (u32 kind = 0; kind < LIBRARY_SCAN_KIND_NR; kind++)
		for (u64 left = d->wanted[kind][word]; left && d->batch.nr < SCAN_ROWS_MAX;
		     left &= left - 1) {
			pid_t pid = (pid_t)(word * 64 + (u32)__builtin_ctzll(left));

			if (!is_postponed(d, pid, now_ns))
				add_row(d, pid, kind);
		}
}

static void make_batch(struct discovery *d, u64 now_ns)
{
	memset(&d->batch, 0, sizeof(d->batch));
	d->nr_done = d->nr_found = 0;
	d->row_ns = now_ns;
	add_environments(d);
	for (u32 i = 0; i < WORDS && d->batch.nr < SCAN_ROWS_MAX; i++) {
		if (!d->nr_wanted[LIBRARY_SCAN_MAPS] && !d->nr_wanted[LIBRARY_SCAN_EXEC])
			break;
		d->next_word = (d->next_word + 1) % WORDS;
		add_word(d, d->next_word, now_ns);
	}
}

static void close_pidfds(struct discovery *d)
{
	for (u32 i = d->nr_done; i < d->batch.nr; i++)
		cleanup_fd(&d->pidfds[i]);
	d->nr_done = d->batch.nr = 0;
}

static void ask(struct discovery *d, u64 now_ns)
{
	bool wants_any = d->nr_wanted[LIBRARY_SCAN_MAPS] || d->nr_wanted[LIBRARY_SCAN_EXEC] ||
			 d->nr_taken != d->nr_added;

	if (!helper_is_idle(&d->helper) || !d->set || (!d->wants_list && !wants_any))
		return;
	close_pidfds(d);
	d->is_foreign = false;
	d->is_listing = d->wants_list;
	d->wants_list = false;
	if (d->is_listing)
		memset(&d->batch, 0, sizeof(d->batch));
	else
		make_batch(d, now_ns);
	if (d->batch.nr || d->is_listing)
		helper_ask(&d->helper, &d->batch, sizeof(d->batch), now_ns);
}

static int take_pids(struct discovery *d, const struct scan_message *message)
{
	if (!d->is_listing)
		return -EBADMSG;
	for (u32 i = 0; i < message->nr; i++)
		discovery_want(d, message->pids[i], LIBRARY_SCAN_MAPS);
	d->is_listing = message->nr == SCAN_PIDS_MAX;
	return d->is_listing;
}

static int take_found(struct discovery *d, const struct scan_message *message, int fd)
{
	if (++d->nr_found > LIBRARY_FOUND_MAX)
		return -EBADMSG;
	if (!d->is_foreign)
		library_set_found(d->set, &message->found, fd);
	return 1;
}

static void end_row(struct discovery *d, u64 now_ns)
{
	cleanup_fd(&d->pidfds[d->nr_done++]);
	d->nr_found = 0;
	d->row_ns = now_ns;
}

static int take_numbers(struct discovery *d, const struct scan_message *message, u64 now_ns)
{
	pid_t pid = d->batch.rows[d->nr_done].pid;
	struct process_key key = { .start_ns = d->start_ns[d->nr_done], .tgid = (u32)pid };

	if (message->numbers.pid != pid)
		return -EBADMSG;
	if (!d->is_foreign && message->numbers.error == 0)
		kernel_set_gpu_numbers(d->kernel, &key, &message->numbers.numbers);
	end_row(d, now_ns);
	return d->nr_done < d->batch.nr;
}

/* Its exit event came before the result. */
static bool has_exited(int pidfd)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

	return pidfd < 0 || poll(&poll_fd, 1, 0) != 0;
}

static int take_scanned(struct discovery *d, const struct scan_message *message, u64 now_ns)
{
	struct library_scanned scanned = message->scanned;
	pid_t pid = d->batch.rows[d->nr_done].pid;
	u64 taken_ns = now_ns - d->row_ns;

	if (scanned.pid != pid)
		return -EBADMSG;
	if (has_exited(d->pidfds[d->nr_done]))
		scanned.error = -ESRCH;
	if (!d->is_foreign)
		library_set_scanned(d->set, &scanned);
	if (taken_ns >= SLOW_NS)
		postpone(d, pid, now_ns + SLOW_FACTOR * taken_ns);
	end_row(d, now_ns);
	return d->nr_done < d->batch.nr;
}

static int on_answer(void *ctx, const void *data, size_t size, int fd)
{
	struct discovery *d = ctx;
	const struct scan_message *message = data;
	u32 row = d->nr_done;

	if (!scan_message_is_valid(message, size, fd >= 0))
		return -EBADMSG;
	if (message->kind == SCAN_PIDS)
		return take_pids(d, message);
	if (d->is_listing || row >= d->batch.nr)
		return -EBADMSG;
	if ((message->kind == SCAN_NUMBERS) != (d->batch.rows[row].kind == SCAN_ENVIRONMENT))
		return -EBADMSG;
	if (message->kind == SCAN_NUMBERS)
		return take_numbers(d, message, time_now_ns());
	if (d->nr_found == 0 && !d->is_foreign)
		library_set_begin(d->set, d->batch.rows[row].pid, d->pidfds[row]);
	return message->kind == SCAN_FOUND ? take_found(d, message, fd)
					   : take_scanned(d, message, time_now_ns());
}

static void on_idle(void *ctx)
{
	ask(ctx, time_now_ns());
}

/*
 * A process whose scan hung, or ended the process that scans for the second time, is hardly scanned
 * any more. The first time can have another cause, for example an administrator.
 */
static void blame(struct discovery *d, pid_t pid, enum helper_failure failure)
{
	bool again = failure == HELPER_HUNG;

	for (u32 i = 0; i < SLOW_MAX; i++)
		again |= d->slow[i].pid == pid;
	postpone(d, pid, time_now_ns() + (again ? HUNG_PAUSE_NS : ENDED_PAUSE_NS));
	d->nr_lost++;
}

/* The scan of the current row did not end. It and the rows after it are wanted again. */
static void on_fail(void *ctx, enum helper_failure failure)
{
	struct discovery *d = ctx;
	u32 first = d->nr_done;

	d->wants_list |= d->is_listing;
	d->is_listing = false;
	if (first < d->batch.nr && failure != HELPER_LEFT)
		blame(d, d->batch.rows[first].pid, failure);
	for (u32 i = first; i < d->batch.nr; i++)
		if (d->batch.rows[i].kind < LIBRARY_SCAN_KIND_NR)
			discovery_want(d, d->batch.rows[i].pid, d->batch.rows[i].kind);
		else
			d->nr_lost += i != first;
	close_pidfds(d);
}

int discovery_new(struct starter *starter, struct loop *loop, struct discovery **ret)
{
	static const struct helper_ops ops = { .message_bytes = sizeof(struct scan_message),
					       .first_ns = FIRST_NS,
					       .answer_ns = ANSWER_NS,
					       .on_answer = on_answer,
					       .on_idle = on_idle,
					       .on_fail = on_fail };
	CLEANUP(discovery_free_cleanup) struct discovery *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	err = helper_init(&d->helper, starter, loop, PROGRAM_LIBRARIES, "zernel-discover libraries",
			  &ops, d);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(d);
	return 0;
}

struct discovery *discovery_free(struct discovery *d)
{
	if (!d)
		return NULL;
	helper_done(&d->helper);
	close_pidfds(d);
	free(d);
	return NULL;
}

void discovery_set_target(struct discovery *d, struct library_set *set, struct kernel *kernel)
{
	d->set = set;
	d->kernel = kernel;
	d->is_foreign = true;
	if (set)
		return;
	memset(d->wanted, 0, sizeof(d->wanted));
	memset(d->nr_wanted, 0, sizeof(d->nr_wanted));
	d->nr_taken = d->nr_added;
	d->wants_list = false;
}

void discovery_tick(struct discovery *d, u64 now_ns)
{
	helper_tick(&d->helper, now_ns);
	ask(d, now_ns);
}

struct discovery_counts discovery_counts(const struct discovery *d)
{
	return (struct discovery_counts){ .nr_restarts = d->helper.nr_restarts,
					  .nr_lost = d->nr_lost };
}
