/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Signals that a loop reads from a descriptor. They do not interrupt the program. A signal
 * that arrives between two reads stays pending, so no signal is lost.
 */
#include <pthread.h>
#include <signal.h>

/*
 * Blocks the signals that end a program (SIGINT, SIGTERM and SIGHUP) and those of `also`, a
 * list that ends with 0 (NULL: no more signals). *ret_fd is readable when a signal is pending
 * and is non-blocking. *ret_former (unless NULL) is the argument for signals_restore().
 */
int signals_open(const int *also, int *ret_fd, sigset_t *ret_former);

/* The number of the next pending signal, or 0. */
int signals_next(int fd);

/* Call it in a child before exec, because blocked signals stay blocked in the new program. */
void signals_restore(const sigset_t *former);

/* Starts a thread that blocks all signals, so that other threads receive them. */
int signals_start_thread(void *(*run)(void *ctx), void *ctx, pthread_t *ret);
