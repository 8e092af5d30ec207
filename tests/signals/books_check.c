/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "signals/books_check.h"

#include <stdio.h>
#include <string.h>
#include "vgpu/include/vgpu.h"
#include "vgpu/include/vgpu_nvml.h"

static bool live_take(struct truth_books *books, u64 pointer)
{
	for (u32 i = 0; i < books->nr_live; i++)
		if (books->live[i] == pointer) {
			books->live[i] = books->live[--books->nr_live];
			return true;
		}
	return false;
}

/* Returns whether the runtime allocated the memory; it then counts at both levels. */
static bool is_runtimes(struct run *run, const struct truth_record *record)
{
	struct truth_books *books = &run->truth;

	if (run->scenario->is_hip)
		return true;
	if (record->sub == VGPU_ALLOC_VMM)
		return false;
	if (run->scenario->mode == BOOKS_AT_ONCE) {
		for (u32 i = 0; i < BOOKS_THREADS; i++)
			if (run->shared->tids[i] == record->tid)
				return books_level_of_thread(i) == LEVEL_RUNTIME;
		return false;
	}
	if (record->kind == TRUTH_FREE)
		return live_take(books, record->b);
	if (run->shared->level != LEVEL_RUNTIME || books->nr_live == MAX_LIVE)
		return false;
	books->live[books->nr_live++] = record->b;
	return true;
}

static void enter(struct truth_books *books, enum call_level level, const struct truth_record *r)
{
	struct memory_book *book = r->sub == VGPU_ALLOC_HOST
					   ? &books->host[level]
					   : &books->gpu[level][r->a % BOOKS_DEVICES];

	if (r->kind == TRUTH_FREE) {
		book->nr_frees++;
		book->current_bytes -= r->c;
		return;
	}
	book->nr_allocs++;
	book->current_bytes += r->c;
	if (book->peak_bytes < book->current_bytes)
		book->peak_bytes = book->current_bytes;
}

/* Reads the new records of the virtual GPU's log. */
static void run_read_truth(struct run *run)
{
	for (;; run->nr_read++) {
		struct truth_record *record = &run->records[run->nr_read];
		u16 kind = __atomic_load_n(&record->kind, __ATOMIC_ACQUIRE);

		if (kind == TRUTH_NONE)
			return;
		if (kind != TRUTH_ALLOC && kind != TRUTH_FREE)
			continue;
		if (is_runtimes(run, record))
			enter(&run->truth, LEVEL_RUNTIME, record);
		if (!run->scenario->is_hip)
			enter(&run->truth, LEVEL_DRIVER, record);
	}
}

static bool same(struct run *run, const char *what, u32 level, u32 device,
		 const struct memory_book *seen, const struct memory_book *truth)
{
	struct memory_book expected = *truth;

	/* The order of two concurrent calls cannot be known from outside. */
	if (run->scenario->mode == BOOKS_AT_ONCE)
		expected.peak_bytes = seen->peak_bytes;
	run->nr_comparisons += sizeof(expected) / sizeof(u64);
	if (memcmp(seen, &expected, sizeof(expected)) == 0)
		return true;
	printf("# %s %u at level %u after %s:\n", what, device, level, run->shared->call);
	printf("#   BPF programs: %llu bytes, peak %llu, %llu allocs, %llu frees\n",
	       seen->current_bytes, seen->peak_bytes, seen->nr_allocs, seen->nr_frees);
	printf("#   virtual GPU:  %llu bytes, peak %llu, %llu allocs, %llu frees\n",
	       truth->current_bytes, truth->peak_bytes, truth->nr_allocs, truth->nr_frees);
	return false;
}

/* The GPUs by their PCI addresses, which the runtimes of both vendors tell. */
static struct gpu_node read_node(void)
{
	struct gpu_node node = {};

	for (u32 i = 0; i < BOOKS_DEVICES; i++) {
		struct gpu_node_device *added = &node.devices[node.nr_devices++];
		nvmlPciInfo_t pci;
		nvmlDevice_t device;

		if (nvmlDeviceGetHandleByIndex_v2(i, &device) == NVML_SUCCESS &&
		    nvmlDeviceGetPciInfo_v3(device, &pci) == NVML_SUCCESS)
			added->has_pci = gpu_pci_parse(pci.busId, sizeof(pci.busId), &added->pci);
		added->gpu = i;
	}
	return node;
}

/* Returns the GPU number of the machine for a device of the process; `device` if not known yet. */
static u32 number_of(struct run *run, const struct process_state *process, u32 device)
{
	struct gpu_node node = read_node();
	struct gpu_numbers numbers = {};
	struct gpu_facts facts;

	if (kernel_read_gpu_facts(run->kernel, process, &facts) == 0)
		gpu_identify(&node, &facts, &numbers);
	if (numbers.of[device])
		return numbers.of[device] - 1U;
	if (process->task.has_gpu)
		printf("# device %u has no number\n", device);
	return device;
}

static bool compare_nvml(struct run *run, const struct process_state *process)
{
	enum call_level level = run->scenario->is_hip ? LEVEL_RUNTIME : LEVEL_DRIVER;

	for (u32 i = 0; i < BOOKS_DEVICES; i++) {
		u64 bytes = process->books[level][i].current_bytes;
		nvmlMemory_t memory;
		nvmlDevice_t device;

		if (nvmlDeviceGetHandleByIndex_v2(number_of(run, process, i), &device) ||
		    nvmlDeviceGetMemoryInfo(device, &memory))
			return false;
		run->nr_comparisons++;
		if (memory.used != bytes) {
			printf("# NVML: %llu bytes in use, BPF programs: %llu\n", memory.used,
			       bytes);
			return false;
		}
	}
	return true;
}

/* A copy may be taken during a write; a second copy is consistent. */
static void read_whole(struct run *run, struct process_state *ret_process)
{
	for (int i = 0; i < 1000; i++) {
		kernel_read_process(run->kernel, run->pidfd, ret_process);
		if (process_is_whole(ret_process))
			return;
	}
}

bool run_compare(struct run *run, bool with_nvml)
{
	static const struct memory_book nothing;
	struct process_state process = {};
	bool equal = true;

	kernel_read_events(run->kernel);
	run_read_truth(run);
	read_whole(run, &process);
	for (u32 level = 0; level < LEVEL_NR; level++) {
		for (u32 i = 0; i < GPU_MAX; i++) {
			const struct memory_book *truth =
				i < BOOKS_DEVICES
					? &run->truth.gpu[level][number_of(run, &process, i)]
					: &nothing;

			equal &= same(run, "device", level, i, &process.books[level][i], truth);
		}
		equal &= same(run, "host", level, 0, &process.host_books[level],
			      &run->truth.host[level]);
	}
	return equal && process_is_whole(&process) && (!with_nvml || compare_nvml(run, &process));
}

static bool is_filled(const struct memory_book *book)
{
	return book->peak_bytes && book->nr_allocs && book->nr_frees;
}

bool run_filled_books(const struct run *run)
{
	u32 nr_levels = run->scenario->is_hip ? 1 : LEVEL_NR;
	bool filled = true;

	for (u32 level = 0; level < nr_levels; level++) {
		for (u32 i = 0; i < BOOKS_DEVICES; i++)
			filled &= is_filled(&run->truth.gpu[level][i]);
		filled &= is_filled(&run->truth.host[level]);
	}
	return filled;
}

bool run_left_nothing(struct run *run, bool sweep)
{
	bool nothing;

	kernel_read_events(run->kernel);
	if (sweep)
		kernel_sweep(run->kernel);
	nothing = kernel_nr_entries(run->kernel) == 0;
	for (u32 i = 0; i < BOOKS_DEVICES; i++) {
		nvmlMemory_t memory;
		nvmlDevice_t device;

		nothing &= !nvmlDeviceGetHandleByIndex_v2(i, &device) &&
			   !nvmlDeviceGetMemoryInfo(device, &memory) && memory.used == 0;
	}
	return nothing;
}
