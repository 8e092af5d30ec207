/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/tls.h"
#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>

/* Accepts only clients with a certificate of this authority. */
static int load_client_ca(SSL_CTX *ctx, const char *path)
{
	X509_STORE *store = X509_STORE_new();
	STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(path);

	if (!store || !names || X509_STORE_load_file(store, path) != 1) {
		X509_STORE_free(store);
		sk_X509_NAME_pop_free(names, X509_NAME_free);
		return -EINVAL;
	}
	SSL_CTX_set_cert_store(ctx, store);
	SSL_CTX_set_client_CA_list(ctx, names);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return 0;
}

int tls_load(SSL_CTX *ctx, const struct serve_config *config)
{
	/* A resumed session would keep access that a reload revoked. */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS); /* idle clients hold no buffers */
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    SSL_CTX_use_certificate_chain_file(ctx, config->tls_cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, config->tls_key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_check_private_key(ctx) != 1)
		return -EINVAL;
	return config->tls_client_ca ? load_client_ca(ctx, config->tls_client_ca) : 0;
}

const char *tls_defect(const struct serve_config *config)
{
	static char text[256];
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	unsigned long error;

	ERR_clear_error();
	if (ctx && tls_load(ctx, config) == 0) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	error = ERR_get_error();
	/* For a file that cannot be opened, the reason is an errno. */
	if (ERR_SYSTEM_ERROR(error))
		snprintf(text, sizeof(text), "%s", strerror(ERR_GET_REASON(error)));
	else
		ERR_error_string_n(error, text, sizeof(text));
	ERR_clear_error();
	SSL_CTX_free(ctx);
	return text;
}
