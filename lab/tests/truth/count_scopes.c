/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loaded before the lab's libtorch_cpu.so, it counts the scopes that a job enters and
 * leaves. Each process appends one line to the file SCOPES_FILE names when it exits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "framework/torch.h"

static struct {
	u64 steps, clears, batches, left, wrong;
} count;

static u64 object_of_last;

static u64 starts_with(const struct cxx_string *name, const char *prefix)
{
	const char *text = (const char *)name->text;

	return strlen(text) == name->length && strncmp(text, prefix, strlen(prefix)) == 0;
}

struct torch_scope TORCH_SCOPE_ENTER(const struct cxx_string *name, const void *args) {
	struct torch_scope scope = { .object = calloc(1, SCOPE_OBJECT_BYTES) };

	count.steps += starts_with(name, "Optimizer.step#");
	count.clears += starts_with(name, "Optimizer.zero_grad#");
	count.batches += scope_of((const char *)name->text) == SCOPE_LOADER;
	object_of_last = (u64)scope.object;
	return scope;
}

void TORCH_SCOPE_LEAVE(void *record)
{
	count.left++;
	count.wrong += !scope_holds(object_of_last, (u64)record);
	free((char *)record - TORCH_RECORD_OFFSET);
}

__attribute__((destructor)) static void write_count(void)
{
	const char *path = getenv("SCOPES_FILE");
	FILE *stream = path && count.left ? fopen(path, "a") : NULL;

	if (!stream)
		return;
	fprintf(stream,
		"{\"steps\":%llu,\"clears\":%llu,\"batches\":%llu,\"left\":%llu,\"wrong\":%llu}\n",
		count.steps, count.clears, count.batches, count.left, count.wrong);
	fclose(stream);
}
