/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "collect/kernel.h"
#include "collect/topology.h"
#include "zernel.skel.h"

/* From the kernel's enum scx_exit_kind and scx_exit_code: user ABI by practice. */
#define EXIT_KIND_ERROR	  1024
#define EXIT_CODE_RESTART (1ULL << 48)

struct kernel {
	struct zernel_bpf *skel;
	struct bpf_link *scheduler;
	struct {
		struct bpf_link *enter;
		struct bpf_link *leave;
	} libraries[LIBRARY_MAX];
	struct ring_buffer *events;
	kernel_event_fn on_event;
	void *event_ctx;
	bool has_scheduler;
};

DEFINE_CLEANUP(struct kernel, kernel_free);

static kernel_log_fn libbpf_log;

/* libbpf's hook takes no context, hence the one static above. */
static int libbpf_print(enum libbpf_print_level level, const char *format, va_list args)
{
	CLEANUP_FREE char *text = NULL;
	int length;

	if (level > LIBBPF_WARN || !libbpf_log)
		return 0;
	length = vasprintf(&text, format, args);
	if (length < 0) {
		text = NULL;
		return 0;
	}
	if (length > 0 && text[length - 1] == '\n')
		text[length - 1] = '\0';
	libbpf_log(text);
	return 0;
}

static bool kernel_knows_sched_ext(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool known = btf && btf__find_by_name_kind(btf, "sched_ext_ops", BTF_KIND_STRUCT) > 0;

	btf__free(btf);
	return known;
}

/* The kernel's count of hotplug events: attaching fails if it moved since. */
static u64 hotplug_seq(void)
{
	uint64_t seq = 0;

	file_read_number("/sys/kernel/sched_ext/hotplug_seq", &seq);
	return seq;
}

static int configure_scheduler(struct zernel_bpf *skel)
{
	CLEANUP_FREE struct topology *topology = calloc(1, sizeof(*topology));
	int nr_cpus = libbpf_num_possible_cpus(), err;

	if (!topology)
		return -ENOMEM;
	if (nr_cpus < 0)
		return nr_cpus;
	/* The count first: a CPU that changes after it makes the attach fail, not lie. */
	skel->struct_ops.zernel->hotplug_seq = hotplug_seq();
	err = topology_read("/sys", nr_cpus, topology);
	if (err < 0)
		return err;
	skel->rodata->nr_llcs = topology->nr_llcs;
	memcpy((void *)skel->rodata->cpu_llc, topology->cpu_llc, sizeof(topology->cpu_llc));
	return 0;
}

static int leave_out_scheduler(struct zernel_bpf *skel)
{
	struct bpf_program *prog;
	int err;

	bpf_object__for_each_program(prog, skel->obj)
	{
		if (bpf_program__type(prog) != BPF_PROG_TYPE_STRUCT_OPS)
			continue;
		err = bpf_program__set_autoload(prog, false);
		if (err < 0)
			return err;
	}
	return bpf_map__set_autocreate(skel->maps.zernel, false);
}

int kernel_new(kernel_log_fn log, struct kernel **ret)
{
	CLEANUP(kernel_free_cleanup) struct kernel *kernel = calloc(1, sizeof(*kernel));
	int err;

	if (!kernel)
		return -ENOMEM;
	libbpf_log = log;
	libbpf_set_print(libbpf_print);

	kernel->has_scheduler = kernel_knows_sched_ext();
	kernel->skel = zernel_bpf__open();
	if (!kernel->skel)
		return -errno;
	err = kernel->has_scheduler ? configure_scheduler(kernel->skel)
				    : leave_out_scheduler(kernel->skel);
	if (err < 0)
		return err;
	err = zernel_bpf__load(kernel->skel);
	if (err < 0)
		return err;
	*ret = TAKE_PTR(kernel);
	return 0;
}

static void detach_slot(struct kernel *kernel, u32 slot)
{
	bpf_link__destroy(kernel->libraries[slot].enter);
	bpf_link__destroy(kernel->libraries[slot].leave);
	kernel->libraries[slot].enter = kernel->libraries[slot].leave = NULL;
}

struct kernel *kernel_free(struct kernel *kernel)
{
	if (!kernel)
		return NULL;
	kernel_detach_scheduler(kernel);
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++)
		detach_slot(kernel, slot);
	ring_buffer__free(kernel->events);
	zernel_bpf__destroy(kernel->skel);
	free(kernel);
	return NULL;
}

bool kernel_has_scheduler(const struct kernel *kernel)
{
	return kernel->has_scheduler;
}

int kernel_attach_scheduler(struct kernel *kernel)
{
	if (!kernel->has_scheduler)
		return -EOPNOTSUPP;
	kernel->scheduler = bpf_map__attach_struct_ops(kernel->skel->maps.zernel);
	return kernel->scheduler ? 0 : -errno;
}

void kernel_detach_scheduler(struct kernel *kernel)
{
	bpf_link__destroy(kernel->scheduler);
	kernel->scheduler = NULL;
}

const struct sched_exit *kernel_scheduler_exit(const struct kernel *kernel)
{
	const struct sched_exit *sched_exit = &kernel->skel->bss->sched_exit;

	return __atomic_load_n(&sched_exit->kind, __ATOMIC_ACQUIRE) ? sched_exit : NULL;
}

bool sched_exit_wants_restart(const struct sched_exit *sched_exit)
{
	return sched_exit->kind < EXIT_KIND_ERROR && (sched_exit->code & EXIT_CODE_RESTART);
}

bool sched_exit_is_clean(const struct sched_exit *sched_exit)
{
	return sched_exit->kind < EXIT_KIND_ERROR;
}

int kernel_attach_threads(struct kernel *kernel)
{
	struct zernel_bpf *skel = kernel->skel;

	skel->links.thread_switch = bpf_program__attach(skel->progs.thread_switch);
	skel->links.thread_waking = bpf_program__attach(skel->progs.thread_waking);
	skel->links.thread_fork = bpf_program__attach(skel->progs.thread_fork);
	skel->links.thread_exit = bpf_program__attach(skel->progs.thread_exit);
	return skel->links.thread_switch && skel->links.thread_waking && skel->links.thread_fork &&
			       skel->links.thread_exit
		       ? 0
		       : -errno;
}

/* One link for all entries, or all returns, that the rows ask for. */
static int attach_probes(struct bpf_program *prog, const struct library *library, bool returns,
			 struct bpf_link **ret)
{
	unsigned long offsets[ELF_SYMBOLS_MAX];
	__u64 cookies[ELF_SYMBOLS_MAX];
	LIBBPF_OPTS(bpf_uprobe_multi_opts, opts, .offsets = offsets, .cookies = cookies,
		    .retprobe = returns);
	struct bpf_link *link;

	for (u32 i = 0; i < library->probes.nr; i++) {
		const struct library_probe *probe = &library->probes.probe[i];

		if (returns && !call_wants_return(&call_rows[probe->call]))
			continue;
		offsets[opts.cnt] = probe->offset;
		cookies[opts.cnt++] = probe->call;
	}
	if (!opts.cnt)
		return 0;
	link = bpf_program__attach_uprobe_multi(prog, -1, library->path, NULL, &opts);
	if (!link)
		return -errno;
	*ret = link;
	return 0;
}

int kernel_attach_library(struct kernel *kernel, const struct library *library)
{
	struct zernel_bpf *skel = kernel->skel;
	int err;

	err = attach_probes(skel->progs.call_return, library, true,
			    &kernel->libraries[library->slot].leave);
	if (err == 0)
		err = attach_probes(skel->progs.call_enter, library, false,
				    &kernel->libraries[library->slot].enter);
	if (err < 0)
		detach_slot(kernel, library->slot);
	return err;
}

void kernel_detach_library(struct kernel *kernel, const struct library *library)
{
	detach_slot(kernel, library->slot);
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct kernel *kernel = ctx;

	if (size >= sizeof(struct event))
		kernel->on_event(kernel->event_ctx, data);
	return 0;
}

int kernel_open_events(struct kernel *kernel, kernel_event_fn on_event, void *ctx)
{
	kernel->on_event = on_event;
	kernel->event_ctx = ctx;
	kernel->events =
		ring_buffer__new(bpf_map__fd(kernel->skel->maps.events), on_record, kernel, NULL);
	return kernel->events ? 0 : -errno;
}

int kernel_read_events(struct kernel *kernel, int timeout_ms)
{
	return ring_buffer__poll(kernel->events, timeout_ms);
}

struct kernel_drops kernel_drops(const struct kernel *kernel)
{
	return (struct kernel_drops){
		.nr_events = kernel->skel->bss->nr_dropped_events,
		.nr_processes = kernel->skel->bss->nr_dropped_processes,
		.nr_frames = kernel->skel->bss->nr_dropped_frames,
	};
}

int kernel_for_each_process(struct kernel *kernel, kernel_process_fn on_process, void *ctx)
{
	int fd = bpf_map__fd(kernel->skel->maps.processes);
	struct process_key key, *previous = NULL;
	struct process_state state;

	while (bpf_map_get_next_key(fd, previous, &key) == 0) {
		if (bpf_map_lookup_elem(fd, &key, &state) == 0)
			on_process(ctx, &key, &state);
		previous = &key;
	}
	return 0;
}
