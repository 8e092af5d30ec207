/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Parses the text of /proc/PID/fdinfo/N of a DRM descriptor, as documented under "DRM
 * client usage stats". The parser does no I/O and does not trust its input: a line that
 * does not fit or is not valid is counted and left out.
 */
#include <stddef.h>
#include "abi/types.h"

#define FDINFO_NAME_LEN	 32
#define FDINFO_ENGINES	 16
#define FDINFO_REGIONS	 8
#define FDINFO_FIELDS	 4
#define FDINFO_HAS(bit)	 (1U << (bit))
#define FDINFO_MAX_BYTES 16384

enum fdinfo_key {
	FDINFO_DRIVER,
	FDINFO_PDEV,
	FDINFO_CLIENT_ID,
};

enum fdinfo_engine_field {
	FDINFO_BUSY_NS,
	FDINFO_CAPACITY,     /* number of engines with this name */
	FDINFO_CYCLES,	     /* busy time in cycles of the GPU clock */
	FDINFO_TOTAL_CYCLES, /* value of the GPU clock */
};

enum fdinfo_region_field {
	FDINFO_RESIDENT_BYTES,
	FDINFO_MEMORY_BYTES, /* the old name of resident bytes */
	FDINFO_TOTAL_BYTES,
};

/* An engine or a memory region; value[f] is set when `valid` contains FDINFO_HAS(f). */
struct fdinfo_item {
	char name[FDINFO_NAME_LEN];
	u32 valid;
	u64 value[FDINFO_FIELDS];
};

struct fdinfo {
	u32 valid; /* of enum fdinfo_key */
	u32 nr_engines;
	u32 nr_regions;
	u32 nr_left_out; /* lines with a known key that could not be used */
	u64 client_id;
	char driver[FDINFO_NAME_LEN];
	char pdev[FDINFO_NAME_LEN]; /* hexadecimal digits, ':' and '.' only, lower case */
	struct fdinfo_item engines[FDINFO_ENGINES];
	struct fdinfo_item regions[FDINFO_REGIONS];
};

/* -ENODATA: the text names no DRM driver, so the descriptor is not a DRM descriptor. */
int fdinfo_parse(const char *text, size_t size, struct fdinfo *ret);

/*
 * Bytes on the GPU. When a region is known to be memory of the GPU, only such regions are
 * counted; otherwise all regions are, because an integrated GPU has no memory of its own.
 * -ENODATA: the text has no memory values.
 */
int fdinfo_resident(const struct fdinfo *info, u64 *ret_bytes);
