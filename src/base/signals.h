/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Signals that a loop reads from a descriptor instead of being interrupted by them. One that
 * comes between two reads waits, so none is lost.
 */
#include <pthread.h>
#include <signal.h>

/*
 * Blocks the signals that end a program (SIGINT, SIGTERM and SIGHUP) and those of `also`, a
 * list that ends with 0 (NULL: no others). *ret_fd is readable when one of them came, and
 * does not wait. *ret_former (unless NULL) is for signals_restore().
 */
int signals_open(const int *also, int *ret_fd, sigset_t *ret_former);

/* The number of the next signal that came; 0: none. */
int signals_next(int fd);

/* In a child, before it executes another program: a blocked signal stays blocked there. */
void signals_restore(const sigset_t *former);

/* Starts a thread that gets no signals: they are left to the threads of the program. */
int signals_start_thread(void *(*run)(void *ctx), void *ctx, pthread_t *ret);
