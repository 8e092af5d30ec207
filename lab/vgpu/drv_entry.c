/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The addresses of driver calls by name, as runtimes ask for them. The name has no
 * suffix; the answer is the newest form that this library has.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/macros.h"
#include "vgpu/engine.h"
#include "vgpu/identity.h"

/* The first CUDA version with the call that has a fifth argument. */
#define PROC_ADDRESS_V2 12000

static void *self_open(void)
{
	Dl_info info;

	return dladdr(&engine, &info) ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
}

static void *entry_find(void *self, const char *name, int version, bool per_thread)
{
	static const char *const versions[] = { "_v3", "_v2", "" };
	static const char *const threads[] = { "_ptsz", "_ptds", "" };
	bool old = !strcmp(name, "cuGetProcAddress") && version < PROC_ADDRESS_V2;
	char full[128];

	for (u32 v = old ? 2 : 0; v < ARRAY_SIZE(versions); v++)
		for (u32 t = per_thread ? 0 : 2; t < ARRAY_SIZE(threads); t++) {
			void *found;

			snprintf(full, sizeof(full), "%s%s%s", name, versions[v], threads[t]);
			found = dlsym(self, full);
			if (found)
				return found;
		}
	return NULL;
}

static CUresult entry_get(const char *name, void **ret, int version, u64 flags)
{
	void *self;

	if (!name || !ret || version > IDENTITY_VERSION ||
	    flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	self = strncmp(name, "cu", 2) || strchr(name, '_') ? NULL : self_open();
	*ret = NULL;
	if (!self)
		return CUDA_SUCCESS;
	*ret = entry_find(self, name, version,
			  flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	dlclose(self);
	return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, unsigned long long flags)
{
	CUresult r = entry_get(symbol, pfn, version, flags);

	return r == CUDA_SUCCESS && !*pfn ? CUDA_ERROR_NOT_FOUND : r;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, unsigned long long flags,
			     CUdriverProcAddressQueryResult *status)
{
	CUresult r = entry_get(symbol, pfn, version, flags);

	if (r == CUDA_SUCCESS && status)
		*status = *pfn ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return r;
}
