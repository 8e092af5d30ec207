/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The states of a library. At most one operation of a library is under way, and the library does
 * not change meanwhile. The need for another one is looked at again when it has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "collect/library_internal.h"

/* Whether the table or the descriptors have no room for a library of any owner. */
static bool is_full(const struct library_set *set, u32 nr_fds)
{
	u32 nr = 0, used = 0;

	for (u32 slot = 0; slot < LIBRARY_MAX; slot++) {
		nr += set->library[slot] != NULL;
		used += set->library[slot] ? set->library[slot]->nr_fds : 0;
	}
	return nr == LIBRARY_MAX || used + nr_fds > set->max_fds;
}

/* Whether the owner may have one more. */
static bool is_allowed(const struct library_set *set, const struct tenant *owner, u32 nr_fds)
{
	struct tenant_count libraries = {}, fds = {};

	for (u32 slot = 0; slot < LIBRARY_MAX; slot++) {
		const struct library *library = set->library[slot];

		if (!library)
			continue;
		tenant_count(&libraries, owner, &library->owner, 1);
		tenant_count(&fds, owner, &library->owner, library->nr_fds);
	}
	return tenant_has_room(&fds, nr_fds, set->max_fds) &&
	       tenant_has_room(&libraries, 1, LIBRARY_MAX);
}

static int find_free_slot(const struct library_set *set, const struct tenant *owner, u32 nr_fds)
{
	if (is_full(set, nr_fds) || !is_allowed(set, owner, nr_fds))
		return -ENOSPC;
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++)
		if (!set->library[slot])
			return (int)slot;
	return -ENOSPC;
}

static void forget(struct library_set *set, struct library *library)
{
	set->library[library->slot] = NULL;
	uses_remove(&set->drivers, library->slot);
	close(library->fd);
	free(library);
}

void library_finish(struct library_set *set, struct library *library, int err)
{
	enum library_state state = library->state;

	set->counts.nr_attach_failed += err < 0;
	if (state == LIBRARY_ATTACHING && err < 0)
		library_forget_users(set, library->slot);
	library->state = LIBRARY_ATTACHED;
	if (state == LIBRARY_DETACHING || (state == LIBRARY_ATTACHING && err < 0))
		forget(set, library);
	else if (state == LIBRARY_ATTACHING)
		set->counts.nr_symbols_dropped += library->probes.nr_dropped;
	else if (err < 0)
		library->has_extra = !library->has_extra;
}

static void begin(struct library_set *set, struct library *library, enum library_state state,
		  int (*operation)(void *ctx, const struct library *library))
{
	int err;

	library->state = state;
	err = operation(set->ctx, library);
	if (err != LIBRARY_LATER)
		library_finish(set, library, err);
}

static void change_extra(struct library_set *set, struct library *library)
{
	library->has_extra = !library->has_extra;
	library->unwatched_ns = 0;
	begin(set, library, LIBRARY_CHANGING, set->ops->set_extra);
}

static bool is_unused(const struct library_set *set, u32 slot)
{
	const struct library *library = set->library[slot];

	return library && library->state == LIBRARY_ATTACHED && !set->nr_users[slot];
}

/* The probe on an allocator stays after the last watch, as a library stays after its last user. */
static void drop_unwatched(struct library_set *set, struct library *library, u64 now_ns)
{
	if (library_extra(library->runtime) != CALL_KIND_USAGE || !library->has_extra ||
	    library->state != LIBRARY_ATTACHED)
		return;
	if (set->nr_watched[library->slot])
		library->unwatched_ns = 0;
	else if (!library->unwatched_ns)
		library->unwatched_ns = now_ns;
	else if (now_ns >= library->unwatched_ns + LIBRARY_KEEP_NS)
		change_extra(set, library);
}

void library_set_drop_unused(struct library_set *set, u64 now_ns)
{
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++) {
		struct library *library = set->library[slot];

		if (library)
			drop_unwatched(set, library, now_ns);
		if (!is_unused(set, slot))
			continue;
		if (!library->unused_ns)
			library->unused_ns = now_ns;
		else if (now_ns >= library->unused_ns + LIBRARY_KEEP_NS)
			begin(set, library, LIBRARY_DETACHING, set->ops->detach);
	}
}

/* There is no room for a new library: in the table, or, with an owner, in what that may have. */
static void drop_all_unused(struct library_set *set, const struct tenant *owner)
{
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++)
		if (is_unused(set, slot) &&
		    (!owner || tenant_is_same(owner, &set->library[slot]->owner)))
			begin(set, set->library[slot], LIBRARY_DETACHING, set->ops->detach);
}

u32 library_extra(enum runtime runtime)
{
	switch (runtime) {
	case RUNTIME_CUDA: return CALL_KIND_LAUNCH;
	case RUNTIME_C10: return CALL_KIND_USAGE;
	default: return CALL_KIND_NR;
	}
}

static bool needs_extra(const struct library_set *set, const struct library *library)
{
	switch (library_extra(library->runtime)) {
	case CALL_KIND_LAUNCH: return set->nr_bare[library->slot];
	/* drop_unwatched() ends it. */
	case CALL_KIND_USAGE: return library->has_extra || set->nr_watched[library->slot];
	default: return false;
	}
}

void library_change_extras(struct library_set *set)
{
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++) {
		struct library *library = set->library[slot];

		if (!library || library->state != LIBRARY_ATTACHED ||
		    library->has_extra == needs_extra(set, library))
			continue;
		change_extra(set, library);
	}
}

void library_count_uses(struct library_set *set, const struct uses *uses, int sign)
{
	bool is_bare = !uses_any(uses, &set->drivers);

	for (u32 slot = 0; slot < LIBRARY_MAX; slot++) {
		if (uses_has(uses, slot) && set->library[slot])
			set->library[slot]->unused_ns = 0;
		set->nr_users[slot] += (u32)(sign * uses_has(uses, slot));
		set->nr_bare[slot] += (u32)(sign * (is_bare && uses_has(uses, slot)));
	}
}

void library_count_watch(struct library_set *set, const struct uses *uses, int sign)
{
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++)
		set->nr_watched[slot] += (u32)(sign * uses_has(uses, slot));
}

static int library_new(const struct library *found, u32 slot, int fd, struct library **ret)
{
	struct library *library = malloc(sizeof(*library));

	if (!library)
		return -ENOMEM;
	*library = *found;
	library->slot = slot;
	library->state = LIBRARY_NEW;
	library->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (library->fd < 0) {
		int err = -errno;

		free(library);
		return err;
	}
	snprintf(library->path, sizeof(library->path), "/proc/self/fd/%d", library->fd);
	*ret = library;
	return 0;
}

int library_add(struct library_set *set, int fd, const struct library *found)
{
	struct library *library = NULL;
	int slot = find_free_slot(set, &found->owner, found->nr_fds), err;

	if (slot < 0) {
		drop_all_unused(set, is_full(set, found->nr_fds) ? NULL : &found->owner);
		slot = find_free_slot(set, &found->owner, found->nr_fds);
	}
	if (slot < 0) {
		set->counts.nr_libraries_excess++;
		return -ENOENT;
	}
	err = library_new(found, (u32)slot, fd, &library);
	if (err < 0)
		return err;
	set->library[slot] = library;
	if (library->runtime == RUNTIME_CUDA_DRIVER)
		uses_add(&set->drivers, (u32)slot);
	return slot;
}

void library_attach_new(struct library_set *set)
{
	for (u32 slot = 0; slot < LIBRARY_MAX; slot++) {
		struct library *library = set->library[slot];

		if (!library || library->state != LIBRARY_NEW)
			continue;
		library->has_extra = needs_extra(set, library);
		/* The process can have exited during its scan. */
		if (set->nr_users[slot])
			begin(set, library, LIBRARY_ATTACHING, set->ops->attach);
		else
			forget(set, library);
	}
}

void library_remove(struct library_set *set, struct library *library)
{
	library->state = LIBRARY_DETACHING;
	(void)set->ops->detach(set->ctx, library);
	forget(set, library);
}
