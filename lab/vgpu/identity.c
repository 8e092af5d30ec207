/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vgpu/identity.h"

#include <stdio.h>
#include <string.h>

void identity_uuid(u32 device, u32 slice, u8 ret[IDENTITY_UUID_BYTES])
{
	memset(ret, 0, IDENTITY_UUID_BYTES);
	memcpy(ret, "vgpu", 4);
	ret[IDENTITY_UUID_BYTES - 2] = (u8)slice;
	ret[IDENTITY_UUID_BYTES - 1] = (u8)device;
}

void identity_uuid_text(u32 device, u32 slice, char ret[IDENTITY_UUID_TEXT])
{
	u8 uuid[IDENTITY_UUID_BYTES];
	char *at = ret + sprintf(ret, slice ? "MIG" : "GPU");

	identity_uuid(device, slice, uuid);
	for (u32 i = 0; i < IDENTITY_UUID_BYTES; i++)
		at += sprintf(at, i == 0 || (i >= 4 && i <= 10 && i % 2 == 0) ? "-%02x" : "%02x",
			      uuid[i]);
}

void identity_unique_id(u32 device, char ret[IDENTITY_UUID_BYTES + 1])
{
	snprintf(ret, IDENTITY_UUID_BYTES + 1, "%016llx", 0x7667707500000000ULL | device);
}
