/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Checks arbitrary bytes as a message of the process that scans. zerneld uses an accepted message
 * as indices, as the offsets of probes, and in its log. The first byte says whether there is a
 * descriptor.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "collect/library_message.h"

static void check_found(const struct library_found *found)
{
	REQUIRE(found->runtime < RUNTIME_NR && found->is_executable <= 1);
	REQUIRE(strlen(found->name) < sizeof(found->name) && !strpbrk(found->name, "\n\x1b"));
	REQUIRE(found->probes.nr > 0 && found->probes.nr <= ELF_SYMBOLS_MAX);
	for (u32 i = 0; i < found->probes.nr; i++) {
		const struct library_probe *probe = &found->probes.probe[i];

		REQUIRE(probe->call < CALL_NR && call_rows[probe->call].runtime == found->runtime);
		REQUIRE((s64)probe->offset >= 0 && probe->is_stepped <= 1);
	}
}

static void check_text(const char *text, size_t size)
{
	REQUIRE(strnlen(text, size) < size && !strpbrk(text, "\n\x1b\xff"));
}

static void check_names(const struct scan_names *names)
{
	const struct job_names *all = &names->job.names;

	REQUIRE(names->error <= 0);
	REQUIRE(strnlen(names->job.cgroup, JOB_CGROUP_LEN) < JOB_CGROUP_LEN);
	check_text(all->pod, sizeof(all->pod));
	check_text(all->namespace, sizeof(all->namespace));
	check_text(all->container_name, sizeof(all->container_name));
	check_text(all->claimed_name, sizeof(all->claimed_name));
	check_text(all->claimed_account, sizeof(all->claimed_account));
	check_text(all->claimed_array, sizeof(all->claimed_array));
}

static void check(const struct scan_message *message, bool has_fd)
{
	REQUIRE(message->kind < SCAN_MESSAGE_NR && has_fd == (message->kind == SCAN_FOUND));
	if (message->kind == SCAN_FOUND)
		check_found(&message->found);
	else if (message->kind == SCAN_SCANNED)
		REQUIRE(message->scanned.error <= 0 && message->scanned.nr_bytes < 1ULL << 50);
	else if (message->kind == SCAN_PIDS)
		REQUIRE(message->nr <= SCAN_PIDS_MAX);
	else if (message->kind == SCAN_NAMES)
		check_names(&message->names);
	if (message->kind == SCAN_INTERPRETER)
		REQUIRE(message->interpreter.cost.nr_files < 1ULL << 50 &&
			message->interpreter.cost.nr_bytes < 1ULL << 50);
	if (message->kind == SCAN_INTERPRETER && message->interpreter.error == 0)
		REQUIRE(python_offsets_are_valid(&message->interpreter.python.offsets));
	if (message->kind == SCAN_FRAME) {
		const struct python_place *place = &message->frame.place;

		REQUIRE(message->frame.index < PYTHON_FRAMES_MAX);
		REQUIRE(strnlen(place->function, sizeof(place->function)) <
			sizeof(place->function));
		REQUIRE(strnlen(place->file, sizeof(place->file)) < sizeof(place->file));
	}
	if (message->kind == SCAN_STACKED)
		REQUIRE(message->stacked.nr <= PYTHON_FRAMES_MAX && message->stacked.error <= 0);
}

/*
 * The rest of a short input is zero. Each kind has a fixed size, so the fuzzer finds valid messages
 * only if the size is not its own choice; it is tested as well.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t sizes[] = {
		sizeof(struct library_found),	 sizeof(struct library_scanned),
		SCAN_PIDS_MAX * sizeof(s32),	 sizeof(struct scan_owned),
		sizeof(struct scan_names),	 0,
		sizeof(struct scan_interpreter),
	};
	static struct scan_message message;
	bool has_fd;

	if (size < 1 || size - 1 > sizeof(message))
		return 0;
	has_fd = data[0] & 1;
	memset(&message, 0, sizeof(message));
	memcpy(&message, data + 1, size - 1);
	if (scan_message_is_valid(&message, size - 1, has_fd))
		check(&message, has_fd);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (scan_message_is_valid(&message, offsetof(struct scan_message, found) + sizes[i],
					  has_fd))
			check(&message, has_fd);
	return 0;
}
