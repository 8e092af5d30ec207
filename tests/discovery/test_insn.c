/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Tests the place of a probe: after endbr64, and never after the end of the function. On arm64 it
 * is always the first instruction.
 */
#include "base/macros.h"
#include "discovery/support.h"

#include "collect/insn.h"

/* What the compiler puts at the start of a function for control-flow protection. */
#ifdef __x86_64__
#define PAST_LANDING_PAD 4
static const u8 protection[][4] = { { 0xf3, 0x0f, 0x1e, 0xfa } }; /* endbr64 */
#else
#define PAST_LANDING_PAD 0
static const u8 protection[][4] = {
	{ 0x5f, 0x24, 0x03, 0xd5 }, /* bti c */
	{ 0x3f, 0x23, 0x03, 0xd5 }, /* paciasp */
};
#endif

static void test_skip(void **state)
{
	static const struct {
		u8 code[8];
		size_t size;
		u64 skip;
	} cases[] = {
		{ { 0xf3, 0x0f, 0x1e, 0xfa, 0x55 }, 5, 4 }, /* endbr64; push */
		{ { 0xf3, 0x0f, 0x1e, 0xfa }, 4, 0 },	    /* nothing after endbr64 */
		{ { 0xf3, 0x0f, 0x1e, 0xfb, 0x55 }, 5, 0 }, /* endbr32 */
		{ { 0x55, 0xf3, 0x0f, 0x1e, 0xfa }, 5, 0 },
		{ { 0xf3, 0x0f, 0x1e }, 3, 0 },
		{ { 0 }, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(insn_skip_entry(INSN_X86_64, cases[i].code, cases[i].size),
				 cases[i].skip);
}

static void test_stepped(void **state)
{
	static const struct {
		u8 code[4];
		size_t size;
		bool is_stepped;
	} cases[] = {
		{ { 0x55 }, 1, false },			 /* push %rbp */
		{ { 0x41, 0x57 }, 2, false },		 /* push %r15 */
		{ { 0x90 }, 1, false },			 /* nop */
		{ { 0xeb, 0x10 }, 2, false },		 /* jmp */
		{ { 0xe9 }, 1, false },			 /* jmp */
		{ { 0x0f, 0x84 }, 2, false },		 /* je */
		{ { 0x41, 0x89 }, 2, true },		 /* mov to %r8d */
		{ { 0x41 }, 1, true },			 /* the function ends here */
		{ { 0x48, 0x8b, 0x05 }, 3, true },	 /* mov relative to %rip */
		{ { 0x48, 0x83, 0xec, 0x18 }, 4, true }, /* sub $0x18,%rsp */
		{ { 0xff, 0x25 }, 2, true },		 /* jmp through memory */
		{ { 0xc3 }, 1, true },			 /* ret */
		{ { 0 }, 0, true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (insn_is_stepped(INSN_X86_64, cases[i].code, cases[i].size) !=
		    cases[i].is_stepped)
			fail_msg("case %zu", i);
}

/* A return probe behind paciasp would replace a signed return address, so nothing is skipped. */
static void test_arm64(void **state)
{
	static const u8 functions[][8] = {
		{ 0x5f, 0x24, 0x03, 0xd5, 0xfd, 0x7b, 0xbf, 0xa9 }, /* bti c; stp x29, x30 */
		{ 0x3f, 0x23, 0x03, 0xd5, 0xfd, 0x7b, 0xbf, 0xa9 }, /* paciasp; stp x29, x30 */
		{ 0x7f, 0x23, 0x03, 0xd5, 0xfd, 0x7b, 0xbf, 0xa9 }, /* pacibsp; stp x29, x30 */
		{ 0x5f, 0x24, 0x03, 0xd5, 0x3f, 0x23, 0x03, 0xd5 }, /* bti c; paciasp */
		{ 0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91 }, /* stp x29, x30; mov x29, sp */
		{ 0x1f, 0x20, 0x03, 0xd5, 0xc0, 0x03, 0x5f, 0xd6 }, /* nop; ret */
		{ 0xf3, 0x0f, 0x1e, 0xfa, 0xc0, 0x03, 0x5f, 0xd6 }, /* the bytes of endbr64 */
	};

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		assert_int_equal(insn_skip_entry(INSN_ARM64, functions[i], 8), 0);
		assert_false(insn_is_stepped(INSN_ARM64, functions[i], 8));
	}
}

static bool is_protection(const u8 *code)
{
	for (size_t i = 0; i < ARRAY_SIZE(protection); i++)
		if (!memcmp(code, protection[i], sizeof(protection[i])))
			return true;
	return false;
}

/* Checks that each probe is `skip` bytes after the start of a function, with or without protection.
 */
static void check_placement(const char *path, u64 skip, bool is_protected)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct library_probes probes;

	assert_true(fd >= 0);
	assert_int_equal(library_resolve(fd, RUNTIME_CUDA, false, &probes, &(u64){ 0 }), 0);
	assert_int_equal(probes.nr, 3);
	for (u32 i = 0; i < probes.nr; i++) {
		off_t begin = (off_t)(probes.probe[i].offset - skip);
		u8 code[4];

		assert_int_equal(pread(fd, code, sizeof(code), begin), sizeof(code));
		assert_int_equal(is_protection(code), is_protected);
	}
}

static const char *with_protection, *without;

static void test_placement(void **state)
{
	check_placement(with_protection, PAST_LANDING_PAD, true);
	check_placement(without, 0, false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_skip),
		cmocka_unit_test(test_stepped),
		cmocka_unit_test(test_arm64),
		cmocka_unit_test(test_placement),
	};

	if (argc != 3)
		return 2;
	with_protection = argv[1];
	without = argv[2];
	return cmocka_run_group_tests_name("insn", tests, NULL, NULL);
}
