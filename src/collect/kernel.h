/* SPDX-License-Identifier: GPL-2.0-only */
#pragma once

/*
 * The kernel side as user space sees it: loaded from one skeleton, configured
 * before it runs, and the only place that writes kernel maps.
 */
#include <stdbool.h>
#include "abi/sched.h"

struct kernel;

/* Called with what libbpf has to say when something goes wrong. */
typedef void (*kernel_log_fn)(const char *text);

/*
 * Opens, configures and loads. On a kernel without sched_ext all but the
 * scheduler is loaded; kernel_has_scheduler() tells.
 */
int kernel_new(kernel_log_fn log, struct kernel **ret);
struct kernel *kernel_free(struct kernel *kernel);

bool kernel_has_scheduler(const struct kernel *kernel);

/* -EBUSY: another scheduler is attached. -ESTALE: a CPU came or went, load again. */
int kernel_attach_scheduler(struct kernel *kernel);
void kernel_detach_scheduler(struct kernel *kernel);

/* How the scheduler ended, or NULL while it runs (or was never attached). */
const struct sched_exit *kernel_scheduler_exit(const struct kernel *kernel);

/* True when the kernel asks for a fresh start, as after an unforeseen hotplug. */
bool sched_exit_wants_restart(const struct sched_exit *sched_exit);
/* True when it was taken down in good order and not by an error. */
bool sched_exit_is_clean(const struct sched_exit *sched_exit);
