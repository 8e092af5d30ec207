/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vgpu/engine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "vgpu/identity.h"

/* The file is sparse: only written records use space. */
#define TRUTH_CAPACITY (4U << 20)

struct engine engine = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.progressed = PTHREAD_COND_INITIALIZER,
	.state = CUDA_ERROR_NOT_INITIALIZED,
};

/* The devices that exist for the process. A container shows some of them, in its own order. */
struct view {
	u32 nr;
	u32 device[SHM_DEVICES];
};

static struct view view_read(void)
{
	const char *text = getenv("VGPU_CONTAINER");
	u32 nr = engine.shm->config.nr_devices;
	struct view view = {};

	for (u32 i = 0; !text && i < nr; i++)
		view.device[view.nr++] = i;
	while (text && *text && view.nr < SHM_DEVICES) {
		char *end;
		unsigned long device = strtoul(text, &end, 10);

		if (end == text || device >= nr)
			break;
		view.device[view.nr++] = (u32)device;
		text = *end ? end + 1 : end;
	}
	return view;
}

/* Whether the text, which ends at `end`, is the UUID or the beginning of the UUID. */
static bool is_named(const char *text, const char *end, u32 device, u32 slice)
{
	char uuid[IDENTITY_UUID_TEXT];

	identity_uuid_text(device, slice, uuid);
	return end - text > (ptrdiff_t)strlen("GPU-") &&
	       strncasecmp(text, uuid, (size_t)(end - text)) == 0;
}

/*
 * A device as the program names it, which ends at `end`: by its index, or by its UUID or
 * the beginning of its UUID, if no other device has the same. SHM_DEVICES: none.
 */
static u32 device_named(const struct view *view, const char *text, const char *end, u32 *ret_slice)
{
	u32 found = SHM_DEVICES;
	char *stop;
	unsigned long index = strtoul(text, &stop, 10);

	*ret_slice = 0;
	if (stop == end && stop > text)
		return index < view->nr ? view->device[index] : SHM_DEVICES;
	for (u32 i = 0; i < view->nr; i++)
		for (u32 slice = 0; slice <= engine.shm->config.nr_slices[view->device[i]];
		     slice++) {
			if (!is_named(text, end, view->device[i], slice))
				continue;
			if (found != SHM_DEVICES)
				return SHM_DEVICES;
			found = view->device[i];
			*ret_slice = slice;
		}
	return found;
}

/* As with the real libraries, a process sees one part of a divided device, and nothing else. */
static bool visible_add(u32 device, u32 slice)
{
	if (engine.shm->config.nr_slices[device]) {
		engine.nr_visible = 0;
		engine.slice = slice ?: 1;
	}
	engine.visible[engine.nr_visible++] = device;
	return !engine.slice;
}

/* As with the real libraries, the list ends at the first entry that is not a valid device. */
static void visible_read(void)
{
	const char *text = getenv(engine_variant.visible_env);
	struct view view = view_read();
	u32 slice;

	engine.nr_visible = engine.slice = 0;
	for (u32 i = 0; !text && i < view.nr; i++)
		if (!visible_add(view.device[i], 0))
			return;
	while (text && *text && engine.nr_visible < SHM_DEVICES) {
		const char *end = strchrnul(text, ',');
		u32 device = device_named(&view, text, end, &slice);

		if (device == SHM_DEVICES || !visible_add(device, slice))
			return;
		text = *end ? end + 1 : end;
	}
}

/* As with the real driver, a child cannot use a device that was opened before the fork. */
static void engine_forked(void)
{
	engine.state = CUDA_ERROR_NOT_INITIALIZED;
}

/* Values outside of the range mean the default. */
static u32 env_u32(const char *name, u32 min, u32 fallback, u32 max)
{
	const char *text = getenv(name);
	unsigned long value = text ? strtoul(text, NULL, 10) : fallback;

	return value < min || value > max ? fallback : (u32)value;
}

/*
 * As with the real driver, a process keeps the device file open as long as it lives. A guest has
 * this file; elsewhere it is missing, and the virtual GPU works without it.
 */
static void device_file_open(void)
{
	const char *path = getenv("VGPU_DEVICE_FILE");

	(void)!open(path ? path : "/dev/zernel-vgpu0", O_RDWR | O_CLOEXEC);
}

static CUresult engine_start(void)
{
	const char *dir = getenv("VGPU_TRUTH"), *ns = getenv("VGPU_KERNEL_NS");
	const char *launch_ns = getenv("VGPU_LAUNCH_NS");

	engine.queue = env_u32("VGPU_QUEUE", 1, 1024, 1 << 20);
	engine.sm_percent = env_u32("VGPU_SM_PERCENT", 0, 100, 100);
	if (shm_attach(&engine.shm) < 0)
		return CUDA_ERROR_UNKNOWN;
	visible_read();
	if (!engine.nr_visible)
		return CUDA_ERROR_NO_DEVICE;
	device_file_open();
	if (shm_join(engine.shm, &engine.proc) < 0)
		return CUDA_ERROR_UNKNOWN;
	if (dir && *dir &&
	    truth_open(dir, engine_variant.truth_writer, TRUTH_CAPACITY, &engine.truth) < 0)
		return CUDA_ERROR_UNKNOWN;
	engine.kernel_ns = ns ? strtoull(ns, NULL, 10) : 10000;
	engine.launch_ns = launch_ns ? strtoull(launch_ns, NULL, 10) : 0;
	pthread_atfork(NULL, NULL, engine_forked);
	for (u32 i = 0; i < engine.nr_visible; i++) {
		engine.primary[i].device = engine.visible[i];
		engine.primary[i].ordinal = (int)i;
		engine.primary[i].primary = true;
	}
	return CUDA_SUCCESS;
}

static pthread_once_t engine_once = PTHREAD_ONCE_INIT;

static void engine_start_once(void)
{
	engine.state = engine_start();
}

CUresult engine_init(void)
{
	pthread_once(&engine_once, engine_start_once);
	return engine.state;
}

/* The log and the mapping stay, because other threads may still call while the process exits. */
__attribute__((destructor)) static void engine_leave(void)
{
	if (engine.state == CUDA_SUCCESS)
		shm_leave(engine.shm, engine.proc);
}

struct object *object_new(struct object **list, size_t size)
{
	struct object *object, *next;

	for (object = *list; object; object = object->next)
		if (!object->live)
			break;
	if (!object) {
		object = calloc(1, size);
		if (!object)
			return NULL;
		object->next = *list;
		*list = object;
	}
	next = object->next;
	memset(object, 0, size);
	object->next = next;
	object->live = true;
	return object;
}

CUresult device_check(CUdevice ordinal)
{
	if (engine.state != CUDA_SUCCESS)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (ordinal < 0 || (u32)ordinal >= engine.nr_visible)
		return CUDA_ERROR_INVALID_DEVICE;
	return CUDA_SUCCESS;
}
