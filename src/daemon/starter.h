/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The process zerneld-starter, which starts the processes that handle data of other users and of
 * vendors. zerneld forks it first of all: it has no file, thread or memory of the rest of zerneld,
 * and keeps the capabilities that zerneld drops and that these processes need. It reads nothing but
 * the number of a program and a socket: an attacker who controls zerneld can make it start these
 * programs, and nothing else.
 */
#include "base/macros.h"

enum program {
	PROGRAM_GPU,	   /* zernel-gpu: the vendor's library */
	PROGRAM_FDINFO,	   /* zernel-discover fdinfo: DRM descriptors of other users */
	PROGRAM_LIBRARIES, /* zernel-discover libraries: their maps and files */
	PROGRAM_NR,
};

struct starter;

int starter_new(struct starter **ret);
/* Ends the process and all that it started. */
struct starter *starter_free(struct starter *starter);
DEFINE_CLEANUP(struct starter, starter_free);

/* Becomes readable when the process has ended. It cannot be started again without its capabilities.
 */
int starter_fd(const struct starter *starter);

/*
 * Starts a program after the running one was killed, if any. *ret_fd is a non-blocking
 * SOCK_SEQPACKET socket, whose other end is the standard input of the program. It is closed when
 * the program ends, or could not be started. Never waits.
 */
int starter_start(struct starter *starter, enum program program, int *ret_fd);

/* Kills a program. Its socket must be closed by the caller. Never waits. */
void starter_kill(struct starter *starter, enum program program);
