/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The program zernel-serve, which `zernel serve` starts. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/log.h"
#include "cli/command.h"
#include "serve/run.h"

static int parse_port(struct command_call *call, u16 *ret)
{
	u64 port;
	int err = command_number(call, 0, 65535, &port);

	if (err < 0)
		return err;
	*ret = (u16)port;
	return 0;
}

static int parse_log_level(struct command_call *call, enum log_level *ret)
{
	if (log_level_parse(optarg, ret) < 0)
		return command_misuse(call, "--log-level must be " LOG_LEVELS ", not '%s'", optarg);
	return 0;
}

static int add(struct command_call *call, const char **list, size_t *nr, size_t max)
{
	if (*nr == max)
		return command_misuse(
			call, "cannot use --%s '%s': --%s can be repeated at most %zu times",
			call->option->name, optarg, call->option->name, max);
	list[(*nr)++] = optarg;
	return 0;
}

static int take_port(struct command_call *call, struct serve_config *config)
{
	config->has_port = true;
	return parse_port(call, &config->port);
}

struct request {
	struct serve_config config;
	const char *file; /* NULL: the default files */
	enum log_level log_level;
};

static int take_option(struct command_call *call, int option, struct request *request)
{
	struct serve_config *config = &request->config;

	switch (option) {
	case 'l': return add(call, config->addresses, &config->nr_addresses, SERVE_ADDRESSES_MAX);
	case 'o': return add(call, config->origins, &config->nr_origins, SERVE_ORIGINS_MAX);
	case 'p': return take_port(call, config);
	case 'v': return parse_log_level(call, &request->log_level);
	case 'C': request->file = optarg; return 0;
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

static int run(struct command_call *call)
{
	struct request request = { .log_level = LOG_LEVEL_INFO };
	struct config loaded;
	const char *defect;
	int option;

	while ((option = command_next(call)) != -1)
		if (take_option(call, option, &request) < 0)
			return COMMAND_MISUSED;
	if (command_operands(call, 0, 0) < 0)
		return COMMAND_MISUSED;
	if (load_config(request.file, &loaded) < 0)
		return EXIT_FAILURE;
	serve_config_fill(&request.config, &loaded);
	defect = serve_config_defect(&request.config);
	if (defect) {
		command_misuse(call, "%s", defect);
		return COMMAND_MISUSED;
	}
	log_start_service(request.log_level);
	return serve_run(&request.config) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct command command = command_serve;

	command.name = "zernel serve";
	command.run = run;
	return command_run(&command, argc, argv);
}
