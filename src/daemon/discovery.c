/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/discovery.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/time.h"
#include "collect/library_message.h"
#include "daemon/helper.h"

#define ANSWER_NS (10 * NSEC_PER_SEC)

struct discovery {
	struct helper helper;
	struct library_set *set;
	discovery_names_fn on_names; /* or NULL */
	void *names_ctx;
	struct {
		discovery_python_fn fn;
		void *ctx;
	} pythons[DISCOVERY_PYTHON_MAX];
	u32 nr_pythons;
	const struct discovery_stack_handler *stacks; /* or NULL */
	void *stacks_ctx;
	struct scan_queue *queue;
	bool wants_list;
	bool is_listing;
	bool is_foreign; /* the batch was wanted for a set that does not exist any more */
	struct scan_row batch[SCAN_ROWS_MAX]; /* under way */
	int pidfds[SCAN_ROWS_MAX];	      /* opened before the scan */
	u32 nr_batch;
	u32 nr_done;				   /* rows of the batch */
	u32 nr_found;				   /* files or frames of the current row */
	u64 row_ns;				   /* when the current row began */
	struct scan_row stuck[HELPER_REMAINS_MAX]; /* rows that processes hang in */
	u64 nr_lost;
};

static void want(struct discovery *d, const struct scan_row *row)
{
	if (row->pid > 0 && d->set)
		scan_queue_add(d->queue, row);
}

void discovery_want(struct discovery *d, pid_t pid, enum library_scan_kind kind)
{
	want(d, &(struct scan_row){ .pid = pid, .kind = kind });
}

void discovery_want_names(struct discovery *d, pid_t pid)
{
	want(d, &(struct scan_row){ .pid = pid, .kind = SCAN_JOB });
}

void discovery_set_names(struct discovery *d, discovery_names_fn on_names, void *ctx)
{
	d->on_names = on_names;
	d->names_ctx = ctx;
}

void discovery_want_python(struct discovery *d, pid_t pid)
{
	want(d, &(struct scan_row){ .pid = pid, .kind = SCAN_PYTHON });
}

void discovery_add_python(struct discovery *d, discovery_python_fn on_python, void *ctx)
{
	assert(d->nr_pythons < DISCOVERY_PYTHON_MAX);
	d->pythons[d->nr_pythons].fn = on_python;
	d->pythons[d->nr_pythons++].ctx = ctx;
}

void discovery_want_stack(struct discovery *d, pid_t tid)
{
	want(d, &(struct scan_row){ .pid = tid, .kind = SCAN_STACK });
}

void discovery_set_stacks(struct discovery *d, const struct discovery_stack_handler *handler,
			  void *ctx)
{
	d->stacks = handler;
	d->stacks_ctx = ctx;
}

void discovery_want_all(struct discovery *d)
{
	d->wants_list = true;
}

bool discovery_is_wanted(const struct discovery *d, pid_t pid)
{
	for (u32 i = d->nr_done; i < d->nr_batch; i++)
		if (d->batch[i].pid == pid)
			return true;
	return scan_queue_has(d->queue, pid, LIBRARY_SCAN_MAPS) ||
	       scan_queue_has(d->queue, pid, LIBRARY_SCAN_EXEC);
}

static bool needs_pidfd(const struct scan_row *row)
{
	return row->has_owner;
}

/* Returns false if there is nothing to ask for. */
static bool make_request(struct discovery *d, u64 now_ns, struct scan_request *ret)
{
	*ret = (struct scan_request){};
	d->is_listing = d->wants_list;
	d->wants_list = false;
	d->nr_done = d->nr_found = 0;
	d->row_ns = now_ns;
	d->nr_batch =
		d->is_listing ? 0 : scan_queue_take(d->queue, now_ns, d->batch, SCAN_ROWS_MAX);
	for (u32 i = 0; i < d->nr_batch; i++) {
		const struct scan_row *row = &d->batch[i];

		ret->rows[i].pid = row->pid;
		ret->rows[i].kind = row->has_owner ? row->kind : SCAN_OWNER;
		d->pidfds[i] = needs_pidfd(row) ? library_open_process(row->pid) : -EBADF;
	}
	ret->nr = d->nr_batch;
	return d->is_listing || d->nr_batch;
}

static void close_pidfds(struct discovery *d)
{
	for (u32 i = d->nr_done; i < d->nr_batch; i++)
		cleanup_fd(&d->pidfds[i]);
	d->nr_done = d->nr_batch = 0;
}

static void ask(struct discovery *d, u64 now_ns)
{
	struct scan_request request;

	if (!helper_is_idle(&d->helper) || !d->set)
		return;
	d->is_foreign = false;
	if (make_request(d, now_ns, &request))
		helper_ask(&d->helper, &request, sizeof(request), now_ns);
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

/* Returns whether more rows follow. */
static int end_row(struct discovery *d, const struct scan_cost *cost, u64 now_ns)
{
	if (cost)
		scan_queue_charge(d->queue, &d->batch[d->nr_done], cost, now_ns);
	cleanup_fd(&d->pidfds[d->nr_done++]);
	d->nr_found = 0;
	d->row_ns = now_ns;
	return d->nr_done < d->nr_batch;
}

static int take_owned(struct discovery *d, const struct scan_message *message, u64 now_ns)
{
	struct scan_row *row = &d->batch[d->nr_done];

	if (message->owned.pid != row->pid)
		return -EBADMSG;
	row->has_owner = true;
	row->owner = message->owned.owner;
	if (!d->is_foreign)
		want(d, row);
	return end_row(d, NULL, now_ns);
}

static int take_names(struct discovery *d, const struct scan_message *message, u64 now_ns)
{
	const struct scan_row *row = &d->batch[d->nr_done];

	if (message->names.pid != row->pid)
		return -EBADMSG;
	if (d->on_names && message->names.error == 0)
		d->on_names(d->names_ctx, &message->names.job);
	return end_row(d, &(struct scan_cost){ .taken_ns = now_ns - d->row_ns }, now_ns);
}

/* Its exit event came before the result. */
static bool has_exited(int pidfd)
{
	struct pollfd poll_fd = { .fd = pidfd, .events = POLLIN };

	return pidfd < 0 ? pidfd == -ESRCH : poll(&poll_fd, 1, 0) != 0;
}

static int take_interpreter(struct discovery *d, const struct scan_message *message, u64 now_ns)
{
	const struct scan_interpreter *found = &message->interpreter;
	int pidfd = d->pidfds[d->nr_done], err;

	if (found->pid != d->batch[d->nr_done].pid)
		return -EBADMSG;
	err = has_exited(pidfd) ? -ESRCH : found->error;
	for (u32 i = 0; i < d->nr_pythons; i++)
		d->pythons[i].fn(d->pythons[i].ctx, found->pid, pidfd, err,
				 err ? NULL : &found->python);
	return end_row(d,
		       &(struct scan_cost){ .nr_files = found->cost.nr_files,
					    .nr_bytes = found->cost.nr_bytes,
					    .taken_ns = now_ns - d->row_ns },
		       now_ns);
}

static int take_frame(struct discovery *d, const struct scan_frame *frame)
{
	if (frame->pid != d->batch[d->nr_done].pid || frame->index != d->nr_found++)
		return -EBADMSG;
	if (d->stacks)
		d->stacks->on_frame(d->stacks_ctx, frame);
	return 1;
}

static int take_stacked(struct discovery *d, const struct scan_stacked *end, u64 now_ns)
{
	if (end->pid != d->batch[d->nr_done].pid)
		return -EBADMSG;
	if (d->stacks)
		d->stacks->on_end(d->stacks_ctx, end);
	return end_row(d, &(struct scan_cost){ .taken_ns = now_ns - d->row_ns }, now_ns);
}

static int take_scanned(struct discovery *d, const struct scan_message *message, u64 now_ns)
{
	struct library_scanned scanned = message->scanned;
	struct scan_cost cost = { .nr_files = scanned.nr_examined,
				  .nr_bytes = scanned.nr_bytes,
				  .taken_ns = now_ns - d->row_ns };

	if (scanned.pid != d->batch[d->nr_done].pid)
		return -EBADMSG;
	if (has_exited(d->pidfds[d->nr_done]))
		scanned.error = -ESRCH;
	if (!d->is_foreign)
		library_set_scanned(d->set, &scanned);
	return end_row(d, &cost, now_ns);
}

/* The current row and the rows after it are wanted again. */
static void want_rest(struct discovery *d)
{
	for (u32 i = d->nr_done; i < d->nr_batch && !d->is_foreign; i++)
		want(d, &d->batch[i]);
	close_pidfds(d);
}

/* The kind of message that ends a row. */
static u32 end_of(const struct scan_row *row)
{
	if (!row->has_owner)
		return SCAN_OWNED;
	if (row->kind == SCAN_PYTHON)
		return SCAN_INTERPRETER;
	if (row->kind == SCAN_STACK)
		return SCAN_STACKED;
	return row->kind == SCAN_JOB ? SCAN_NAMES : SCAN_SCANNED;
}

/* Whether a message of this kind can come before the end of the row. */
static bool is_part_of(u32 kind, u32 end)
{
	return (end == SCAN_SCANNED && kind == SCAN_FOUND) ||
	       (end == SCAN_STACKED && kind == SCAN_FRAME);
}

static int on_answer(void *ctx, const void *data, size_t size, int fd)
{
	struct discovery *d = ctx;
	const struct scan_message *message = data;
	u32 row = d->nr_done, end;

	if (!scan_message_is_valid(message, size, fd >= 0))
		return -EBADMSG;
	if (message->kind == SCAN_PIDS)
		return take_pids(d, message);
	if (d->is_listing || row >= d->nr_batch)
		return -EBADMSG;
	if (message->kind == SCAN_REST && row > 0 && d->nr_found == 0) {
		want_rest(d);
		return 0;
	}
	end = end_of(&d->batch[row]);
	if (message->kind != end && !is_part_of(message->kind, end))
		return -EBADMSG;
	if (end == SCAN_OWNED)
		return take_owned(d, message, time_now_ns());
	if (end == SCAN_NAMES)
		return take_names(d, message, time_now_ns());
	if (end == SCAN_INTERPRETER)
		return take_interpreter(d, message, time_now_ns());
	if (message->kind == SCAN_FRAME)
		return take_frame(d, &message->frame);
	if (end == SCAN_STACKED)
		return take_stacked(d, &message->stacked, time_now_ns());
	if (d->nr_found == 0 && !d->is_foreign)
		library_set_begin(d->set, d->batch[row].pid, d->pidfds[row]);
	return message->kind == SCAN_FOUND ? take_found(d, message, fd)
					   : take_scanned(d, message, time_now_ns());
}

static void on_idle(void *ctx)
{
	ask(ctx, time_now_ns());
}

/*
 * The scan of the current row did not end. A row without an owner is not asked for again, because
 * the failure could be charged to no one.
 */
static void on_fail(void *ctx, enum helper_failure failure, int remain)
{
	struct discovery *d = ctx;
	const struct scan_row *row = &d->batch[d->nr_done];

	d->wants_list |= d->is_listing;
	d->is_listing = false;
	if (remain >= 0)
		d->stuck[remain] = d->nr_done < d->nr_batch ? *row : (struct scan_row){};
	if (d->nr_done == d->nr_batch || failure == HELPER_LEFT) {
		want_rest(d);
		return;
	}
	if (row->has_owner) {
		if (remain >= 0)
			scan_queue_stuck(d->queue, &row->owner);
		scan_queue_blame(d->queue, row, failure == HELPER_HUNG, d->row_ns, time_now_ns());
	} else {
		d->nr_lost++;
		end_row(d, NULL, time_now_ns());
	}
	want_rest(d);
}

static void on_gone(void *ctx, int remain)
{
	struct discovery *d = ctx;

	if (d->stuck[remain].has_owner)
		scan_queue_unstuck(d->queue, &d->stuck[remain].owner);
}

int discovery_new(struct starter *starter, struct loop *loop, struct discovery **ret)
{
	static const struct helper_ops ops = { .message_bytes = sizeof(struct scan_message),
					       .first_ns = ANSWER_NS,
					       .answer_ns = ANSWER_NS,
					       .on_answer = on_answer,
					       .on_idle = on_idle,
					       .max_remains = HELPER_REMAINS_MAX,
					       .on_fail = on_fail,
					       .on_gone = on_gone };
	CLEANUP(discovery_free_cleanup) struct discovery *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	err = scan_queue_new(&d->queue);
	if (err < 0)
		return err;
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
	scan_queue_free(d->queue);
	free(d);
	return NULL;
}

void discovery_set_target(struct discovery *d, struct library_set *set)
{
	d->set = set;
	d->is_foreign = true;
	if (set)
		return;
	scan_queue_clear(d->queue);
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
					  .nr_lost = d->nr_lost + scan_queue_refused(d->queue) };
}

void discovery_quotas(const struct discovery *d, scan_quota_fn fn, void *ctx)
{
	scan_queue_quotas(d->queue, fn, ctx);
}
