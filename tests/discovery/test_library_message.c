/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Tests that zerneld accepts no impossible message of the process that scans. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "collect/library_message.h"

#define HEAD offsetof(struct scan_message, found)

static struct scan_message message;

static u32 call_of(enum runtime runtime)
{
	u32 call = 0;

	while (call_rows[call].runtime != runtime)
		call++;
	return call;
}

static void make_found(void)
{
	memset(&message, 0, sizeof(message));
	message.kind = SCAN_FOUND;
	message.found.runtime = RUNTIME_NCCL;
	strcpy(message.found.name, "libnccl.so.2");
	message.found.probes.nr = 1;
	message.found.probes.probe[0].call = call_of(RUNTIME_NCCL);
}

static bool found_is_valid(void)
{
	return scan_message_is_valid(&message, HEAD + sizeof(message.found), true);
}

/* Sets one number to an impossible value. */
#define REJECTS(member, value)                                                                     \
	do {                                                                                       \
		make_found();                                                                      \
		message.found.member = (value);                                                    \
		if (found_is_valid())                                                              \
			fail_msg("%s = %s is accepted", #member, #value);                          \
	} while (0)

static void test_found(void **state)
{
	make_found();
	assert_true(found_is_valid());
	REJECTS(runtime, RUNTIME_NR);
	REJECTS(runtime, RUNTIME_CUDA); /* the call is one of NCCL */
	REJECTS(is_executable, 2);
	REJECTS(probes.nr, 0);
	REJECTS(probes.nr, ELF_SYMBOLS_MAX + 1);
	REJECTS(probes.probe[0].call, CALL_NR);
	REJECTS(probes.probe[0].is_stepped, 2);
	REJECTS(probes.probe[0].offset, 1ULL << 63);
	REJECTS(name[3], '\n');
	REJECTS(name[3], '\x80');
	make_found();
	memset(message.found.name, 'a', sizeof(message.found.name));
	assert_false(found_is_valid());
}

static void test_sizes_and_descriptors(void **state)
{
	make_found();
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.found), false));
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.found) - 1, true));
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.found) + 1, true));
	assert_false(scan_message_is_valid(&message, 3, true));
	message = (struct scan_message){ .kind = SCAN_SCANNED, .scanned.error = -ESRCH };
	assert_true(scan_message_is_valid(&message, HEAD + sizeof(message.scanned), false));
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.scanned), true));
	message.scanned.nr_bytes = 1ULL << 63;
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.scanned), false));
	message.scanned.nr_bytes = 0;
	message.scanned.error = 1;
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.scanned), false));
	message = (struct scan_message){ .kind = SCAN_PIDS, .nr = SCAN_PIDS_MAX };
	assert_true(scan_message_is_valid(&message, HEAD + sizeof(message.pids), false));
	message.nr++;
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.pids), false));
	message = (struct scan_message){ .kind = SCAN_OWNED };
	assert_true(scan_message_is_valid(&message, HEAD + sizeof(message.owned), false));
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.owned), true));
	message = (struct scan_message){ .kind = SCAN_NAMES, .names.job.cgroup = "/a" };
	strcpy(message.names.job.names.pod, "trainer-0");
	assert_true(scan_message_is_valid(&message, HEAD + sizeof(message.names), false));
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.names), true));
	message.names.error = 1;
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.names), false));
	message.names.error = 0;
	message.names.job.names.pod[0] = '\033';
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.names), false));
	message.names.job.names.pod[0] = 'a';
	memset(message.names.job.cgroup, 'a', sizeof(message.names.job.cgroup));
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.names), false));
	message.kind = SCAN_REST;
	assert_true(scan_message_is_valid(&message, HEAD, false));
	assert_false(scan_message_is_valid(&message, HEAD, true));
	message.kind = SCAN_MESSAGE_NR;
	assert_false(scan_message_is_valid(&message, HEAD, false));
}

static bool frame_is_valid(void)
{
	return scan_message_is_valid(&message, HEAD + sizeof(message.frame), false);
}

static void test_stack(void **state)
{
	message = (struct scan_message){ .kind = SCAN_FRAME, .frame.index = PYTHON_FRAMES_MAX - 1 };
	assert_true(frame_is_valid());
	message.frame.index++;
	assert_false(frame_is_valid());
	message.frame.index = 0;
	memset(message.frame.place.function, 'a', sizeof(message.frame.place.function));
	assert_false(frame_is_valid());
	message.frame.place.function[0] = '\0';
	assert_true(frame_is_valid());
	memset(message.frame.place.file, 'a', sizeof(message.frame.place.file));
	assert_false(frame_is_valid());
	message = (struct scan_message){ .kind = SCAN_STACKED, .stacked.nr = PYTHON_FRAMES_MAX };
	assert_true(scan_message_is_valid(&message, HEAD + sizeof(message.stacked), false));
	message.stacked.nr++;
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.stacked), false));
	message.stacked.nr = 0;
	message.stacked.error = 1;
	assert_false(scan_message_is_valid(&message, HEAD + sizeof(message.stacked), false));
}

static bool interpreter_is_valid(void)
{
	return scan_message_is_valid(&message, HEAD + sizeof(message.interpreter), false);
}

static void test_interpreter(void **state)
{
	memset(&message, 0, sizeof(message));
	message.kind = SCAN_INTERPRETER;
	message.interpreter.python.runtime = 0x555500001000;
	assert_true(interpreter_is_valid());
	message.interpreter.python.offsets.frame_code = 1 << 20;
	assert_false(interpreter_is_valid());
	message.interpreter.python.offsets.frame_code = 0;
	message.interpreter.python.runtime = UINT64_MAX;
	assert_false(interpreter_is_valid());
	message.interpreter.error = -ENOENT; /* then only the cost counts */
	assert_true(interpreter_is_valid());
	message.interpreter.cost.nr_bytes = UINT64_MAX;
	assert_false(interpreter_is_valid());
	message.interpreter.cost = (struct python_cost){ .nr_files = UINT64_MAX };
	assert_false(interpreter_is_valid());
	message.interpreter.cost.nr_files = 0;
	message.interpreter.error = 1;
	assert_false(interpreter_is_valid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_interpreter),
		cmocka_unit_test(test_sizes_and_descriptors),
		cmocka_unit_test(test_stack),
	};

	return cmocka_run_group_tests_name("library messages", tests, NULL, NULL);
}
