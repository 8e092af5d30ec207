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

static const char *exposure_defect(const struct serve_config *config)
{
	if (!config->tls_cert)
		return "an address that others can reach needs TLS: give --tls-cert and --tls-key, "
		       "or listen on 127.0.0.1";
	if (!config->token_file && !config->tls_client_ca)
		return "an address that others can reach needs to know its callers: give "
		       "--token-file or --tls-client-ca, or listen on 127.0.0.1";
	return NULL;
}

const char *serve_config_defect(const struct serve_config *config)
{
	struct sockaddr_storage address;
	const char *defect;
	socklen_t length;

	if (!config->tls_cert != !config->tls_key)
		return "a certificate needs its key and a key its certificate: give both "
		       "--tls-cert and --tls-key";
	if (config->tls_client_ca && !config->tls_cert)
		return "certificates of clients need TLS: give --tls-cert and --tls-key";
	for (size_t i = 0; i < config->nr_origins; i++)
		if (!origin_is_valid(config->origins[i]))
			return "an origin is scheme://host or scheme://host:port, "
			       "as https://grafana.example:3000";
	for (size_t i = 0; i < config->nr_addresses; i++) {
		if (address_parse(config->addresses[i], 0, &address, &length) < 0)
			return "an address to listen on is a number, as 127.0.0.1 or ::1; "
			       "names are not looked up";
		defect = address_is_loopback(&address) ? NULL : exposure_defect(config);
		if (defect)
			return defect;
	}
	return NULL;
}
