/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Runs a batch of cases in the kernel. The program is not attached: the test runs
 * it with BPF_PROG_TEST_RUN, and its global data is the input and the output.
 * Each part is a global function, which the verifier checks separately. In a
 * single function the paths of all parts would multiply.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "parity/parity.h"

struct parity_batch batch;

#define PART(name)                                                                                 \
	__noinline int run_##name(u32 i)                                                           \
	{                                                                                          \
		if (i >= PARITY_BATCH)                                                             \
			return 0;                                                                  \
		parity_##name(&batch.cases[i], &batch.results[i]);                                 \
		return 1;                                                                          \
	}

PART(phase)
PART(task)
PART(boundary)
PART(process)
PART(book)
PART(hist)
PART(tier)
PART(calls)
PART(comm)
PART(learner)
PART(idle)
PART(step)
PART(ledger)
PART(results)

SEC("syscall")
int parity_run(void *ctx)
{
	int i;

	bpf_for(i, 0, PARITY_BATCH) {
		if ((u32)i >= batch.nr_cases)
			break;
		run_phase(i);
		run_task(i);
		run_boundary(i);
		run_process(i);
		run_book(i);
		run_hist(i);
		run_tier(i);
		run_calls(i);
		run_comm(i);
		run_learner(i);
		run_idle(i);
		run_step(i);
		run_ledger(i);
		run_results(i);
		hist_record(&batch.hist, batch.cases[i].value);
		shared_hist_record_times(&batch.shared, batch.cases[i].value, 1);
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
