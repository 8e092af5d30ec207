/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The messages between zerneld and the process that scans, over a SOCK_SEQPACKET socket. zerneld
 * trusts no byte of them: the process reads files that any user can craft.
 */
#include "collect/library_scan.h"

#define SCAN_ROWS_MAX 64
#define SCAN_PIDS_MAX 1024

/* Without rows, it asks for a list of all processes. */
struct scan_request {
	u32 nr;
	u32 pad;
	struct {
		s32 pid;
		u32 kind; /* enum library_scan_kind */
	} rows[SCAN_ROWS_MAX];
};

/* For each row of a request: files, and then its end. Or lists, of which the last is not full. */
enum scan_message_kind {
	SCAN_FOUND, /* with the descriptor of the file */
	SCAN_SCANNED,
	SCAN_PIDS,
};

struct scan_message {
	u32 kind;
	u32 nr; /* of pids */
	union {
		struct library_found found;
		struct library_scanned scanned;
		s32 pids[SCAN_PIDS_MAX];
	};
};

/* Whether a message of `size` bytes, with or without a descriptor, is possible. */
bool scan_message_is_valid(const struct scan_message *message, size_t size, bool has_fd);

/* The loop of the process: answers the requests on a socket until it is closed. */
void scan_serve(int socket, const char *proc);
