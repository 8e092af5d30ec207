/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The protocol between zerneld and its clients: lines of JSON over a local socket.
 * docs/reference/protocol.md describes it; ipc/client.h is the client.
 */
#include <stdbool.h>
#include <stddef.h>
#include <yyjson.h>
#include "abi/types.h"

#define PROTOCOL_VERSION     2
/* The error text of a client if zerneld refuses this version. */
#define PROTOCOL_UPDATE_BOTH "speaks another protocol version: update both to the same version"
#define PROTOCOL_SOCKET	     "/run/zernel/zernel.sock"
/* Maximum length of a line, including the newline. */
#define PROTOCOL_REQUEST_MAX (64UL << 10)
#define PROTOCOL_REPLY_MAX   (16UL << 20)

/* The shortest interval for a user who may read only what belongs to the own processes. */
#define PROTOCOL_INTERVAL_OWN_MS     1000
#define PROTOCOL_INTERVAL_MIN_MS     100
#define PROTOCOL_INTERVAL_MAX_MS     3600000
#define PROTOCOL_INTERVAL_DEFAULT_MS 1000

/* Errors. Each has a fixed code that programs can rely on. */
enum protocol_error {
	PROTOCOL_OK,
	PROTOCOL_MALFORMED,	  /* not a request; zerneld closes the connection */
	PROTOCOL_TOO_LARGE,	  /* zerneld closes the connection */
	PROTOCOL_BUSY,		  /* too many clients; zerneld closes the connection */
	PROTOCOL_VERSION_DIFFERS, /* hello requested a version that zerneld does not support */
	PROTOCOL_HELLO_NEEDED,
	PROTOCOL_UNKNOWN_METHOD,
	PROTOCOL_INVALID, /* invalid parameters */
	PROTOCOL_FORBIDDEN,
	PROTOCOL_NOT_FOUND,
	PROTOCOL_UNSUPPORTED, /* not supported by this kernel, or not implemented */
	PROTOCOL_FAILED,
	PROTOCOL_ERROR_NR,
};

const char *protocol_error_code(enum protocol_error error);

/* A parsed request; `method` and `params` are valid as long as `doc`. */
struct protocol_request {
	yyjson_doc *doc;
	u64 id;
	const char *method;
	yyjson_val *params; /* an object, or NULL */
};

/* PROTOCOL_MALFORMED leaves *ret untouched. */
enum protocol_error protocol_request_parse(const char *line, size_t length,
					   struct protocol_request *ret);
void protocol_request_done(struct protocol_request *request);

/*
 * Writes one line without the newline; the caller frees it. `params` is the text of an
 * object, or NULL.
 */
int protocol_request_write(u64 id, const char *method, const char *params, char **ret,
			   size_t *ret_length);
/* The same with the newline. */
int protocol_request_line(u64 id, const char *method, const char *params, char **ret,
			  size_t *ret_length);
/* The parameters of jobs.ended for one job, or with NULL for all; the caller frees them. */
char *protocol_ended_params(const char *who);
/* The member `error` of a reply: {"code":...,"message":...}. */
int protocol_error_write(enum protocol_error error, const char *message, char **ret,
			 size_t *ret_length);
