/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parts of hang_new(). */
#include "answers/hang.h"

/* Fills in everything of a communicator that does not depend on other communicators. */
void hang_judge(struct hang_comm *comm);
/* Finds the communicators whose missing ranks wait in other communicators. */
void hang_find_followers(struct hang *hang);
