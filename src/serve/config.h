/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The configuration of the gateway, and the check that it is safe. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include "abi/types.h"
#include "config/config.h"
#include "metrics/metrics.h"

#define SERVE_ADDRESSES_MAX CONFIG_LISTEN_MAX
#define SERVE_ORIGINS_MAX   CONFIG_ORIGINS_MAX

struct serve_config {
	const char *socket; /* of zerneld */
	const char *addresses[SERVE_ADDRESSES_MAX];
	size_t nr_addresses;
	bool has_port;
	u16 port; /* 0: the kernel chooses a free port */
	const char *tls_cert;
	const char *tls_key;
	const char *tls_client_ca;
	const char *token_file;
	bool makes_token; /* token_file is the default: it is made if it does not exist */
	const char *origins[SERVE_ORIGINS_MAX];
	size_t nr_origins;
	const char *user; /* to change to when started by root */
	struct metrics_config metrics;
	bool history; /* keep the past in memory */
};

/*
 * Sets the values that the command line does not set. The strings stay in `file`, and its
 * lists are split in place, so `file` must outlive the result. An empty string on the
 * command line unsets a key.
 */
void serve_config_fill(struct serve_config *config, struct config *file);

/* Parses a numeric IPv4 or IPv6 address. -EINVAL: `text` is not a numeric address. */
int address_parse(const char *text, u16 port, struct sockaddr_storage *ret, socklen_t *ret_length);
/* True when only this machine can reach the address. */
bool address_is_loopback(const struct sockaddr_storage *address);

/* NULL when the configuration is valid; otherwise a text with the problem and the fix. */
const char *serve_config_defect(const struct serve_config *config);
