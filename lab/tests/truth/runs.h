/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Runs programs of the lab; each test has its own virtual GPU and directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/types.h>

/* A program that takes longer than this hangs, also on a machine with few free CPUs. */
#define HANG_SECONDS 120

struct place {
	char dir[64];
	char truth[80];
	char output[80];
};

int place_make(void **state);
int place_remove(void **state);
#define PLACED(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)
void remove_all(const char *path); /* a directory and the files in it */

/* The arguments end with NULL. */
pid_t run_start(const struct place *place, char *const argv[]);
/* Kills a program that hangs, so that its test fails and the next tests still run. */
int run_finish(pid_t pid);
#define START(place, ...) run_start(place, (char *const[]){ __VA_ARGS__, NULL })
#define RUN(place, ...)	  run_finish(START(place, __VA_ARGS__))

/* Returns a number from the JSON output of a program. */
double output_number(const struct place *place, const char *key);
