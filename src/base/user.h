/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Names of users, for commands and for the gateway. zerneld does not resolve them: a lookup can
 * ask a server and wait for it.
 */
#include "abi/types.h"

#define USER_NAME_LEN 33

struct user_name {
	char text[USER_NAME_LEN];
};

/* The number if the user has no name; "-" for the largest number, which is no user. */
struct user_name user_name(u32 uid);
