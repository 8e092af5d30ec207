/* SPDX-License-Identifier: GPL-2.0-or-later */
/* zernel serve: metrics and snapshots over HTTP and WebSocket. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/log.h"
#include "cli/command.h"
#include "ipc/protocol.h"
#include "serve/run.h"

static const struct command_option options[] = {
	{ "config", 'C', "FILE", "instead of " CONFIG_FILE, COMPLETE_FILE },
	{ "listen", 'l', "ADDRESS",
	  "a numeric address; may be given several times (127.0.0.1 and ::1)" },
	{ "port", 'p', "PORT", "0 lets the kernel choose (9476)" },
	OPTION_SOCKET,
	{ "tls-cert", 'c', "FILE", "certificate chain, PEM", COMPLETE_FILE },
	{ "tls-key", 'k', "FILE", "its key, PEM", COMPLETE_FILE },
	{ "tls-client-ca", 'a', "FILE", "callers show a certificate of this authority",
	  COMPLETE_FILE },
	{ "token-file", 't', "FILE", "callers send the token in it: Authorization: Bearer TOKEN",
	  COMPLETE_FILE },
	{ "allow-origin", 'o', "ORIGIN",
	  "pages of this origin may ask too; may be given several times" },
	{ "user", 'u', "NAME", "user to run as when started by root (zernel-serve)" },
	{},
};

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

static int take_port(struct serve_config *config)
{
	config->has_port = true;
	return parse_port(optarg, &config->port);
}

static int take_option(struct serve_config *config, const char **file, int option)
{
	switch (option) {
	case 'l': return add(config->addresses, &config->nr_addresses, SERVE_ADDRESSES_MAX, optarg);
	case 'o': return add(config->origins, &config->nr_origins, SERVE_ORIGINS_MAX, optarg);
	case 'p': return take_port(config);
	case 'C': *file = optarg; return 0;
	case 's': config->socket = optarg; return 0;
	case 'c': config->tls_cert = optarg; return 0;
	case 'k': config->tls_key = optarg; return 0;
	case 'a': config->tls_client_ca = optarg; return 0;
	case 't': config->token_file = optarg; return 0;
	case 'u': config->user = optarg; return 0;
	default: return -EINVAL;
	}
}

static int load_config(const char *file, struct config *ret)
{
	struct config_problem problem;
	char text[sizeof(problem)];
	int err;

	config_default(ret);
	err = config_load(ret, file, NULL, &problem);
	if (err < 0) {
		config_problem_print(&problem, text, sizeof(text));
		log_error("%s", text);
	}
	return err;
}

static int run(const struct command *command, int argc, char **argv)
{
	struct serve_config config = {};
	const char *file = NULL, *defect;
	struct config loaded;
	int option;

	while ((option = command_next(command, argc, argv)) != -1)
		if (take_option(&config, &file, option) < 0)
			return COMMAND_MISUSED;
	if (optind != argc)
		return COMMAND_MISUSED;
	if (load_config(file, &loaded) < 0)
		return EXIT_FAILURE;
	serve_config_fill(&config, &loaded);
	defect = serve_config_defect(&config);
	if (defect) {
		log_error("%s", defect);
		return EXIT_USAGE;
	}
	return serve_run(&config) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

const struct command command_serve = {
	.name = "serve",
	.help = "metrics and snapshots over HTTP and WebSocket",
	.description =
		"Serves /metrics, /api/v1/snapshot, /ws, /healthz and /readyz. An address that\n"
		"other machines can reach needs TLS, and a token or certificates of clients.\n"
		"Options override section [serve] of zernel.conf(5); a list on the command line\n"
		"replaces the list of the file. SIGHUP reads token and certificates again.",
	.options = options,
	.run = run,
};
