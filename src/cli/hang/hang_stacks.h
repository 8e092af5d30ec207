/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Asks zerneld where the launchers of missing ranks are. */
#include "answers/hang.h"
#include "cli/stacks.h"

/* The answer refers to the stacks. A stack that zerneld does not send stays unknown. */
void hang_stacks_ask(struct stacks *stacks, const char *socket, struct hang *hang);
