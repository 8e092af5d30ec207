/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The certificate and key of the server, and the authority of client certificates. */
#include <openssl/ssl.h>
#include "serve/config.h"

/* NULL when the files are valid; otherwise the problem. The text is valid until the next call. */
const char *tls_defect(const struct serve_config *config);

/*
 * Loads the current files into `ctx`, for new connections. Call tls_defect() first: after a
 * failure, `ctx` may have a certificate without its key.
 */
int tls_load(SSL_CTX *ctx, const struct serve_config *config);
