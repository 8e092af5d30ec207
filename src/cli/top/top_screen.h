/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The terminal of `zernel top`: puts a canvas on it and reads its keys. */
#include "cli/top/top.h"

struct top_screen;

/* -ENOTTY: nobody would see it; -ENODEV: a terminal that nothing is known of. */
int top_screen_open(enum colour colour, struct top_screen **ret);
/* The terminal is as it was before. */
struct top_screen *top_screen_close(struct top_screen *screen);

/* Of the size the terminal has now, empty. */
int top_screen_begin(struct top_screen *screen, struct canvas **ret);
/* What was drawn since is seen. */
void top_screen_end(struct top_screen *screen);

/* False: there is none at the moment. */
bool top_screen_event(struct top_screen *screen, struct top_event *ret);
