/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/nice.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "base/time.h"
#include "daemon/nice_watch.h"

/* Interval between two samples. A sample may take at most this part of the time. */
#define SAMPLE_NS   (200 * NSEC_PER_MSEC)
#define SAMPLE_PART 100
/* A thread is promoted at most once in this time. */
#define AGAIN_NS    NSEC_PER_SEC
/* Promotions of all threads together in a second. */
#define PER_SECOND  256

/* A thread with a role, or one that had a role at the last sample. */
struct tracked {
	u32 tid;
	u32 is_left; /* another program manages it, so it is never changed again */
	u64 start_ns;
	u64 set_ns; /* when it was last promoted; 0: never */
	struct nice_state state;
	const struct nice_thread *changed; /* in the table of the watcher; NULL: not changed */
};

struct nice {
	struct nice_watch *watch; /* NULL while it does not act */
	bool has_slices;
	struct tracked *tracked; /* ordered by tid */
	u32 nr_tracked;
	u64 due_ns;
	u64 again_ns;  /* a watcher that was killed is not started again before this time */
	u64 second_ns; /* begin of the second in which nr_set counts */
	u32 nr_set;
	struct nice_counts counts;
};

int nice_new(struct nice **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

static void forget(struct nice *n, struct tracked *t)
{
	nice_watch_remove(n->watch, t->changed);
	t->changed = NULL;
	n->counts.nr_threads--;
}

static void leave(struct nice *n, struct tracked *t)
{
	t->is_left = 1;
	n->counts.nr_lost++;
	log_debug("thread %u: another program changed its nice value; zerneld leaves it alone",
		  t->tid);
}

static void restore(struct nice *n, struct tracked *t)
{
	int err = nice_thread_restore(t->changed);

	n->counts.nr_changes += err == 0;
	if (err == -ESTALE)
		leave(n, t);
	else if (err < 0 && err != -ESRCH)
		n->counts.nr_dropped++;
	forget(n, t);
}

static bool may_set(struct nice *n, const struct tracked *t, u64 now)
{
	if (now >= n->second_ns + NSEC_PER_SEC) {
		n->second_ns = now;
		n->nr_set = 0;
	}
	return (!t->set_ns || now >= t->set_ns + AGAIN_NS) && n->nr_set < PER_SECOND;
}

static u64 start_ticks(const struct thread_record *record)
{
	return record->start_ns / (NSEC_PER_SEC / (u64)sysconf(_SC_CLK_TCK));
}

static void promote(struct nice *n, struct tracked *t, const struct thread_record *record,
		    const struct nice_rule *rule, u64 now)
{
	struct nice_thread thread = {
		.tgid = record->tgid,
		.tid = record->tid,
		.start_ticks = start_ticks(record),
		.nice = rule->nice,
		.slice_ns = n->has_slices ? rule->slice_ns : 0,
	};
	int err;

	t->changed = may_set(n, t, now) ? nice_watch_add(n->watch, &thread) : NULL;
	if (!t->changed) {
		n->counts.nr_dropped++;
		return;
	}
	n->counts.nr_threads++;
	t->set_ns = now;
	n->nr_set++;
	err = nice_thread_set(&thread);
	n->counts.nr_changes += err == 0;
	if (err == 0)
		return;
	forget(n, t);
	t->is_left = err == -EBUSY;
	if (err != -EBUSY && err != -ESRCH)
		n->counts.nr_dropped++;
}

/* A thread that goes from one row to another is restored, and promoted again by a later sample. */
static void follow(struct nice *n, struct tracked *t, const struct thread_record *record,
		   const struct nice_sample *sample, u32 rules_off)
{
	const struct nice_rule *rule = &nice_rules[nice_decide(&t->state, sample, rules_off)];
	int err = t->changed ? nice_thread_check(t->changed) : 0;

	if (err < 0) {
		if (err == -ESTALE)
			leave(n, t);
		forget(n, t);
	} else if (t->changed && t->changed->nice != rule->nice) {
		restore(n, t);
	} else if (!t->changed && rule->nice && !t->is_left) {
		promote(n, t, record, rule, sample->view.now);
	}
}

static const struct process_state *find_process(const struct kernel_snapshot *all, u32 tgid)
{
	for (u32 i = 0; i < all->nr_processes; i++)
		if (all->processes[i].task.pid == tgid)
			return &all->processes[i];
	return NULL;
}

/* A loader that is a thread of its consumer shares its process. */
static const struct process_state *consumer_of(const struct kernel_snapshot *all,
					       const struct process_state *process)
{
	return !process || process->launcher_tid ? process
						 : find_process(all, process->consumer_tgid);
}

static int by_tid(const void *a, const void *b)
{
	const struct thread_record *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

/* Keeps the threads that have a role, in the order of their tids. */
static void sort_threads(struct kernel_snapshot *all)
{
	u32 nr = 0;

	for (u32 i = 0; i < all->nr_threads; i++)
		if (all->threads[i].role != ROLE_OTHER)
			all->threads[nr++] = all->threads[i];
	all->nr_threads = nr;
	qsort(all->threads, nr, sizeof(*all->threads), by_tid);
}

/* Takes over what is known of a thread, and restores threads that are gone or lost their role. */
static struct tracked take_over(struct nice *n, u32 *at, const struct thread_record *record)
{
	struct tracked t = { .tid = record->tid, .start_ns = record->start_ns };

	for (; *at < n->nr_tracked && n->tracked[*at].tid <= record->tid; (*at)++) {
		if (n->tracked[*at].tid == t.tid && n->tracked[*at].start_ns == t.start_ns)
			t = n->tracked[*at];
		else if (n->tracked[*at].changed)
			restore(n, &n->tracked[*at]);
	}
	return t;
}

static void restore_from(struct nice *n, u32 at)
{
	for (; at < n->nr_tracked; at++)
		if (n->tracked[at].changed)
			restore(n, &n->tracked[at]);
}

static void follow_all(struct nice *n, struct kernel_snapshot *all, u32 rules_off, u64 now)
{
	struct tracked *tracked;
	u32 at = 0;

	sort_threads(all);
	tracked = calloc(all->nr_threads + 1, sizeof(*tracked));
	if (!tracked)
		return;
	for (u32 i = 0; i < all->nr_threads; i++) {
		const struct thread_record *record = &all->threads[i];
		const struct process_state *process = find_process(all, record->tgid);
		struct nice_sample sample =
			nice_look(record, process, consumer_of(all, process), now);

		tracked[i] = take_over(n, &at, record);
		follow(n, &tracked[i], record, &sample, rules_off);
	}
	restore_from(n, at);
	free(n->tracked);
	n->tracked = tracked;
	n->nr_tracked = all->nr_threads;
}

static void stop(struct nice *n)
{
	if (!n->watch)
		return;
	restore_from(n, 0);
	n->watch = nice_watch_free(n->watch);
	free(n->tracked);
	n->tracked = NULL;
	n->nr_tracked = 0;
	log_event(LOG_LEVEL_INFO, "nice-stopped",
		  "the nice actuator stopped: all nice values are restored");
}

static int start(struct nice *n)
{
	int err = nice_watch_new(&n->watch);

	if (err < 0)
		return err;
	n->has_slices = nice_has_slices();
	log_event(
		LOG_LEVEL_INFO, "nice-started",
		"the nice actuator acts: zerneld sets the nice values of threads that feed a GPU");
	return 0;
}

/* Without a watcher, a killed zerneld would leave changed values behind. */
static int keep_watcher(struct nice *n, u64 now)
{
	if (n->watch && !nice_watch_is_alive(n->watch)) {
		log_event(LOG_LEVEL_WARNING, "nice-watcher-ended",
			  "zerneld-restore ended or was stopped: zerneld restores all nice values "
			  "and starts it again");
		stop(n);
		n->again_ns = now + AGAIN_NS;
	}
	return n->watch || now < n->again_ns ? 0 : start(n);
}

int nice_act(struct nice *n, struct kernel *kernel, u32 rules_off)
{
	CLEANUP(kernel_snapshot_done) struct kernel_snapshot all = {};
	u64 now = time_now_ns(), took_ns;
	int err;

	if (!kernel) {
		stop(n);
		return 0;
	}
	err = keep_watcher(n, now);
	if (err < 0 || !n->watch || now < n->due_ns)
		return err;
	if (kernel_snapshot_read(kernel, &all) == 0)
		follow_all(n, &all, rules_off, now);
	took_ns = time_now_ns() - now;
	n->due_ns = now + (took_ns * SAMPLE_PART > SAMPLE_NS ? took_ns * SAMPLE_PART : SAMPLE_NS);
	return 0;
}

bool nice_is_acting(const struct nice *n)
{
	return n->watch;
}

struct nice_counts nice_counts(const struct nice *n)
{
	return n->counts;
}

struct nice *nice_free(struct nice *n)
{
	if (!n)
		return NULL;
	stop(n);
	free(n);
	return NULL;
}
