/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The identity of the virtual devices, the same in every interface. */
#define IDENTITY_VERSION    12040
#define IDENTITY_DRIVER	    "550.54.15"
#define IDENTITY_NAME	    "NVIDIA vGPU Lab"
#define IDENTITY_PCI_DEVICE 0

#define IDENTITY_PCI_BUS(device) (0x10 + 0x10 * (unsigned int)(device))
