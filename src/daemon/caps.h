/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The capabilities that zerneld keeps while it runs. */
#include <stdio.h>

/*
 * Permanently drops every capability that is not in the table, also for programs that an
 * attacker could make zerneld start. Never adds a capability.
 */
int caps_drop(void);

/* Prints the table: each capability that zerneld keeps, and the reason. */
void caps_print(FILE *out);
