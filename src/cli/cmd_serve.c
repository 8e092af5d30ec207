/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * zernel serve: serves a dashboard, metrics and snapshots over HTTP and WebSocket. The program
 * zernel-serve does that, so that `zernel` needs no network library: serve_main.c.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "config/config.h"
#include "ipc/protocol.h"

static const struct command_option options[] = {
	{ "config", 'C', "FILE", "read this file instead of " CONFIG_FILE, COMPLETE_FILE },
	{ "listen", 'l', "ADDRESS",
	  "listen on this numeric address; can be repeated (default: 127.0.0.1 and ::1)" },
	{ "port", 'p', "PORT", "listen on this port; 0 lets the kernel choose (default: 9476)" },
	OPTION_SOCKET,
	{ "tls-cert", 'c', "FILE", "serve TLS with this certificate chain (PEM)", COMPLETE_FILE },
	{ "tls-key", 'k', "FILE", "private key of the certificate (PEM)", COMPLETE_FILE },
	{ "tls-client-ca", 'a', "FILE", "require client certificates signed by this authority",
	  COMPLETE_FILE },
	{ "token-file", 't', "FILE",
	  "require the token in this file: Authorization: Bearer TOKEN; if empty, serve every user "
	  "of "
	  "this machine (default: " CONFIG_TOKEN_FILE ", made at the start if it does not exist)",
	  COMPLETE_FILE },
	{ "allow-origin", 'o', "ORIGIN",
	  "allow requests from web pages of this origin; can be repeated" },
	{ "log-level", 'v', "LEVEL",
	  "log lines of this severity or higher: " LOG_LEVELS " (default: info)" },
	{ "user", 'u', "NAME", "run as this user when started by root (default: zernel-serve)" },
	{},
};

/* Options are parsed by zernel-serve, with the table above. */
static int run(struct command_call *call)
{
	static const char *const places[] = { "zernel-serve", "../" PROGRAM_DIR "/zernel-serve" };
	static char name[] = "zernel-serve";
	char path[PATH_MAX];
	int option;

	call->argv[0] = name; /* for its log */
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (file_beside_program(places[i], path, sizeof(path)) == 0)
			execv(path, call->argv);
	/* Help and misuse are the same without it. */
	while ((option = command_next(call)) != -1)
		if (option == '?')
			return COMMAND_MISUSED;
	log_error("cannot start zernel-serve: %s; install the package zernel-serve",
		  strerror(errno));
	return EXIT_FAILURE;
}

const struct command command_serve = {
	.name = "serve",
	.help = "serve a dashboard, metrics and snapshots over HTTP and WebSocket",
	.description =
		"Serves a page at /, /metrics, /ws, /healthz, /readyz, and under /api/v1: "
		"snapshot,\n"
		"why, jobs, history, recording, health. An address that other machines can reach\n"
		"requires TLS, and a token or client certificates. Options override section "
		"[serve]\n"
		"of zernel.conf(5), lists included. SIGHUP reloads the token and the certificates.",
	.json = "accepted, but without effect: serve prints no result",
	.options = options,
	.run = run,
};
