/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that the checks share, and the checks. */
#include "cli/doctor/doctor.h"

#define DOCTOR_PATH_LEN 512

__attribute__((format(printf, 3, 4))) struct finding finding(enum verdict verdict, const char *fix,
							     const char *format, ...);

void doctor_path(const struct doctor *doctor, const char *path, char ret[static DOCTOR_PATH_LEN]);
bool doctor_exists(const struct doctor *doctor, const char *path);
/* Reads the start of a small file without its final newline; false if it cannot be read. */
bool doctor_read(const struct doctor *doctor, const char *path, char *ret, size_t size);

/* The features that this kernel lacks, as zerneld finds them, and those that zerneld reports as
 * refused. */
u32 doctor_lacks(const struct doctor *doctor);

struct finding check_kernel(const struct doctor *doctor);
struct finding check_features(const struct doctor *doctor);
struct finding check_sched_ext(const struct doctor *doctor);
struct finding check_btf(const struct doctor *doctor);
struct finding check_lockdown(const struct doctor *doctor);
struct finding check_schedulers(const struct doctor *doctor);
struct finding check_capabilities(const struct doctor *doctor);
struct finding check_zerneld(const struct doctor *doctor);
struct finding check_libraries(const struct doctor *doctor);
struct finding check_evidence(const struct doctor *doctor);
struct finding check_probe_cost(const struct doctor *doctor);
struct finding check_gpus(const struct doctor *doctor);
struct finding check_clock(const struct doctor *doctor);
struct finding check_memlock(const struct doctor *doctor);
struct finding check_files(const struct doctor *doctor);
struct finding check_pids(const struct doctor *doctor);
