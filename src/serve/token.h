/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The secret that a caller shows: "Authorization: Bearer <token>". */
#include <stdbool.h>
#include <stddef.h>

#define TOKEN_MIN 16
#define TOKEN_MAX 255

struct token {
	size_t length; /* 0: none is asked for */
	char text[TOKEN_MAX + 1];
};

/*
 * The first line of a file that only its owner and group may read. -EPERM: others may
 * read it too. -EBADMSG: it holds no token of TOKEN_MIN to TOKEN_MAX printable characters.
 */
int token_read(const char *path, struct token *ret);

/* Takes as long for a wrong token as for the right one. */
bool token_is_shown(const struct token *token, const char *authorization);
