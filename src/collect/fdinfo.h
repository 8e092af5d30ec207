/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One /proc/PID/fdinfo/N text of a DRM descriptor, as documented under "DRM
 * client usage stats". The parser is pure and trusts nothing: what does not fit
 * or makes no sense is counted and left out, never guessed.
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
	FDINFO_CAPACITY,     /* engines behind the one name */
	FDINFO_CYCLES,	     /* busy, on the device's own clock, whose */
	FDINFO_TOTAL_CYCLES, /* reading this is */
};

enum fdinfo_region_field {
	FDINFO_RESIDENT_BYTES,
	FDINFO_MEMORY_BYTES, /* the old name of resident */
	FDINFO_TOTAL_BYTES,
};

/* An engine or a memory region; value[f] means something where FDINFO_HAS(f) is in `valid`. */
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

/* -ENODATA when the text names no DRM driver, as that of any other descriptor. */
int fdinfo_parse(const char *text, size_t size, struct fdinfo *ret);

/*
 * Bytes on the device: those of its own memory where a region is known to be
 * that, else of all regions, since an integrated device has none of its own.
 * -ENODATA when the text says nothing about it.
 */
int fdinfo_resident(const struct fdinfo *info, u64 *ret_bytes);
