/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "serve/assets.h"
#include <string.h>

const struct asset *asset_find(const char *path)
{
	for (const struct asset *asset = assets; asset->path; asset++)
		if (strcmp(asset->path, path) == 0)
			return asset;
	return NULL;
}
