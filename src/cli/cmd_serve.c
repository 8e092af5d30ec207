/* SPDX-License-Identifier: GPL-2.0-only */
/* zernel serve: metrics and snapshots over HTTP and WebSocket. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/log.h"
#include "cli/command.h"
#include "export/protocol.h"
#include "serve/run.h"

static const struct {
	struct option option;
	const char *argument;
	const char *help;
} rows[] = {
	{ { "listen", required_argument, NULL, 'l' },
	  "ADDRESS",						  "a numeric address; may be given several times (127.0.0.1 and ::1)" },
	{ { "port", required_argument, NULL, 'p' },	    "PORT", "0 lets the kernel choose (9476)"				      },
	{ { "socket", required_argument, NULL, 's' },
	  "PATH",						     "where zerneld answers (" PROTOCOL_SOCKET ")"			},
	{ { "tls-cert", required_argument, NULL, 'c' },	"FILE", "certificate chain, PEM"						 },
	{ { "tls-key", required_argument, NULL, 'k' },       "FILE", "its key, PEM"						      },
	{ { "tls-client-ca", required_argument, NULL, 'a' },
	  "FILE",						     "callers show a certificate of this authority"			 },
	{ { "token-file", required_argument, NULL, 't' },
	  "FILE",						     "callers send the token in it: Authorization: Bearer TOKEN"	      },
	{ { "allow-origin", required_argument, NULL, 'o' },
	  "ORIGIN",						   "pages of this origin may ask too; may be given several times"	 },
	{ { "user", required_argument, NULL, 'u' },
	  "NAME",						     "whom to become when started by root (" SERVE_USER ")"		 },
	{ { "help", no_argument, NULL, 'h' },		      "",	  "this text"							      },
};
#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

static void usage(FILE *out)
{
	fputs("Usage: zernel serve [OPTION...]\n\n"
	      "Serves /metrics, /api/v1/snapshot, /ws, /healthz and /readyz. An address that "
	      "others\n"
	      "can reach needs TLS, and a token or certificates of clients. SIGHUP reads token "
	      "and\n"
	      "certificates again.\n\n",
	      out);
	for (size_t i = 0; i < NR_ROWS; i++)
		fprintf(out, "  --%-14s %-8s %s\n", rows[i].option.name, rows[i].argument,
			rows[i].help);
}

static int parse_port(const char *text, u16 *ret)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || value > 65535)
		return -EINVAL;
	*ret = (u16)value;
	return 0;
}

static int add(const char **list, size_t *nr, size_t max, const char *value)
{
	if (*nr == max)
		return -E2BIG;
	list[(*nr)++] = value;
	return 0;
}

static int take_option(struct serve_config *config, int option)
{
	switch (option) {
	case 'l': return add(config->addresses, &config->nr_addresses, SERVE_ADDRESSES_MAX, optarg);
	case 'o': return add(config->origins, &config->nr_origins, SERVE_ORIGINS_MAX, optarg);
	case 'p': return parse_port(optarg, &config->port);
	case 's': config->socket = optarg; return 0;
	case 'c': config->tls_cert = optarg; return 0;
	case 'k': config->tls_key = optarg; return 0;
	case 'a': config->tls_client_ca = optarg; return 0;
	case 't': config->token_file = optarg; return 0;
	case 'u': config->user = optarg; return 0;
	default: return -EINVAL;
	}
}

/* 1: only help was asked for. */
static int parse(int argc, char **argv, struct serve_config *config)
{
	struct option options[NR_ROWS + 1] = {};
	int option;

	for (size_t i = 0; i < NR_ROWS; i++)
		options[i] = rows[i].option;
	optind = 1;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (option == 'h')
			return 1;
		if (take_option(config, option) < 0)
			return -EINVAL;
	}
	return optind == argc ? 0 : -EINVAL;
}

int cmd_serve(int argc, char **argv)
{
	struct serve_config config = {
		.socket = PROTOCOL_SOCKET,
		.port = SERVE_PORT,
		.user = SERVE_USER,
	};
	int parsed = parse(argc, argv, &config);
	const char *defect;

	if (parsed != 0) {
		usage(parsed < 0 ? stderr : stdout);
		return parsed < 0 ? EXIT_USAGE : EXIT_SUCCESS;
	}
	defect = serve_config_defect(&config);
	if (defect) {
		log_error("%s", defect);
		return EXIT_USAGE;
	}
	return serve_run(&config) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
