/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The secret that a client sends: "Authorization: Bearer <token>". */
#include <stdbool.h>
#include <stddef.h>

#define TOKEN_MIN 16
#define TOKEN_MAX 255

struct token {
	size_t length; /* 0: no token is required */
	char text[TOKEN_MAX + 1];
};

/*
 * Reads a token from a file that only its owner and its group can access. -EPERM: other
 * users can access it. -EBADMSG: it does not contain TOKEN_MIN to TOKEN_MAX printable
 * characters.
 */
int token_read(const char *path, struct token *ret);

/*
 * Makes a file with a random token that its group can read, unless the file exists. The folder
 * decides which group that is (set-group-ID). 1: the file is new.
 */
int token_make(const char *path);

/* Compares in constant time. */
bool token_is_shown(const struct token *token, const char *authorization);

/*
 * The same for the list of subprotocols of a WebSocket: "zernel, bearer.<token in base64url>". A
 * page in a browser cannot set another header there.
 */
bool token_is_offered(const struct token *token, const char *protocols);
