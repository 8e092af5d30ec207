/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Takes the place of libbpf's header when the scheduler is compiled for the simulator. A map is
 * an ordinary variable; macros pass its address and its shape to the model. A loop of BPF is an
 * ordinary loop that counts its steps.
 */
#include <stdbool.h>
#include <stddef.h>
#include <linux/bpf.h>
#include <linux/types.h>

#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

#define SEC(name) __attribute__((unused))
#define __ksym
#define __weak	 __attribute__((weak))
#define __hidden __attribute__((visibility("hidden")))
#undef __noinline
#define __noinline __attribute__((noinline))
#define __arg_trusted
#define __arg_nonnull

#define barrier_var(var)     asm volatile("" : "+r"(var))
#define bpf_ksym_exists(sym) (!!(sym))

struct task_struct;
struct pt_regs;

struct map_shape {
	__u32 type, max_entries, key_size, value_size;
};

#define SIM_NUMBER(member) (sizeof(*(member)) / sizeof(int)) /* what __uint() encoded */
#define SIM_SHAPE(map)                                                                             \
	(&(const struct map_shape){ SIM_NUMBER((map)->type), SIM_NUMBER((map)->max_entries),       \
				    sizeof(*(map)->key), sizeof(*(map)->value) })
#define SIM_STACK(map)                                                                             \
	(&(const struct map_shape){ SIM_NUMBER((map)->type), SIM_NUMBER((map)->max_entries), 0,    \
				    sizeof(*(map)->value) })

void *sim_storage(void *map, __u32 size, struct task_struct *p, __u64 flags);
void *sim_lookup(void *map, const struct map_shape *shape, const void *key);
long sim_update(void *map, const struct map_shape *shape, const void *key, const void *value);
long sim_delete(void *map, const struct map_shape *shape, const void *key);
long sim_push(void *map, const struct map_shape *shape, const void *value);
long sim_pop(void *map, const struct map_shape *shape, void *value);
void sim_timer_init(void *timer, void *map, const struct map_shape *shape);
void sim_timer_set(void *timer, void *callback);
void sim_timer_start(void *timer, __u64 delay_ns);

#define bpf_task_storage_get(map, p, value_, flags)                                                \
	sim_storage(map, sizeof(*(map)->value), p, flags)
#define bpf_map_lookup_elem(map, key_)		      sim_lookup(map, SIM_SHAPE(map), key_)
#define bpf_map_update_elem(map, key_, value_, flags) sim_update(map, SIM_SHAPE(map), key_, value_)
#define bpf_map_delete_elem(map, key_)		      sim_delete(map, SIM_SHAPE(map), key_)
#define bpf_map_push_elem(map, value_, flags)	      sim_push(map, SIM_STACK(map), value_)
#define bpf_map_pop_elem(map, value_)		      sim_pop(map, SIM_STACK(map), value_)
#define bpf_timer_init(timer, map, clock)	      sim_timer_init(timer, map, SIM_SHAPE(map))
#define bpf_timer_set_callback(timer, callback)	      sim_timer_set(timer, (void *)(callback))
#define bpf_timer_start(timer, delay_ns, flags)	      sim_timer_start(timer, delay_ns)

__u64 bpf_ktime_get_ns(void);
__u64 bpf_ktime_get_boot_ns(void);
__u32 bpf_get_smp_processor_id(void);
__u32 bpf_get_prandom_u32(void);
struct task_struct *bpf_get_current_task_btf(void);
struct pt_regs *bpf_task_pt_regs(struct task_struct *p);
long bpf_probe_read_kernel(void *to, __u32 size, const void *from);
long bpf_probe_read_kernel_str(void *to, __u32 size, const void *from);
void *bpf_ringbuf_reserve(void *map, __u64 size, __u64 flags);
void bpf_ringbuf_submit(void *record, __u64 flags);

struct sim_loop {
	__u64 at, from, end;
};

/* Counts a step of a loop. */
void sim_step(const struct sim_loop *loop);

#define bpf_for(i, start, end_)                                                                    \
	for (struct sim_loop ___it = { (start), (start), (end_) };                                 \
	     ___it.at < ___it.end && (sim_step(&___it), (i) = ___it.at++, true);)

#define bpf_for_each(type, cur, args...)                                                           \
	for (struct bpf_iter_##type ___it __attribute__((cleanup(bpf_iter_##type##_destroy))),     \
	     *___once = (bpf_iter_##type##_new(&___it, ##args), NULL);                             \
	     !___once && ((cur) = bpf_iter_##type##_next(&___it));)
