/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* How the gateway is to be run, and whether that is safe. */
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include "abi/types.h"
#include "config/config.h"

#define SERVE_ADDRESSES_MAX CONFIG_LISTEN_MAX
#define SERVE_ORIGINS_MAX   CONFIG_ORIGINS_MAX

struct serve_config {
	const char *socket; /* of zerneld */
	const char *addresses[SERVE_ADDRESSES_MAX];
	size_t nr_addresses;
	bool has_port;
	u16 port; /* 0: the kernel chooses */
	const char *tls_cert;
	const char *tls_key;
	const char *tls_client_ca;
	const char *token_file;
	const char *origins[SERVE_ORIGINS_MAX];
	size_t nr_origins;
	const char *user; /* to become when started by root */
	u32 series_max;	  /* of /metrics */
};

/*
 * Fills in what the command line left out. The texts stay in `file`, whose lists are cut into
 * their items: it must outlive the result. An empty text of the command line unsets a key.
 */
void serve_config_fill(struct serve_config *config, struct config *file);

/* The socket address of a numeric IPv4 or IPv6 address; -EINVAL when it is none. */
int address_parse(const char *text, u16 port, struct sockaddr_storage *ret, socklen_t *ret_length);
/* Nobody but this machine can reach it. */
bool address_is_loopback(const struct sockaddr_storage *address);

/* NULL, or what is wrong and what to do about it. */
const char *serve_config_defect(const struct serve_config *config);
