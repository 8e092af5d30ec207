/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/fdinfo.h"
#include "base/macros.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct slice {
	const char *at;
	size_t length;
};

struct unit {
	const char *name;
	u64 factor;
};

static const struct unit plain[] = { { "", 1 }, { NULL } };
static const struct unit times[] = { { "ns", 1 }, { "", 1 }, { NULL } };
static const struct unit sizes[] = { { "KiB", 1 << 10 }, { "MiB", 1 << 20 }, { "", 1 }, { NULL } };

struct key {
	const char *text; /* with a dash at the end, the name of an engine or region follows */
	bool (*take)(struct fdinfo *info, const struct key *key, struct slice name,
		     struct slice value);
	u32 field;
	const struct unit *units;
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static struct slice slice_trim(struct slice s)
{
	for (; s.length && is_space(s.at[0]); s.length--)
		s.at++;
	while (s.length && is_space(s.at[s.length - 1]))
		s.length--;
	return s;
}

static bool slice_is(struct slice s, const char *text)
{
	return s.length == strlen(text) && !memcmp(s.at, text, s.length);
}

/* The text must fit: a truncated text would be a different text. */
static bool slice_copy(struct slice s, char to[FDINFO_NAME_LEN])
{
	if (!s.length || s.length >= FDINFO_NAME_LEN || memchr(s.at, '\0', s.length))
		return false;
	memcpy(to, s.at, s.length);
	memset(to + s.length, 0, FDINFO_NAME_LEN - s.length);
	return true;
}

static bool slice_number(struct slice s, const struct unit *units, u64 *ret)
{
	u64 value = 0;
	size_t digits;

	for (digits = 0; digits < s.length && s.at[digits] >= '0' && s.at[digits] <= '9'; digits++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, (u64)(s.at[digits] - '0'), &value))
			return false;
	if (!digits)
		return false;
	s = slice_trim((struct slice){ s.at + digits, s.length - digits });
	for (; units->name; units++)
		if (slice_is(s, units->name))
			return !__builtin_mul_overflow(value, units->factor, ret);
	return false;
}

static bool take_driver(struct fdinfo *info, const struct key *key, struct slice name,
			struct slice value)
{
	return slice_copy(value, info->driver);
}

/* The value becomes part of a path, so only the characters of an address are allowed. */
static bool take_pdev(struct fdinfo *info, const struct key *key, struct slice name,
		      struct slice value)
{
	static const char allowed[] = "0123456789abcdef:.";
	char pdev[FDINFO_NAME_LEN];

	if (!slice_copy(value, pdev))
		return false;
	for (char *c = pdev; *c; c++) {
		if (*c >= 'A' && *c <= 'F')
			*c = (char)(*c - 'A' + 'a');
		if (!strchr(allowed, *c))
			return false;
	}
	memcpy(info->pdev, pdev, sizeof(pdev));
	return true;
}

static bool take_client(struct fdinfo *info, const struct key *key, struct slice name,
			struct slice value)
{
	return slice_number(value, key->units, &info->client_id);
}

static bool take_item(struct fdinfo_item *items, u32 *nr, u32 max, const struct key *key,
		      struct slice name, struct slice value)
{
	struct fdinfo_item fresh = {}, *item;
	u64 number;
	u32 i;

	if (!slice_copy(name, fresh.name) || !slice_number(value, key->units, &number))
		return false;
	for (i = 0; i < *nr; i++)
		if (!strcmp(items[i].name, fresh.name))
			break;
	if (i == max)
		return false;
	item = &items[i];
	if (i == *nr) {
		*item = fresh;
		(*nr)++;
	}
	item->value[key->field] = number;
	item->valid |= FDINFO_HAS(key->field);
	return true;
}

static bool take_engine(struct fdinfo *info, const struct key *key, struct slice name,
			struct slice value)
{
	return take_item(info->engines, &info->nr_engines, FDINFO_ENGINES, key, name, value);
}

static bool take_region(struct fdinfo *info, const struct key *key, struct slice name,
			struct slice value)
{
	return take_item(info->regions, &info->nr_regions, FDINFO_REGIONS, key, name, value);
}

/* The first match is used, so the longer of two prefixes comes first. */
static const struct key keys[] = {
	{ "drm-driver", take_driver, FDINFO_DRIVER, NULL },
	{ "drm-pdev", take_pdev, FDINFO_PDEV, NULL },
	{ "drm-client-id", take_client, FDINFO_CLIENT_ID, plain },
	{ "drm-engine-capacity-", take_engine, FDINFO_CAPACITY, plain },
	{ "drm-engine-", take_engine, FDINFO_BUSY_NS, times },
	{ "drm-total-cycles-", take_engine, FDINFO_TOTAL_CYCLES, plain },
	{ "drm-cycles-", take_engine, FDINFO_CYCLES, plain },
	{ "drm-resident-", take_region, FDINFO_RESIDENT_BYTES, sizes },
	{ "drm-memory-", take_region, FDINFO_MEMORY_BYTES, sizes },
	{ "drm-total-", take_region, FDINFO_TOTAL_BYTES, sizes },
};
#define NR_KEYS ARRAY_SIZE(keys)

static void take_line(struct fdinfo *info, struct slice line)
{
	const char *colon = memchr(line.at, ':', line.length);
	struct slice name, value;

	if (!colon)
		return;
	name = (struct slice){ line.at, (size_t)(colon - line.at) };
	value = slice_trim((struct slice){ colon + 1, line.length - name.length - 1 });
	for (size_t i = 0; i < NR_KEYS; i++) {
		const struct key *key = &keys[i];
		size_t length = strlen(key->text);
		bool named = key->text[length - 1] == '-';

		if (name.length < length || memcmp(name.at, key->text, length) ||
		    (!named && name.length > length))
			continue;
		name.at += length;
		name.length -= length;
		if (!key->take(info, key, name, value))
			info->nr_left_out++;
		else if (!named)
			info->valid |= FDINFO_HAS(key->field);
		return;
	}
}

int fdinfo_parse(const char *text, size_t size, struct fdinfo *ret)
{
	struct fdinfo info = {};
	const char *end;

	/* A last line without a newline was truncated by the buffer and may end inside a number. */
	while (size && (end = memchr(text, '\n', size))) {
		take_line(&info, (struct slice){ text, (size_t)(end - text) });
		size -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	if (!(info.valid & FDINFO_HAS(FDINFO_DRIVER)))
		return -ENODATA;
	*ret = info;
	return 0;
}

static bool is_device_memory(const char *region)
{
	static const char *const prefixes[] = { "vram", "local", "lmem" };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (!strncmp(region, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

int fdinfo_resident(const struct fdinfo *info, u64 *ret_bytes)
{
	bool known[2] = {};
	u64 bytes[2] = {};

	for (u32 i = 0; i < info->nr_regions; i++) {
		const struct fdinfo_item *region = &info->regions[i];
		int own = is_device_memory(region->name);
		u32 field = region->valid & FDINFO_HAS(FDINFO_RESIDENT_BYTES)
				    ? FDINFO_RESIDENT_BYTES
				    : FDINFO_MEMORY_BYTES;

		if (!(region->valid & FDINFO_HAS(field)))
			continue;
		known[own] = true;
		if (__builtin_add_overflow(bytes[own], region->value[field], &bytes[own]))
			return -ENODATA;
	}
	if (!known[0] && !known[1])
		return -ENODATA;
	*ret_bytes = bytes[known[1]];
	return 0;
}
