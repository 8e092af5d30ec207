/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Takes the place of libbpf's header in the simulator: the types of the model are those that the
 * scheduler was compiled with, so nothing is relocated. As in the kernel, a read through NULL
 * yields 0.
 */
/* Each level has its own variable, because the levels are nested. */
#define SIM_READ(pointer, from, a)                                                                 \
	({                                                                                         \
		__auto_type pointer = (from);                                                      \
		pointer ? pointer->a : (typeof(pointer->a)){};                                     \
	})
#define SIM_READ_1(from, a)		   SIM_READ(___first, from, a)
#define SIM_READ_2(from, a, b)		   SIM_READ(___second, SIM_READ_1(from, a), b)
#define SIM_READ_3(from, a, b, c)	   SIM_READ(___third, SIM_READ_2(from, a, b), c)
#define SIM_READ_OF(_1, _2, _3, name, ...) name
#define BPF_CORE_READ(from, args...)                                                               \
	SIM_READ_OF(args, SIM_READ_3, SIM_READ_2, SIM_READ_1)(from, args)

#define BPF_CORE_READ_BITFIELD_PROBED(from, a) ((from)->a)
#define bpf_core_field_exists(field)	       1
#define bpf_core_enum_value(type, value)       (value)
#define bpf_core_read(to, size, from)	       bpf_probe_read_kernel(to, size, from)
