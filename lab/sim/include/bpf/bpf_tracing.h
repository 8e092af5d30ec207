/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Takes the place of libbpf's header in the simulator: a program is a function. */
#define BPF_PROG(name, args...) name(args)
