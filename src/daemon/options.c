/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/options.h"
#include <errno.h>
#include <getopt.h>
#include <string.h>
#include "base/macros.h"
#include "daemon/caps.h"

static void print_help(FILE *out)
{
	fputs("Usage: zerneld [OPTION...]\n"
	      "Watch ML processes, attach the zernel scheduler and answer clients on a Unix\n"
	      "socket until SIGTERM or SIGINT. zerneld needs root, and Linux 6.1 or newer.\n"
	      "The scheduler needs 6.12 or newer with sched_ext.\n"
	      "\n"
	      "  --config FILE          read only FILE and FILE.d/*.conf\n"
	      "  --attach WHEN          attach the scheduler: no (default), auto or yes\n"
	      "  --actuator WHICH       act with: auto (default), sched_ext, nice or none\n"
	      "  --without RULE,...     disable these rules of the policy\n"
	      "  --state DIRECTORY      keep the learned profiles in this directory\n"
	      "  --profiles N           maximum number of learned profiles\n"
	      "  --socket PATH          Unix socket on which to answer clients\n"
	      "  --log-level LEVEL      " LOG_LEVELS " (default: info)\n"
	      "  --foreground           log to standard error, also under a service manager\n"
	      "  --print-config         print every key with its default and exit\n"
	      "  --print-capabilities   print the capabilities that zerneld keeps and exit\n"
	      "  -h, --help             print this text and exit\n"
	      "  -V, --version          print the version and exit\n"
	      "\n"
	      "Exit status:\n"
	      "  0    Success.\n"
	      "  1    Failure; an error message was printed.\n"
	      "  2    Invalid usage.\n",
	      out);
}

static const struct option long_options[] = { { "config", required_argument, NULL, 'c' },
					      { "attach", required_argument, NULL, 'a' },
					      { "actuator", required_argument, NULL, 'A' },
					      { "without", required_argument, NULL, 'w' },
					      { "state", required_argument, NULL, 's' },
					      { "profiles", required_argument, NULL, 'p' },
					      { "socket", required_argument, NULL, 'S' },
					      { "log-level", required_argument, NULL, 'l' },
					      { "foreground", no_argument, NULL, 'f' },
					      { "print-config", no_argument, NULL, 'C' },
					      { "print-capabilities", no_argument, NULL, 'P' },
					      { "help", no_argument, NULL, 'h' },
					      { "version", no_argument, NULL, 'V' },
					      {} };

static const struct {
	int option;
	const char *key;
} keys[] = {
	{ 'a', "scheduler.attach" },  { 'A', "scheduler.actuator" },
	{ 'w', "scheduler.without" }, { 's', "learning.state_directory" },
	{ 'p', "learning.profiles" }, { 'S', "socket.path" },
};

static int take_override(struct options *options, int option, const char *value)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(keys) && keys[i].option != option)
		i++;
	if (i == ARRAY_SIZE(keys) || options->nr_overrides == OPTIONS_MAX)
		return -EINVAL;
	options->overrides[options->nr_overrides].key = keys[i].key;
	options->overrides[options->nr_overrides++].value = value;
	return 0;
}

static int parse_log_level(const char *text, enum log_level *ret)
{
	int err = log_level_parse(text, ret);

	if (err < 0)
		log_error("--log-level must be " LOG_LEVELS ", not '%s'", text);
	return err;
}

int options_parse(int argc, char **argv, struct options *ret)
{
	struct options options = { .log_level = LOG_LEVEL_INFO };
	int option, err = 0;

	while (err == 0 && (option = getopt_long(argc, argv, "hV", long_options, NULL)) != -1) {
		switch (option) {
		case 'c': options.config_file = optarg; break;
		case 'l': err = parse_log_level(optarg, &options.log_level); break;
		case 'f': options.foreground = true; break;
		case 'C': config_print(stdout); return 1;
		case 'P': caps_print(stdout); return 1;
		case 'h': print_help(stdout); return 1;
		case 'V': puts("zerneld " ZERNEL_VERSION); return 1;
		default: err = take_override(&options, option, optarg);
		}
	}
	if (err == 0 && optind < argc) {
		log_error("unexpected operand '%s'", argv[optind]);
		err = -EINVAL;
	}
	if (err < 0)
		fputs("Try 'zerneld --help'.\n", stderr);
	else
		*ret = options;
	return err;
}

int options_load_config(const struct options *options, struct config *ret,
			struct config_problem *problem)
{
	struct config config;
	int err;

	config_default(&config);
	err = config_load(&config, options->config_file, NULL, problem);
	for (u32 i = 0; i < options->nr_overrides && err == 0; i++) {
		err = config_set(&config, options->overrides[i].key, options->overrides[i].value,
				 problem);
		if (err < 0) {
			strcpy(problem->file, "command line");
			problem->line = 0;
		}
	}
	if (err < 0)
		return err;
	*ret = config;
	return 0;
}
