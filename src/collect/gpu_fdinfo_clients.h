/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Combines DRM descriptors into GPUs and processes. A client is one open of a GPU,
 * identified by (GPU, client id); several descriptors and processes can share it. Between
 * begin and end, each descriptor is added once.
 */
#include "collect/fdinfo.h"
#include "collect/gpu.h"
#include "collect/tenant.h"

struct drm_clients;

int drm_clients_new(const char *sysfs, struct drm_clients **ret);
struct drm_clients *drm_clients_free(struct drm_clients *clients);

/*
 * The index of the GPU with this address, or -ENOSPC. GPUs are numbered in the order in which they
 * are first named. `identity` adds to what is known about it.
 */
int drm_clients_device(struct drm_clients *clients, const char *address,
		       const struct gpu_sample *identity);

void drm_clients_begin(struct drm_clients *clients, u64 now_ns);
void drm_clients_add(struct drm_clients *clients, u32 pid, const struct tenant *tenant,
		     const struct fdinfo *info);
void drm_clients_end(struct drm_clients *clients, struct gpu_samples *samples);
