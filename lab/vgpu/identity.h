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

/* As on a real GPU, the numbers of its parts do not begin at 0. */
#define IDENTITY_GPU_INSTANCE(slice) ((slice) + 6)
#define IDENTITY_COMPUTE_INSTANCE    0

/* `slice`: a part of the device, from 1; 0: the device. */
void identity_uuid(u32 device, u32 slice, u8 ret[IDENTITY_UUID_BYTES]);
void identity_uuid_text(u32 device, u32 slice, char ret[IDENTITY_UUID_TEXT]);

/* In HIP, the UUID is the text of the unique id. */
void identity_unique_id(u32 device, char ret[IDENTITY_UUID_BYTES + 1]);
