/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The messages between zerneld and the process that scans, over a SOCK_SEQPACKET socket. zerneld
 * trusts no byte of them: the process reads files that any user can craft.
 */
#include "abi/signals.h"
#include "collect/job_scan.h"
#include "collect/library_scan.h"
#include "collect/python_scan.h"
#include "collect/python_stack.h"

#define SCAN_ROWS_MAX	64
#define SCAN_PIDS_MAX	1024
/* A row that asks for the owner of a process. No file of a user is opened for it. */
#define SCAN_OWNER	LIBRARY_SCAN_KIND_NR
/* A row that asks for the names of the job of a process. */
#define SCAN_JOB	(LIBRARY_SCAN_KIND_NR + 1)
/* A row that asks for the interpreter of a process. */
#define SCAN_PYTHON	(LIBRARY_SCAN_KIND_NR + 2)
/* A row that asks for the stack of a thread. Its pid is the ID of the thread. */
#define SCAN_STACK	(LIBRARY_SCAN_KIND_NR + 3)
/* After this time, the rest of a request is not scanned, so that other users do not wait for it. */
#define SCAN_REQUEST_NS (50 * NSEC_PER_MSEC)

/* Without rows, it asks for a list of all processes. */
struct scan_request {
	u32 nr;
	u32 pad;
	struct {
		s32 pid;
		u32 kind; /* enum library_scan_kind, or one of the above */
	} rows[SCAN_ROWS_MAX];
};

/* For each row of a request: files, and then its end. Or lists, of which the last is not full. */
enum scan_message_kind {
	SCAN_FOUND, /* with the descriptor of the file */
	SCAN_SCANNED,
	SCAN_PIDS,
	SCAN_OWNED,	  /* the end of a row SCAN_OWNER */
	SCAN_NAMES,	  /* the end of a row SCAN_JOB */
	SCAN_REST,	  /* the last message: this row and the rows after it were not scanned */
	SCAN_INTERPRETER, /* the end of a row SCAN_PYTHON */
	SCAN_FRAME,
	SCAN_STACKED, /* the end of a row SCAN_STACK, after its frames */
	SCAN_MESSAGE_NR,
};

struct scan_owned {
	s32 pid;
	u32 pad;
	struct tenant owner;
};

struct scan_names {
	s32 pid;
	s32 error; /* the rest is not valid */
	struct job_scan job;
};

struct scan_interpreter {
	s32 pid;
	s32 error; /* `python` is not valid */
	struct python_cost cost;
	struct python_scan python;
};

/* A frame of a stack, innermost first. */
struct scan_frame {
	s32 pid;
	u32 index;
	struct python_place place; /* without a name: not known */
};

struct scan_stacked {
	s32 pid;
	s32 error; /* the rest is not valid */
	u32 uid;
	u32 nr; /* frames */
	u32 is_cut;
	u32 pad;
};

struct scan_message {
	u32 kind;
	u32 nr; /* of pids */
	union {
		struct library_found found;
		struct library_scanned scanned;
		s32 pids[SCAN_PIDS_MAX];
		struct scan_owned owned;
		struct scan_names names;
		struct scan_interpreter interpreter;
		struct scan_frame frame;
		struct scan_stacked stacked;
	};
};

/* Whether a message of `size` bytes, with or without a descriptor, is possible. */
bool scan_message_is_valid(const struct scan_message *message, size_t size, bool has_fd);

/*
 * The loop of the process: answers the requests on a socket until it is closed. `logs` is as in
 * job_scan.h.
 */
void scan_serve(int socket, const char *proc, const char *logs);
