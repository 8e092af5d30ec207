/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Functions that term.c and table.c share. */
#include <stddef.h>
#include "cli/term.h"

u32 term_columns(const char *text);
void term_make_harmless(char *text);
void term_write(const struct term *term, enum style style, const char *text, size_t length);
