/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The processes of zerneld and what each of them may do: docs/operate/security.md. */
#include <linux/capability.h>
#include "base/sandbox.h"
#include "daemon/starter.h"

struct program_row {
	const char *file;
	const char *argument; /* or NULL */
	const char *build_dir;
	const char *user;
	u64 capabilities;
	u64 memory_bytes;
	u64 nr_files;
};

static const struct program_row program_rows[PROGRAM_NR] = {
	/* The vendor's library maps registers and memory of each GPU. */
	[PROGRAM_GPU] = { .file = "zernel-gpu",
			  .build_dir = "../../src/gpu/",
			  .user = "zernel-gpu",
			  .memory_bytes = 8ULL << 30,
			  .nr_files = 512 },
	[PROGRAM_FDINFO] = { .file = "zernel-discover",
			     .argument = "fdinfo",
			     .build_dir = "../../src/discover/",
			     .user = "zernel-discover",
			     .capabilities = SANDBOX_CAP(CAP_SYS_PTRACE),
			     .memory_bytes = 64ULL << 20,
			     .nr_files = 16 },
	[PROGRAM_LIBRARIES] = { .file = "zernel-discover",
				.argument = "libraries",
				.build_dir = "../../src/discover/",
				.user = "zernel-discover",
				.capabilities = SANDBOX_CAP(CAP_SYS_PTRACE) |
						SANDBOX_CAP(CAP_DAC_READ_SEARCH) |
						SANDBOX_CAP(CAP_CHECKPOINT_RESTORE),
				.memory_bytes = 256ULL << 20,
				.nr_files = 64 },
};

/* What zerneld-starter keeps: to become the users above, and what it passes on to them. */
#define PROGRAM_CAPABILITIES                                                                       \
	(SANDBOX_CAP(CAP_SETUID) | SANDBOX_CAP(CAP_SETGID) | SANDBOX_CAP(CAP_SETPCAP) |            \
	 SANDBOX_CAP(CAP_SYS_PTRACE) | SANDBOX_CAP(CAP_DAC_READ_SEARCH) |                          \
	 SANDBOX_CAP(CAP_CHECKPOINT_RESTORE))
