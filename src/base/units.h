/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Numbers with units, for display. */
#include "abi/types.h"

/* A short text, valid within the expression that creates it. */
struct unit_text {
	char text[24];
};

struct unit_text unit_bytes(u64 bytes);	 /* 1.5 GiB */
struct unit_text unit_ns(u64 ns);	 /* 1.5 ms */
struct unit_text unit_age(u64 seconds);	 /* 3 h */
struct unit_text unit_count(u64 number); /* 1.5 M */
/* The local time of milliseconds since 1970: 2026-11-17 04:46:05. */
struct unit_text unit_local_time(u64 ms);
