/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The identity of the virtual devices, the same in every interface. */
#include "abi/types.h"

#define IDENTITY_VERSION    12040
#define IDENTITY_DRIVER	    "550.54.15"
#define IDENTITY_NAME	    "NVIDIA vGPU Lab"
#define IDENTITY_PCI_DEVICE 0

#define IDENTITY_PCI_BUS(device) (0x10 + 0x10 * (unsigned int)(device))

#define IDENTITY_UUID_BYTES 16
#define IDENTITY_UUID_TEXT  41 /* "GPU-", 32 digits, 4 dashes and a NUL */

void identity_uuid(u32 device, u8 ret[IDENTITY_UUID_BYTES]);
void identity_uuid_text(u32 device, char ret[IDENTITY_UUID_TEXT]);
