/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The terminal of `zernel top`: shows a canvas and reads keys. */
#include "cli/top/top.h"

struct top_screen;

/* -ENOTTY: not a terminal; -ENODEV: unknown terminal type. */
int top_screen_open(enum colour colour, struct top_screen **ret);
/* Restores the terminal. */
struct top_screen *top_screen_close(struct top_screen *screen);

/* Returns an empty canvas of the current size of the terminal. */
int top_screen_begin(struct top_screen *screen, struct canvas **ret);
/* Shows the canvas. */
void top_screen_end(struct top_screen *screen);

/* Returns false if no event is pending. */
bool top_screen_event(struct top_screen *screen, struct top_event *ret);
