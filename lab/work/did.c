/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "work/did.h"

#include <unistd.h>

#define SPAN_NS	   NSEC_PER_MSEC
#define READING_NS (100 * NSEC_PER_USEC) /* a read of an undisturbed thread is shorter */
#define TRIES	   5

/* Reads the thread's times and the clock at the same moment. */
static u64 read_now(const struct did *did, struct times *ret_times)
{
	u64 now = truth_now_ns();

	for (int i = 0; i < TRIES; i++) {
		u64 start = now;

		*ret_times = times_read(did->times_fd);
		now = truth_now_ns();
		if (now - start <= READING_NS)
			break;
	}
	return now;
}

void did_begin(struct did *did, struct truth *truth, enum truth_did what)
{
	*did = (struct did){ .truth = truth, .what = what, .times_fd = times_open() };
	did->since_ns = did->born_ns = read_now(did, &did->times);
}

static u64 at_most(u64 value, u64 most)
{
	return value < most ? value : most;
}

static void span_end(struct did *did)
{
	struct times times;
	u64 now = read_now(did, &times);
	u64 length = now - did->since_ns;
	u64 cpu = at_most(times.cpu_ns - did->times.cpu_ns, length);
	u64 delay = at_most(times.delay_ns - did->times.delay_ns, length - cpu);

	truth_log(did->truth, TRUTH_DID, (u16)did->what, did->since_ns, now, cpu, delay,
		  did->subject);
	did->since_ns = now;
	did->times = times;
}

void did_set(struct did *did, enum truth_did what, u64 subject)
{
	if (did->what == what && did->subject == subject)
		return;
	span_end(did);
	did->what = what;
	did->subject = subject;
}

void did_cut(struct did *did)
{
	if (truth_now_ns() - did->since_ns >= SPAN_NS)
		span_end(did);
}

void did_role_ends(struct did *did, enum truth_role role)
{
	u64 now = truth_now_ns();

	truth_log(did->truth, TRUTH_ROLE, (u16)role,
		  did->role_since_ns ? did->role_since_ns : did->born_ns, now, 0, 0, 0);
	did->role_since_ns = now;
}

void did_wait(struct did *did, u64 start_ns, u32 tid)
{
	truth_log(did->truth, TRUTH_WAIT, 0, start_ns, truth_now_ns(), tid, 0, 0);
}

void did_end(struct did *did, enum truth_role role)
{
	span_end(did);
	if (did->role_since_ns)
		truth_log(did->truth, TRUTH_ROLE, (u16)role, did->role_since_ns, did->since_ns, 0,
			  0, 0);
	truth_log(did->truth, TRUTH_THREAD, (u16)role, did->born_ns, did->since_ns, 0, 0, 0);
	if (did->times_fd >= 0)
		close(did->times_fd);
}
