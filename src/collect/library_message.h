/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The messages between zerneld and the process that scans, over a SOCK_SEQPACKET socket. zerneld
 * trusts no byte of them: the process reads files that any user can craft.
 */
#include "abi/signals.h"
#include "collect/library_scan.h"

#define SCAN_ROWS_MAX	 64
#define SCAN_PIDS_MAX	 1024
/* A row that asks for the GPU numbers of a process, which follow from its environment. */
#define SCAN_ENVIRONMENT LIBRARY_SCAN_KIND_NR

/* Without rows, it asks for a list of all processes. */
struct scan_request {
	u32 nr;
	u32 pad;
	struct {
		s32 pid;
		u32 kind;    /* enum library_scan_kind, or SCAN_ENVIRONMENT */
		u32 runtime; /* for SCAN_ENVIRONMENT */
	} rows[SCAN_ROWS_MAX];
};

/* For each row of a request: files, and then its end. Or lists, of which the last is not full. */
enum scan_message_kind {
	SCAN_FOUND, /* with the descriptor of the file */
	SCAN_SCANNED,
	SCAN_PIDS,
	SCAN_NUMBERS, /* the end of a row SCAN_ENVIRONMENT */
};

struct scan_numbers {
	s32 pid;
	s32 error; /* the numbers are not valid */
	struct gpu_numbers numbers;
};

struct scan_message {
	u32 kind;
	u32 nr; /* of pids */
	union {
		struct library_found found;
		struct library_scanned scanned;
		s32 pids[SCAN_PIDS_MAX];
		struct scan_numbers numbers;
	};
};

/* Whether a message of `size` bytes, with or without a descriptor, is possible. */
bool scan_message_is_valid(const struct scan_message *message, size_t size, bool has_fd);

/* The loop of the process: answers the requests on a socket until it is closed. */
void scan_serve(int socket, const char *proc);
