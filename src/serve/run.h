/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The gateway: serves data from the socket of zerneld over HTTP and WebSocket. */
#include "serve/config.h"

/* Runs until SIGTERM or SIGINT. Logs its errors and returns a negative errno. */
int serve_run(const struct serve_config *config);
