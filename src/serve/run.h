/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The gateway: HTTP and WebSocket on one side, the socket of zerneld on the other. */
#include "serve/config.h"

/* Runs until SIGTERM or SIGINT. What went wrong is in the log; negative errno. */
int serve_run(const struct serve_config *config);
