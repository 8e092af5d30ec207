/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "core/job.h"
#include <stdbool.h>
#include <string.h>
#include "base/macros.h"

#define DIGITS	      "0123456789"
#define HEX_DIGITS    DIGITS "abcdef"
/* With dashes; systemd writes underscores. The uid of a static pod is a hash without them. */
#define POD_UID_LEN   36
#define POD_HASH_LEN  32
#define CONTAINER_LEN 64
/* Container engines show that many digits of an ID. */
#define SHORT_ID_LEN  12

/* A part of a path, between two slashes. */
struct part {
	const char *text;
	size_t length;
};

/* What is known at a part of the path. */
struct walk {
	struct part part;
	struct part above;   /* empty at the root */
	struct part user;    /* the number in user-1000.slice above; empty: not a user's part of the
				tree */
	bool is_below_slurm; /* Slurm makes the cgroups of its jobs here */
	struct job_identity *ret;
};

static bool begins_with(struct part part, const char *text)
{
	return part.length >= strlen(text) && memcmp(part.text, text, strlen(text)) == 0;
}

static bool cut_begin(struct part *part, const char *text)
{
	if (!begins_with(*part, text))
		return false;
	part->text += strlen(text);
	part->length -= strlen(text);
	return true;
}

static bool cut_end(struct part *part, const char *text)
{
	size_t n = strlen(text);

	if (part->length <= n || memcmp(part->text + part->length - n, text, n) != 0)
		return false;
	part->length -= n;
	return true;
}

static bool consists_of(struct part part, const char *characters)
{
	for (size_t i = 0; i < part.length; i++)
		if (!strchr(characters, part.text[i]))
			return false;
	return part.length > 0;
}

static bool contains(struct part part, const char *text)
{
	return memmem(part.text, part.length, text, strlen(text));
}

static struct part part_of(const char *text)
{
	return (struct part){ text, strlen(text) };
}

/* Appends to a text of `size` bytes, as far as it fits. */
static void append(char *text, size_t size, struct part part)
{
	size_t used = strlen(text), left = size - 1 - used;
	size_t length = part.length < left ? part.length : left;

	memcpy(text + used, part.text, length);
	text[used + length] = '\0';
}

/* Users choose the names in their part of the tree, so their number comes first. */
static void begin_name(struct walk *walk)
{
	char *name = walk->ret->name;

	*name = '\0';
	if (!walk->user.length)
		return;
	append(name, JOB_NAME_LEN, part_of("user-"));
	append(name, JOB_NAME_LEN, walk->user);
	append(name, JOB_NAME_LEN, part_of("/"));
}

static void set_name(struct walk *walk, struct part prefix, struct part name)
{
	begin_name(walk);
	append(walk->ret->name, JOB_NAME_LEN, prefix);
	append(walk->ret->name, JOB_NAME_LEN, name);
}

static bool is_user_slice(struct part part, struct part *ret_number)
{
	*ret_number = part;
	return cut_begin(ret_number, "user-") && cut_end(ret_number, ".slice") &&
	       consists_of(*ret_number, DIGITS);
}

/* job_123, below a cgroup of Slurm: slurmstepd.scope, NODE_slurmstepd.scope, slurm/uid_1000 */
static bool is_slurm_job(struct walk *walk)
{
	struct part number = walk->part;

	if (!walk->is_below_slurm || !cut_begin(&number, "job_") || !consists_of(number, DIGITS))
		return false;
	set_name(walk, part_of("slurm-"), number);
	return true;
}

/* pod<uid>, or kubepods-burstable-pod<uid>.slice with underscores in the uid. */
static bool is_pod(struct walk *walk)
{
	static const size_t lengths[] = { POD_UID_LEN, POD_HASH_LEN };
	struct part part = walk->part, uid;

	if (walk->user.length)
		return false;
	(void)cut_end(&part, ".slice");
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t length = lengths[i] + strlen("pod");

		if (part.length < length)
			continue;
		uid = (struct part){ part.text + part.length - length, length };
		if ((part.length != length && uid.text[-1] != '-') || !cut_begin(&uid, "pod") ||
		    !consists_of(uid, i ? HEX_DIGITS : HEX_DIGITS "-_"))
			continue;
		set_name(walk, part_of("pod-"), uid);
		for (char *c = walk->ret->name; *c; c++)
			*c = *c == '_' ? '-' : *c;
		return true;
	}
	return false;
}

/* <id>, <engine>-<id> or <engine>-<id>.scope, with 64 digits. Sets `ret` to the ID. */
static bool is_container_part(struct part part, struct part *ret_engine, struct part *ret_id)
{
	(void)cut_end(&part, ".scope");
	if (part.length < CONTAINER_LEN)
		return false;
	*ret_id = (struct part){ part.text + part.length - CONTAINER_LEN, CONTAINER_LEN };
	*ret_engine = (struct part){ part.text, part.length - CONTAINER_LEN };
	return consists_of(*ret_id, HEX_DIGITS) &&
	       (!ret_engine->length || cut_end(ret_engine, "-"));
}

/* The cgroup of an ID alone is below one that has the name of the engine: /docker/<id> */
static bool is_container(struct walk *walk)
{
	struct part engine, id;

	if (!is_container_part(walk->part, &engine, &id))
		return false;
	id.length = SHORT_ID_LEN;
	set_name(walk, engine.length ? engine : walk->above, part_of("-"));
	append(walk->ret->name, JOB_NAME_LEN, id);
	return true;
}

static bool is_unit(struct walk *walk)
{
	struct part part = walk->part;

	if (!cut_end(&part, ".service") && !cut_end(&part, ".scope"))
		return false;
	set_name(walk, part_of(""), walk->part);
	return true;
}

static bool is_session(struct walk *walk)
{
	return walk->user.length && begins_with(walk->part, "session-") && is_unit(walk);
}

/* user@1000.service has the units of a user below it. */
static bool is_manager(struct walk *walk)
{
	struct part number;

	return is_user_slice(walk->above, &number) && begins_with(walk->part, "user@") &&
	       is_unit(walk);
}

#define IN(kind) (1U << JOB_##kind)
#define ANY	 (~0U)

/*
 * How the jobs of a kind are recognized, and the kinds inside of which they are. The cgroups inside
 * a service belong to the service. A Slurm job or a pod can be inside of anything, for example of a
 * container that is a node.
 */
static const struct {
	u32 kind;
	u32 inside;
	bool (*begins)(struct walk *walk);
} kinds[] = {
	{ JOB_SLURM, ANY, is_slurm_job },
	{ JOB_POD, ANY, is_pod },
	{ JOB_CONTAINER, IN(CGROUP) | IN(MANAGER) | IN(SESSION) | IN(UNIT), is_container },
	{ JOB_SESSION, IN(CGROUP), is_session },
	{ JOB_MANAGER, IN(CGROUP), is_manager },
	{ JOB_UNIT, IN(CGROUP) | IN(MANAGER), is_unit },
};

/* The end of a path that does not fit is replaced by a hash (FNV-1a) of all of it. */
static void set_cgroup(struct job_identity *ret, const char *path, size_t length)
{
	static const char digits[] = HEX_DIGITS;
	u64 hash = 0xcbf29ce484222325;
	char text[] = "#0123456789abcdef";

	*ret->cgroup = '\0';
	append(ret->cgroup, JOB_CGROUP_LEN, (struct part){ path, length });
	if (length < JOB_CGROUP_LEN)
		return;
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (u8)path[i]) * 0x100000001b3;
	for (size_t i = 1; i < sizeof(text) - 1; i++, hash >>= 4)
		text[i] = digits[hash & 0xf];
	memcpy(ret->cgroup + JOB_CGROUP_LEN - sizeof(text), text, sizeof(text));
}

/* The container and the Slurm step of the process, which can be below the job's own cgroup. */
static void look_inside(struct walk *walk)
{
	struct job_identity *ret = walk->ret;
	struct part part = walk->part, engine, id;

	if ((ret->kind == JOB_POD || ret->kind == JOB_CONTAINER) && !*ret->container &&
	    is_container_part(part, &engine, &id))
		append(ret->container, JOB_CONTAINER_LEN, id);
	if (ret->kind == JOB_SLURM && !*ret->step && cut_begin(&part, "step_"))
		append(ret->step, JOB_STEP_LEN, part);
}

static void visit(struct walk *walk, const char *path)
{
	struct job_identity *ret = walk->ret;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!(kinds[i].inside & 1U << ret->kind) || !kinds[i].begins(walk))
			continue;
		ret->kind = kinds[i].kind;
		*ret->container = *ret->step = '\0';
		set_cgroup(ret, path, (size_t)(walk->part.text + walk->part.length - path));
		break;
	}
	look_inside(walk);
}

void job_identify(const char *cgroup, struct job_identity *ret)
{
	struct walk walk = { .ret = ret };
	struct part number;

	*ret = (struct job_identity){};
	set_cgroup(ret, cgroup, strlen(cgroup));
	append(ret->name, JOB_NAME_LEN, part_of(cgroup));
	for (const char *at = cgroup; *at; at += walk.part.length) {
		at += *at == '/' || *at == ':';
		/* containerd joins a slice, a prefix and an ID by colons if its driver is not the
		 * kubelet's. */
		walk.part = (struct part){ at, strcspn(at, "/:") };
		visit(&walk, cgroup);
		if (!walk.user.length && is_user_slice(walk.part, &number))
			walk.user = number;
		walk.is_below_slurm = !walk.user.length &&
				      (contains(walk.part, "slurm") ||
				       (walk.is_below_slurm && begins_with(walk.part, "uid_")));
		walk.above = walk.part;
	}
}

const char *job_kind_label(u32 kind)
{
	static const char *const labels[JOB_KIND_NR] = {
		[JOB_CGROUP] = "cgroup", [JOB_MANAGER] = "manager",	[JOB_SESSION] = "session",
		[JOB_UNIT] = "unit",	 [JOB_CONTAINER] = "container", [JOB_POD] = "pod",
		[JOB_SLURM] = "slurm",
	};

	return kind < JOB_KIND_NR ? labels[kind] : "unknown";
}
