/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Names of users. zerneld does not resolve them: a lookup can ask a server and wait for it. */
#include "abi/types.h"

struct user_name {
	char text[33];
};

/* The number if the user has no name; "-" for SNAPSHOT_UID_UNKNOWN. */
struct user_name user_name(u32 uid);
