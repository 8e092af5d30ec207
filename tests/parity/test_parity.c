/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The kernel and user space compile the same headers. Random cases show that both
 * give the same results, byte for byte. Fixed cases show that the results of the
 * kernel are also correct: random cases cannot find a mistake that both sides
 * share.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include <bpf/bpf.h>

#include "base/macros.h"
#include "parity/parity.h"
#include "parity.skel.h"
#include "property/random.h"
#include "unit/phase_vectors.h"

#define STANDARD_VECTORS 100000

static struct parity_batch *batch_of(void **state)
{
	struct parity *skel = *state;

	return &skel->bss->batch;
}

static void run_in_kernel(void **state, u32 nr_cases)
{
	struct parity *skel = *state;
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	batch_of(state)->nr_cases = nr_cases;
	assert_int_equal(bpf_prog_test_run_opts(bpf_program__fd(skel->progs.parity_run), &opts), 0);
	assert_int_equal(opts.retval, 0);
}

static int start_afresh(void **state)
{
	memset(batch_of(state), 0, sizeof(struct parity_batch));
	return 0;
}

static void kernel_gives_the_expected_phases(void **state)
{
	struct parity_batch *b = batch_of(state);

	_Static_assert(NR_PHASE_VECTORS <= PARITY_BATCH, "one batch contains all vectors");
	for (u32 i = 0; i < NR_PHASE_VECTORS; i++) {
		b->cases[i].config = phase_vector_config(&phase_vectors[i]);
		b->cases[i].task.signals = phase_vectors[i].signals;
		b->cases[i].task.phase = phase_vectors[i].current;
	}
	for (u32 call = 0; call < PHASE_VECTOR_CALLS; call++) {
		run_in_kernel(state, NR_PHASE_VECTORS);
		for (u32 i = 0; i < NR_PHASE_VECTORS; i++) {
			const struct phase_vector *v = &phase_vectors[i];
			const struct task_state *after = &b->results[i].detected;

			b->cases[i].task = *after;
			if (call >= v->nr_calls)
				continue;
			if (after->phase != v->phase[call])
				print_error("# '%s', call %u\n", v->name, call + 1);
			assert_string_equal(phase_name(after->phase), phase_name(v->phase[call]));
			if (call + 1 == v->nr_calls)
				assert_int_equal(after->nr_transitions, v->nr_transitions);
		}
	}
}

static void kernel_books_the_time_in_each_phase(void **state)
{
	static const struct {
		enum phase phase;
		u64 now;
	} steps[] = {
		{ PHASE_DATA_LOADING, 1000 },
		{ PHASE_GPU_COMPUTE, 5000 },
		{ PHASE_OPTIMIZER, 8000 },
	};
	struct parity_batch *b = batch_of(state);

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		b->cases[0].next_phase = steps[i].phase;
		b->cases[0].now = steps[i].now;
		run_in_kernel(state, 1);
		b->cases[0].task = b->results[0].transitioned;
	}
	assert_int_equal(b->cases[0].task.phase_ns[PHASE_DATA_LOADING], 4000);
	assert_int_equal(b->cases[0].task.phase_ns[PHASE_GPU_COMPUTE], 3000);
}

static void kernel_fills_the_expected_buckets(void **state)
{
	struct parity_batch *b = batch_of(state);
	struct hist shared;

	for (u32 i = 0; i < 100; i++)
		b->cases[i].value = 1000 * (i + 1);
	run_in_kernel(state, 100);
	/* 2^-19.75 s is 1.13 us, 2^-13.25 s is 103 us */
	assert_int_equal(b->results[0].slot, HIST_SCHEMA_OFFSET - 79);
	assert_int_equal(b->results[99].slot, HIST_SCHEMA_OFFSET - 53);
	assert_int_equal(b->hist.count, 100);
	assert_int_equal(b->hist.sum, 5050000);
	assert_int_equal(b->hist.min, 1000);
	assert_int_equal(b->hist.max, 100000);
	assert_int_equal(hist_mean(&b->hist), 50500);
	assert_in_range(hist_quantile(&b->hist, 500), 51000 * 0.909, 51000 * 1.091);
	assert_in_range(hist_quantile(&b->hist, 990), 100000 * 0.909, 100000);
	shared = hist_of_shared(&b->shared);
	assert_memory_equal(&shared, &b->hist, sizeof(shared));
}

static void kernel_splits_by_color_and_key(void **state)
{
	struct parity_batch *b = batch_of(state);

	for (u32 i = 0; i < 4; i++) {
		b->cases[i].group = (struct comm_group){
			.present = 15,
			.member = { { 0, 0 }, { 0, -1 }, { COMM_NO_COLOR, 0 }, { 0, 0 } },
		};
		b->cases[i].rank = i;
	}
	run_in_kernel(state, 4);
	assert_int_equal(b->results[0].place.rank, 1);
	assert_int_equal(b->results[1].place.rank, 0);
	assert_int_equal(b->results[2].place.nr_ranks, 0);
	assert_int_equal(b->results[3].place.rank, 2);
	assert_int_equal(b->results[3].place.nr_ranks, 3);
}

static void kernel_numbers_collectives(void **state)
{
	struct parity_batch *b = batch_of(state);
	const struct collective_call *call = &b->results[0].sequence.calls[1];

	for (u32 i = 0; i < 2; i++) {
		/* The second one is rejected. */
		b->cases[i] = (struct parity_case){
			.now = 10, .value = 4096, .average = 12, .observed = i ? 0 : 2
		};
		b->results[i].sequence = (struct sequence){};
	}
	run_in_kernel(state, 2);
	assert_int_equal(b->results[0].sequence.nr, 1);
	assert_int_equal(call->entered_ns, 10);
	assert_int_equal(call->returned_ns, 12);
	assert_int_equal(call->bytes, 4096);
	assert_int_equal(b->results[1].sequence.nr, 0);
}

/*
 * Few colors and keys, so that ranks share them. Often all ranks are present,
 * else any subset.
 */
static struct comm_group random_group(struct random *r, u32 nr_ranks)
{
	struct comm_group group = { .present = random_u64(r) };

	if (nr_ranks && nr_ranks <= COMM_MEMBERS_MAX && random_below(r, 4))
		group.present = ~0ULL >> (COMM_MEMBERS_MAX - nr_ranks);
	for (u32 i = 0; i < COMM_MEMBERS_MAX; i++)
		group.member[i] = (struct comm_member){
			.color = (s32)random_below(r, 4) - 1,
			.key = random_below(r, 2) ? (s32)random_below(r, 4) : (s32)random_u64(r),
		};
	return group;
}

static void kernel_keeps_the_memory_peak(void **state)
{
	struct parity_batch *b = batch_of(state);

	b->cases[0].book = (struct memory_book){ 100, 150, 4, 3 };
	b->cases[0].value = 40;
	b->cases[1].book = (struct memory_book){ 100, 150, 4, 3 };
	b->cases[1].value = 60;
	run_in_kernel(state, 2);
	assert_int_equal(b->results[0].allocated.current_bytes, 140);
	assert_int_equal(b->results[0].allocated.peak_bytes, 150);
	assert_int_equal(b->results[0].allocated.nr_allocs, 5);
	assert_int_equal(b->results[1].allocated.peak_bytes, 160);
	assert_int_equal(b->results[1].freed.current_bytes, 40);
	assert_int_equal(b->results[1].freed.peak_bytes, 150);
	assert_int_equal(b->results[1].freed.nr_frees, 4);
}

static struct rate random_rate(struct random *r)
{
	return (struct rate){ random_any(r) >> random_below(r, 64),
			      random_below(r, 4) ? random_any(r) >> random_below(r, 64) : 0 };
}

static struct learner random_learner(struct random *r)
{
	return (struct learner){
		.woken = random_rate(r),
		.waking = random_rate(r),
		.switched = random_rate(r),
		.ran_ns = random_any(r),
		.burst_ns = random_any(r) >> random_below(r, 64),
		.slept_ns = random_any(r) >> random_below(r, 64),
		.sleeps_since_ns = random_below(r, 2) ? random_any(r) : 0,
		.runtime_avg_ns = random_any(r) >> random_below(r, 64),
		.sleep_avg_ns = random_any(r) >> random_below(r, 64),
		.told_ns = random_below(r, 2) ? random_any(r) : 0,
		.partners = random_below(r, 64 * LEARN_PARTS),
		.age = random_below(r, 2 * LEARN_AGE),
		.doubt = random_below(r, 2 * LEARN_PATIENCE),
		.tier = (u8)random_below(r, TIER_NR),
		.told_tier = (u8)random_below(r, TIER_NR),
		.predicted = (u8)random_below(r, 2),
		.nr_bursts = (u16)random_below(r, LEARN_AGE + 1),
	};
}

static struct procdb_record random_prediction(struct random *r)
{
	return (struct procdb_record){
		.tier = (u8)random_below(r, TIER_NR + 1),
		.behaviour = { .runtime_avg_ns = random_any(r) >> random_below(r, 64),
			       .runtime_dev_ns = random_any(r) >> random_below(r, 64) },
	};
}

static struct idle_account random_account(struct random *r)
{
	struct idle_account account = {
		.since_ns = random_below(r, 8) ? random_any(r) : 0,
		.busy_ns = random_any(r),
		.done.pending_ns = random_any(r),
		.open.pending_ns = random_any(r),
		.doing = random_below(r, 8) ? random_below(r, IDLE_UNDECIDED + 1) : random_any32(r),
		.gpu = (u8)random_below(r, IDLE_GPU_NR),
		.in_collective = random_below(r, 8) == 0,
		.sleeps_on_lock = (u8)random_below(r, 2),
		.had_data = (u8)random_below(r, 2),
	};

	for (u32 i = 0; i < IDLE_CAUSE_NR; i++) {
		account.done.cause_ns[i] = random_any(r);
		account.open.cause_ns[i] = random_any(r);
	}
	return account;
}

/* A state in the middle of cycles that repeat exactly or almost. */
static struct step_state random_steps(struct random *r)
{
	u32 period = random_below(r, STEP_PERIOD_MAX + 1);
	struct step_state step = {
		.nr_cycles = random_any(r),
		.nr_launches = random_any(r),
		.nr_copies = random_below(r, 2),
		.ended_ns = random_any(r),
		.nr_between = (u16)random_below(r, 2 * STEP_DOUBT_MAX),
		.nr_fits = (u8)random_below(r, STEP_DOUBT_MAX + 1),
		.period = (u8)period,
		.place = (u8)(period ? random_below(r, period) : 0),
		.had_collective = (u8)random_below(r, 2),
		.with_result = (u16)random_any32(r),
		.last_result = (u8)random_any32(r),
		.basis = (u8)random_below(r, STEP_BASIS_NR),
		.nr_cleared = (u8)random_below(r, 3),
	};

	for (u32 i = 0; i < STEP_RESULTS; i++)
		step.results[i] = random_below(r, 64 * LEDGER_STREAMS);
	step.nr_judged = step.nr_cycles - random_below(r, STEP_RING);
	for (u32 i = 0; i < STEP_RING; i++) {
		step.ends_ns[i] = random_any(r);
		step.looks[i] = (u8)random_any32(r);
	}
	for (u32 i = 0; i < STEP_PATTERN; i++) {
		step.runs[i] = (u8)random_below(r, 2 * STEP_SURE);
		step.pattern[i] = step.looks[random_below(r, STEP_RING)];
	}
	return step;
}

/* Often a known prefix, sometimes with a wrong character. */
static void random_scope(struct random *r, char ret[SCOPE_NAME_BYTES])
{
	memcpy(ret, scope_prefixes[random_below(r, SCOPE_NR)], SCOPE_NAME_BYTES);
	ret[random_below(r, SCOPE_NAME_BYTES)] = (char)random_any32(r);
	ret[SCOPE_NAME_BYTES - 1] = 0;
}

/* Some streams are done, some are not, and some wait for other streams. */
static struct ledger random_ledger(struct random *r)
{
	struct ledger ledger = {};

	for (u32 i = 0; i < LEDGER_STREAMS; i++) {
		struct ledger_stream *stream = &ledger.streams[i];
		u64 nr = random_below(r, 64);

		*stream = (struct ledger_stream){
			.handle = random_below(r, 32),
			.nr_queued = nr,
			.nr_done = random_below(r, 2) ? nr : random_below(r, (u32)nr + 1),
			.is_capturing = random_below(r, 8) == 0,
		};
		for (u32 k = 0; k < LEDGER_WAITS; k++)
			stream->waits[k] = (struct ledger_wait){
				.at = random_below(r, 64),
				.mark = { random_below(r, 64), random_below(r, LEDGER_STREAMS) },
			};
	}
	return ledger;
}

/* Usually a window has passed and no boundary holds, so that the rule decides. */
static struct process_state random_process(struct random *r, const struct parity_case *c)
{
	struct process_state process = { .task = c->task };
	bool has_passed = c->now > 2 * PROCESS_WINDOW_NS && random_below(r, 4);

	process.task.phase = phase_of(process.task.phase);
	process.task.inferred = (u8)random_below(r, 2);
	process.window = (struct process_window){
		.since_ns = has_passed ? c->now - 2 * PROCESS_WINDOW_NS : random_any(r) >> 1,
		.busy_ns = random_any(r) >> random_below(r, 64),
		.io_wait_ns = random_any(r) >> random_below(r, 64),
		.burst_ns = random_below(r, 2) ? random_any(r) : 0,
		.nr_futex_waits = random_below(r, 3),
	};
	return process;
}

static struct parity_case random_case(struct random *r)
{
	struct phase_config config = random_config(r);
	struct parity_case c = {
		.config = config,
		.task = random_task(r, &config),
		.now = random_any(r),
		.value = random_any(r),
		.average = random_any(r),
		.book = { random_any(r), random_any(r), random_any(r), random_any(r) },
		.observed = random_below(r, 4) ? random_below(r, 4) : random_any32(r),
		.nr_observations = random_any32(r),
		.next_phase = random_below(r, 8) ? random_below(r, PHASE_NR) : random_any32(r),
		.handle = random_any(r) >> random_below(r, 64),
		.world = { random_below(r, 3), (s32)random_any32(r), random_any32(r) },
	};

	c.rank = random_below(r, 8) ? random_below(r, COMM_MEMBERS_MAX + 2) : random_any32(r);
	c.group = random_group(r, c.rank);
	c.learner = random_learner(r);
	c.waker = random_learner(r);
	c.prediction = random_prediction(r);
	c.idle = random_account(r);
	c.share = (struct wait_share){ random_any(r),
				       random_any(r),
				       { random_any(r), random_any(r), random_any(r) } };
	c.step = random_steps(r);
	random_scope(r, c.scope);
	return c;
}

static void run_in_user_space(struct parity_batch *b)
{
	for (u32 i = 0; i < b->nr_cases; i++) {
		parity_phase(&b->cases[i], &b->results[i]);
		parity_task(&b->cases[i], &b->results[i]);
		parity_boundary(&b->cases[i], &b->results[i]);
		parity_process(&b->cases[i], &b->results[i]);
		parity_book(&b->cases[i], &b->results[i]);
		parity_hist(&b->cases[i], &b->results[i]);
		parity_tier(&b->cases[i], &b->results[i]);
		parity_calls(&b->cases[i], &b->results[i]);
		parity_comm(&b->cases[i], &b->results[i]);
		parity_learner(&b->cases[i], &b->results[i]);
		parity_idle(&b->cases[i], &b->results[i]);
		parity_step(&b->cases[i], &b->results[i]);
		parity_ledger(&b->cases[i], &b->results[i]);
		parity_results(&b->cases[i], &b->results[i]);
		hist_record(&b->hist, b->cases[i].value);
		shared_hist_record_times(&b->shared, b->cases[i].value, 1);
	}
}

static void empty_hists(struct parity_batch *b)
{
	memset(&b->hist, 0, sizeof(b->hist));
	memset(&b->shared, 0, sizeof(b->shared));
}

static void kernel_and_user_space_agree(void **state)
{
	static struct parity_batch here;
	struct parity_batch *kernel = batch_of(state);
	u64 nr_vectors = random_runs("PARITY_VECTORS", STANDARD_VECTORS), done = 0;
	u64 nr_phases[PHASE_NR] = {}, nr_news = 0, nr_tiers[TIER_NR] = {};
	u64 nr_steps = 0, nr_covered = 0, nr_scopes = 0, nr_inferred = 0, nr_taken_back = 0;
	struct random r = random_start();
	clock_t start = clock();

	while (done < nr_vectors) {
		u64 left = nr_vectors - done;

		empty_hists(&here);
		here.nr_cases = left < PARITY_BATCH ? (u32)left : PARITY_BATCH;
		for (u32 i = 0; i < here.nr_cases; i++)
			here.cases[i] = random_case(&r);
		for (u32 i = 0; i < here.nr_cases; i++) {
			here.results[i].process = random_process(&r, &here.cases[i]);
			here.results[i].ledger = random_ledger(&r);
		}
		memcpy(kernel->cases, here.cases, sizeof(here.cases));
		memcpy(kernel->results, here.results, sizeof(here.results));
		empty_hists(kernel);
		run_in_kernel(state, here.nr_cases);
		run_in_user_space(&here);
		assert_memory_equal(kernel, &here, sizeof(here));
		for (u32 i = 0; i < here.nr_cases; i++) {
			nr_phases[here.results[i].raw]++;
			nr_news += here.results[i].news & 1;
			nr_steps += here.results[i].has_ended;
			nr_covered += here.results[i].covers;
			nr_scopes += here.results[i].scope != SCOPE_NR;
			nr_inferred += here.results[i].nr_transitions[1] !=
				       here.results[i].nr_transitions[0];
			nr_taken_back += here.results[i].takes_back;
			nr_tiers[here.results[i].learner.tier]++;
		}
		done += here.nr_cases;
	}
	print_message("# %" PRIu64 " vectors with equal results in %.1f s\n", (uint64_t)done,
		      (double)(clock() - start) / CLOCKS_PER_SEC);
	/* If all cases had the same result, the test would prove little. */
	for (u32 i = 0; i < PHASE_NR && nr_vectors >= 1000; i++)
		assert_true(nr_phases[i] > done / 100);
	for (u32 i = 0; i < TIER_NR && nr_vectors >= 1000; i++)
		assert_true(nr_tiers[i] > done / 100);
	assert_true(nr_vectors < 1000 || nr_news > done / 100);
	assert_true(nr_vectors < 1000 || nr_steps > done / 100);
	assert_true(nr_vectors < 1000 || (nr_covered > done / 100 && nr_covered < done));
	assert_true(nr_vectors < 1000 || (nr_scopes > done / 100 && nr_scopes < done));
	assert_true(nr_vectors < 1000 || nr_inferred > done / 100);
	assert_true(nr_vectors < 1000 || nr_taken_back > done / 100);
}

int main(void)
{
	struct CMUnitTest parity[] = {
		cmocka_unit_test_setup(kernel_gives_the_expected_phases, start_afresh),
		cmocka_unit_test_setup(kernel_books_the_time_in_each_phase, start_afresh),
		cmocka_unit_test_setup(kernel_fills_the_expected_buckets, start_afresh),
		cmocka_unit_test_setup(kernel_splits_by_color_and_key, start_afresh),
		cmocka_unit_test_setup(kernel_numbers_collectives, start_afresh),
		cmocka_unit_test_setup(kernel_keeps_the_memory_peak, start_afresh),
		cmocka_unit_test_setup(kernel_and_user_space_agree, start_afresh),
	};
	struct parity *skel = parity__open_and_load();
	int r;

	if (!skel && (errno == EPERM || errno == ENOSYS)) {
		printf("1..0 # SKIP cannot load BPF programs on this kernel: %s\n",
		       strerror(errno));
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(parity); i++)
		parity[i].initial_state = skel;
	r = skel ? cmocka_run_group_tests(parity, NULL, NULL) : EXIT_FAILURE;
	parity__destroy(skel);
	return r;
}
