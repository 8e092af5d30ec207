/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The common parts of all file versions, and the entries of versions 1 and 2. */
#include "core/procdb.h"

#define PROCDB_MAGIC	      "PDDB"
#define PROCDB_MAGIC_BYTES    4
#define PROCDB_HEADER_BYTES   12 /* magic, version u32, count u32 */
#define PROCDB_V1_ENTRY_BYTES 40
#define PROCDB_V2_ENTRY_BYTES 64
#define PROCDB_VERSION_NEWEST 3

void procdb_put_header(u8 *file, u32 version, u32 count);

/* Always true, because any bytes are a valid entry in these versions. */
bool procdb_get_v1(const u8 *at, struct procdb_profile *p);
bool procdb_get_v2(const u8 *at, struct procdb_profile *p);
