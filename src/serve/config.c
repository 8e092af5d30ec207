/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/config.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include "serve/request.h"

int address_parse(const char *text, u16 port, struct sockaddr_storage *ret, socklen_t *ret_length)
{
	struct sockaddr_storage address = {};
	struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		*ret_length = sizeof(*v4);
	} else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(port);
		*ret_length = sizeof(*v6);
	} else {
		return -EINVAL;
	}
	*ret = address;
	return 0;
}

bool address_is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;

	if (address->ss_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static const char *pick(const char *given, const char *file)
{
	const char *text = given ? given : file;

	return *text ? text : NULL;
}

static size_t split(char *list, const char **ret, size_t max)
{
	char *next, *item = strtok_r(list, ",", &next);
	size_t nr = 0;

	for (; item && nr < max; item = strtok_r(NULL, ",", &next))
		ret[nr++] = item;
	return nr;
}

void serve_config_fill(struct serve_config *config, struct config *file)
{
	struct config_serve *serve = &file->serve;

	if (!config->socket)
		config->socket = *serve->socket ? serve->socket : file->socket;
	config->tls_cert = pick(config->tls_cert, serve->tls_cert);
	config->tls_key = pick(config->tls_key, serve->tls_key);
	config->tls_client_ca = pick(config->tls_client_ca, serve->tls_client_ca);
	config->makes_token =
		!config->token_file && strcmp(serve->token_file, CONFIG_TOKEN_FILE) == 0;
	config->token_file = pick(config->token_file, serve->token_file);
	if (config->makes_token && config->tls_client_ca) {
		config->makes_token = false;
		config->token_file = NULL;
	}
	if (!config->user)
		config->user = serve->user;
	config->metrics = (struct metrics_config){
		.series_max = serve->series_max,
		.without_legacy = !serve->legacy_metrics,
		.dense_buckets = serve->dense_buckets,
	};
	config->history = serve->history;
	if (!config->has_port)
		config->port = (u16)serve->port;
	config->has_port = true;
	if (config->nr_addresses == 0)
		config->nr_addresses = split(serve->listen, config->addresses, SERVE_ADDRESSES_MAX);
	if (config->nr_origins == 0)
		config->nr_origins = split(serve->allow_origin, config->origins, SERVE_ORIGINS_MAX);
}

static const char *exposure_defect(const struct serve_config *config)
{
	if (!config->tls_cert)
		return "an address that other machines can reach needs TLS: set tls_cert and "
		       "tls_key "
		       "(--tls-cert, --tls-key), or listen on 127.0.0.1";
	/* A token that only this machine knows would keep all clients out. */
	if ((!config->token_file || config->makes_token) && !config->tls_client_ca)
		return "an address that other machines can reach must authenticate clients: set "
		       "token_file or tls_client_ca (--token-file, --tls-client-ca), or listen on "
		       "127.0.0.1";
	return NULL;
}

const char *serve_config_defect(const struct serve_config *config)
{
	struct sockaddr_storage address;
	const char *defect;
	socklen_t length;

	if (!config->tls_cert != !config->tls_key)
		return "a certificate needs its key, and a key needs its certificate: set both "
		       "tls_cert and tls_key (--tls-cert, --tls-key)";
	if (config->tls_client_ca && !config->tls_cert)
		return "client certificates need TLS: set tls_cert and tls_key (--tls-cert, "
		       "--tls-key)";
	for (size_t i = 0; i < config->nr_origins; i++)
		if (!origin_is_valid(config->origins[i]))
			return "an origin is scheme://host or scheme://host:port, for example "
			       "https://grafana.example:3000";
	for (size_t i = 0; i < config->nr_addresses; i++) {
		if (address_parse(config->addresses[i], 0, &address, &length) < 0)
			return "an address to listen on must be numeric, for example 127.0.0.1 or "
			       "::1; host names are not looked up";
		defect = address_is_loopback(&address) ? NULL : exposure_defect(config);
		if (defect)
			return defect;
	}
	return NULL;
}
