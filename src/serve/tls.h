/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The server's certificate and key, and whose clients it believes. */
#include <openssl/ssl.h>
#include "serve/config.h"

/* NULL, or what is wrong with the files; the text is good until the next call. */
const char *tls_defect(const struct serve_config *config);

/*
 * Puts what the files hold now into `ctx`; connections made from then on see it. Call
 * tls_defect() first: half of a pair is not taken back.
 */
int tls_load(SSL_CTX *ctx, const struct serve_config *config);
