/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Parses arbitrary bytes as the fdinfo of a descriptor. The result must keep its bounds.
 * Written as text and parsed again, it must give the same result.
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "collect/fdinfo.h"

struct text {
	char data[FDINFO_MAX_BYTES];
	size_t size;
};

static void text_add(struct text *text, const char *part)
{
	size_t length = strlen(part);

	REQUIRE(length < sizeof(text->data) - text->size);
	memcpy(text->data + text->size, part, length);
	text->size += length;
}

/* Without snprintf(), which takes most of the fuzzer's time under the sanitizer. */
static void text_number(struct text *text, const char *key, const char *name, u64 value)
{
	char digits[24] = "";
	size_t at = sizeof(digits) - 2;

	digits[at] = '\n';
	do {
		digits[--at] = (char)('0' + value % 10);
	} while ((value /= 10));
	text_add(text, key);
	text_add(text, name);
	text_add(text, ":");
	text_add(text, digits + at);
}

static void text_items(struct text *text, const struct fdinfo_item *items, u32 nr,
		       const char *const *keys, u32 nr_keys)
{
	for (u32 i = 0; i < nr; i++) {
		REQUIRE(memchr(items[i].name, '\0', FDINFO_NAME_LEN) && items[i].name[0]);
		REQUIRE(items[i].valid && !(items[i].valid >> nr_keys));
		for (u32 f = 0; f < nr_keys; f++)
			if (items[i].valid & FDINFO_HAS(f))
				text_number(text, keys[f], items[i].name, items[i].value[f]);
	}
}

static void text_write(struct text *text, const struct fdinfo *info)
{
	static const char *const engine[] = { "drm-engine-", "drm-engine-capacity-", "drm-cycles-",
					      "drm-total-cycles-" };
	static const char *const region[] = { "drm-resident-", "drm-memory-", "drm-total-" };

	text->size = 0;
	text_add(text, "drm-driver:\t");
	text_add(text, info->driver);
	text_add(text, "\n");
	if (info->valid & FDINFO_HAS(FDINFO_PDEV)) {
		text_add(text, "drm-pdev:\t");
		text_add(text, info->pdev);
		text_add(text, "\n");
	}
	if (info->valid & FDINFO_HAS(FDINFO_CLIENT_ID))
		text_number(text, "drm-client-id", "", info->client_id);
	text_items(text, info->engines, info->nr_engines, engine, 4);
	text_items(text, info->regions, info->nr_regions, region, 3);
}

static void check_bounds(const struct fdinfo *info)
{
	u64 bytes = 0;
	int err = fdinfo_resident(info, &bytes);

	REQUIRE(info->nr_engines <= FDINFO_ENGINES && info->nr_regions <= FDINFO_REGIONS);
	REQUIRE(memchr(info->driver, '\0', FDINFO_NAME_LEN) && info->driver[0]);
	REQUIRE(memchr(info->pdev, '\0', FDINFO_NAME_LEN) && !strchr(info->pdev, '/'));
	REQUIRE(err == 0 || (err == -ENODATA && bytes == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fdinfo info, again;
	static struct text text;

	if (fdinfo_parse((const char *)data, size, &info) < 0)
		return 0;
	check_bounds(&info);
	text_write(&text, &info);
	REQUIRE(fdinfo_parse(text.data, text.size, &again) == 0);
	REQUIRE(again.nr_left_out == 0);
	again.nr_left_out = info.nr_left_out;
	REQUIRE(!memcmp(&info, &again, sizeof(info)));
	return 0;
}
