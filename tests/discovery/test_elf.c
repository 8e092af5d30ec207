/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Compares the offsets of the parser with the dynamic linker, and tests files that are
 * unusual, truncated or damaged.
 */
#include "base/macros.h"
#include "discovery/support.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "discovery/source.h"
#include "property/random.h"

static const char *lib_dir, *symbols_table, *fixture_dir;

static struct image load(const char *directory, const char *name)
{
	struct image image = {};
	char path[4096];
	void *data = NULL;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	if (file_read(path, FILE_BYTES_MAX, &data, &image.size))
		fail_msg("cannot read %s", path);
	image.data = data;
	return image;
}

static void unload(struct image *image)
{
	free((void *)image->data);
}

#define CLEANUP_IMAGE CLEANUP(unload)

static int find(struct image *image, enum runtime runtime, bool with_symtab,
		struct elf_symbols *ret)
{
	const char *names[CALL_NR];
	struct elf_source source = { .read = image_read, .ctx = image };
	struct elf_query query = { .names = names,
				   .nr_names = names_of(runtime, names),
				   .with_symtab = with_symtab };

	return elf_find_symbols(&source, &query, ret);
}

/* The file offset of an address in a loaded library, from the program headers in memory. */
static u64 offset_in_memory(void *handle, void *address)
{
	struct link_map *map = NULL;
	const Elf64_Ehdr *header;
	const Elf64_Phdr *row;
	Dl_info info;

	assert_int_equal(dlinfo(handle, RTLD_DI_LINKMAP, &map), 0);
	assert_true(dladdr(address, &info) != 0);
	header = info.dli_fbase;
	row = (const void *)((const char *)header + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++) {
		u64 at = (u64)address - map->l_addr;

		if (row[i].p_type == PT_LOAD && at >= row[i].p_vaddr &&
		    at < row[i].p_vaddr + row[i].p_memsz)
			return at - row[i].p_vaddr + row[i].p_offset;
	}
	fail_msg("the address is in no segment");
	return 0;
}

/* Whether symbols.txt lists the symbol for the library, also with the last release that has it. */
static bool is_promised(const char *library, const char *symbol)
{
	CLEANUP_FREE void *text = NULL;
	char row[256], released[256];
	size_t size = 0;

	snprintf(row, sizeof(row), "\n%s %s\n", library, symbol);
	snprintf(released, sizeof(released), "\n%s %s ", library, symbol);
	assert_int_equal(file_read(symbols_table, 1 << 20, &text, &size), 0);
	return memmem(text, size, row, strlen(row)) ||
	       memmem(text, size, released, strlen(released));
}

static void test_offsets_of_vgpu(void **state)
{
	const char *library = *state, *names[CALL_NR];
	CLEANUP_IMAGE struct image image = load(lib_dir, library);
	enum runtime runtime = (enum runtime)library_runtime_of(library);
	u32 nr_names = names_of(runtime, names), nr_promised = 0;
	struct elf_symbols found;
	char path[4096];
	void *handle;

	snprintf(path, sizeof(path), "%s/%s", lib_dir, library);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		fail_msg("%s", dlerror());
	assert_int_equal(find(&image, runtime, false, &found), 0);
	assert_int_equal(found.nr_dropped, 0);
	for (u32 i = 0; i < found.nr; i++)
		assert_int_equal(
			found.symbol[i].offset,
			offset_in_memory(handle, dlsym(handle, names[found.symbol[i].name])));
	for (u32 i = 0; i < nr_names; i++)
		nr_promised += is_promised(library, names[i]);
	print_message("# %s: %u of %u calls\n", library, found.nr, nr_names);
	assert_true(nr_promised > 5);
	assert_int_equal(found.nr, nr_promised);
	dlclose(handle);
}

/* Checks that the three calls of fixtures/calls.c are found. */
static void check_three(struct image *image, bool with_symtab)
{
	struct elf_symbols found;

	assert_int_equal(find(image, RUNTIME_CUDA, with_symtab, &found), 0);
	assert_int_equal(found.nr, 3);
	for (u32 i = 0; i < found.nr; i++)
		assert_true(found.symbol[i].size > 0 && found.symbol[i].offset < image->size);
}

static void test_hash_styles(void **state)
{
	static const char *const names[] = { "libcalls-sysv.so", "libcalls-gnu.so" };

	for (size_t i = 0; i < 2; i++) {
		CLEANUP_IMAGE struct image image = load(fixture_dir, names[i]);

		check_three(&image, false);
		check_three(&image, true);
		/* Without section headers, the exported symbols are still found. */
		memset((u8 *)image.data + offsetof(Elf64_Ehdr, e_shoff), 0, sizeof(Elf64_Off));
		memset((u8 *)image.data + offsetof(Elf64_Ehdr, e_shnum), 0, sizeof(Elf64_Half));
		check_three(&image, true);
	}
}

static void hide_dynamic(struct image *image)
{
	Elf64_Ehdr *header = (void *)image->data;
	Elf64_Phdr *row = (void *)(image->data + header->e_phoff);

	for (int i = 0; i < header->e_phnum; i++)
		if (row[i].p_type == PT_DYNAMIC)
			row[i].p_type = PT_NULL;
}

static void test_versions(void **state)
{
	CLEANUP_IMAGE struct image image = load(fixture_dir, "libversions.so");
	struct elf_symbols found;

	assert_int_equal(find(&image, RUNTIME_CUDA, false, &found), 0);
	assert_int_equal(found.nr, 2);
	assert_int_equal(found.symbol[0].name, found.symbol[1].name);
	assert_int_not_equal(found.symbol[0].offset, found.symbol[1].offset);
	assert_int_equal(find(&image, RUNTIME_CUDA, true, &found), 0);
	assert_int_equal(found.nr, 2);
	/* The symbol table alone has the same two symbols, with the version in the name. */
	hide_dynamic(&image);
	assert_int_equal(find(&image, RUNTIME_CUDA, false, &found), 0);
	assert_int_equal(found.nr, 0);
	assert_int_equal(find(&image, RUNTIME_CUDA, true, &found), 0);
	assert_int_equal(found.nr, 2);
}

/*
 * An imported symbol can have an address in the executable, but the executable does not
 * define it.
 */
static void test_imports(void **state)
{
	CLEANUP_IMAGE struct image image = load(fixture_dir, "libcalls-gnu.so");
	Elf64_Ehdr *header = (void *)image.data;
	Elf64_Shdr *row = (void *)(image.data + header->e_shoff);
	struct elf_symbols found;

	while (row->sh_type != SHT_DYNSYM)
		row++;
	for (u64 i = 0; i < row->sh_size / sizeof(Elf64_Sym); i++)
		((Elf64_Sym *)(image.data + row->sh_offset))[i].st_shndx = SHN_UNDEF;
	assert_int_equal(find(&image, RUNTIME_CUDA, false, &found), 0);
	assert_int_equal(found.nr, 0);
}

static void test_static_runtime(void **state)
{
	CLEANUP_IMAGE struct image image = load(fixture_dir, "static-cudart");
	struct elf_symbols found;

	assert_int_equal(find(&image, RUNTIME_CUDA, false, &found), 0);
	assert_int_equal(found.nr, 0);
	check_three(&image, true);
}

static void test_foreign_files_are_refused(void **state)
{
	static const struct {
		size_t at;
		u8 value;
	} changes[] = {
		{ 0, 'F' }, /* not ELF */
		{ EI_CLASS, ELFCLASS32 },
		{ EI_DATA, ELFDATA2MSB },
		{ offsetof(Elf64_Ehdr, e_machine), EM_386 },
		{ offsetof(Elf64_Ehdr, e_type), ET_REL },
	};
	struct elf_symbols found;

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		CLEANUP_IMAGE struct image image = load(fixture_dir, "libcalls-gnu.so");

		((u8 *)image.data)[changes[i].at] = changes[i].value;
		assert_int_equal(find(&image, RUNTIME_CUDA, true, &found), -ENOEXEC);
	}
}

static ssize_t read_nothing(void *ctx, void *buffer, size_t size, u64 offset)
{
	struct image *image = ctx;

	return offset >= 4096 ? -EIO : image_read(image, buffer, size, offset);
}

/* An unreadable file is an error, not a file without calls. */
static void test_unreadable(void **state)
{
	CLEANUP_IMAGE struct image image = load(fixture_dir, "libcalls-gnu.so");
	struct elf_source source = { .read = read_nothing, .ctx = &image };
	struct elf_query query = { .with_symtab = true };
	struct elf_symbols found = { .nr = 77 };

	assert_int_equal(elf_find_symbols(&source, &query, &found), -EIO);
	assert_int_equal(found.nr, 77);
}

struct counted {
	struct image image;
	u32 nr_reads;
};

static ssize_t read_counted(void *ctx, void *buffer, size_t size, u64 offset)
{
	struct counted *counted = ctx;

	counted->nr_reads++;
	return image_read(&counted->image, buffer, size, offset);
}

/* A library with thousands of symbols needs a few reads per name, not one per symbol. */
static void test_few_reads(void **state)
{
	struct counted counted = {};
	const char *names[CALL_NR];
	struct elf_source source = { .read = read_counted, .ctx = &counted };
	struct elf_query query = { .names = names, .nr_names = names_of(RUNTIME_CUDA, names) };
	struct elf_symbols found;
	Dl_info libc;

	assert_true(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &libc) != 0);
	counted.image = load("", libc.dli_fname);
	assert_int_equal(elf_find_symbols(&source, &query, &found), 0);
	unload(&counted.image);
	assert_int_equal(found.nr, 0);
	print_message("# %u reads of %s for %u names\n", counted.nr_reads, libc.dli_fname,
		      query.nr_names);
	assert_in_range(counted.nr_reads, 1, 10 + 4 * query.nr_names);
}

#define CRAFTED_SYMBOLS (1U << 20)
#define CRAFTED_STRINGS (1ULL << 26) /* offset of the names */

/* Only the headers and symbols exist; the rest of the file is zero. Neighbors have distant names.
 */
static ssize_t read_crafted(void *ctx, void *buffer, size_t size, u64 offset)
{
	const Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
						 ELFDATA2LSB },
				    .e_type = ET_DYN,
#if defined(__x86_64__)
				    .e_machine = EM_X86_64,
#else
				    .e_machine = EM_AARCH64,
#endif
				    .e_phentsize = sizeof(Elf64_Phdr),
				    .e_shoff = 64,
				    .e_shentsize = sizeof(Elf64_Shdr),
				    .e_shnum = 2 };
	const Elf64_Shdr sections[] = {
		{ .sh_type = SHT_SYMTAB,
		  .sh_entsize = sizeof(Elf64_Sym),
		  .sh_link = 1,
		  .sh_offset = 4096,
		  .sh_size = CRAFTED_SYMBOLS * sizeof(Elf64_Sym) },
		{ .sh_type = SHT_STRTAB, .sh_offset = CRAFTED_STRINGS, .sh_size = 1 << 24 },
	};
	u32 *nr_reads = ctx;
	u8 *bytes = buffer;

	(*nr_reads)++;
	memset(buffer, 0, size);
	for (u64 at = offset; at < offset + size; at++) {
		u64 n = (at - 4096) / sizeof(Elf64_Sym);
		const Elf64_Sym symbol = { .st_info = STT_FUNC,
					   .st_shndx = 1,
					   .st_name = (u32)(n % 2 * (1 << 23) + 1) };

		if (at < sizeof(header))
			bytes[at - offset] = ((const u8 *)&header)[at];
		else if (at >= 64 && at < 64 + sizeof(sections))
			bytes[at - offset] = ((const u8 *)sections)[at - 64];
		else if (at >= 4096 && n < CRAFTED_SYMBOLS)
			bytes[at - offset] = ((const u8 *)&symbol)[(at - 4096) % sizeof(symbol)];
	}
	return (ssize_t)size;
}

/* A crafted file needs a read for each of a million names. Its search ends early, and is counted.
 */
static void test_many_reads(void **state)
{
	u32 nr_reads = 0;
	const char *names[CALL_NR];
	struct elf_source source = { .read = read_crafted, .ctx = &nr_reads };
	struct elf_query query = { .names = names,
				   .nr_names = names_of(RUNTIME_CUDA, names),
				   .with_symtab = true };
	struct elf_symbols found;

	assert_int_equal(elf_find_symbols(&source, &query, &found), 0);
	print_message("# %u reads\n", nr_reads);
	assert_in_range(nr_reads, 1000, 40000);
	assert_true(found.nr_dropped > 0);
}

static void test_truncated(void **state)
{
	CLEANUP_IMAGE struct image image = load(fixture_dir, "libcalls-gnu.so");
	struct elf_symbols found;

	for (size_t size = 0; size < image.size; size++) {
		/* Exactly `size` bytes, so that the sanitizer detects a read after the end. */
		CLEANUP_FREE u8 *data = malloc(size + !size);
		struct image cut = { data, size };
		int err;

		memcpy(data, image.data, size);
		err = find(&cut, RUNTIME_CUDA, true, &found);
		assert_int_equal(err, size < sizeof(Elf64_Ehdr) ? -ENOEXEC : 0);
	}
}

/* Damages the headers, the dynamic section, the tables, and random places. */
static void test_damaged(void **state)
{
	CLEANUP_IMAGE struct image image = load(lib_dir, "libcudart.so.12");
	const u32 spans[] = { 640, 8192, (u32)image.size };
	static const u8 extreme[] = { 0x00, 0x01, 0x7f, 0x80, 0xff };
	CLEANUP_FREE u8 *data = malloc(image.size);
	struct image damaged = { data, image.size };
	struct elf_symbols found;
	u32 nr_fewer = 0, nr_same = 0, nr_all;
	struct random r = random_start();

	assert_int_equal(find(&image, RUNTIME_CUDA, true, &found), 0);
	nr_all = found.nr;
	for (int round = 0; round < 4000; round++) {
		u32 span = spans[round % 3];

		memcpy(data, image.data, image.size);
		for (u32 n = 1 + random_below(&r, 16); n--;) {
			u32 at = random_below(&r, span);
			u32 length = 1 + random_below(&r, 8);
			u8 value = extreme[random_below(&r, 5)];

			memset(data + at, value, at + length < image.size ? length : 1);
		}
		if (find(&damaged, RUNTIME_CUDA, true, &found) == 0) {
			assert_true(found.nr <= ELF_SYMBOLS_MAX);
			nr_same += found.nr == nr_all;
			nr_fewer += found.nr < nr_all;
		}
	}
	print_message("# 4000 damaged files: %u with fewer calls, %u with all\n", nr_fewer,
		      nr_same);
	assert_true(nr_fewer > 100 && nr_same > 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_offsets_of_vgpu, "libcuda.so.1"),
		cmocka_unit_test_prestate(test_offsets_of_vgpu, "libcudart.so.12"),
		cmocka_unit_test_prestate(test_offsets_of_vgpu, "libnccl.so.2"),
		cmocka_unit_test_prestate(test_offsets_of_vgpu, "libamdhip64.so.6"),
		cmocka_unit_test_prestate(test_offsets_of_vgpu, "librccl.so.1"),
		cmocka_unit_test(test_hash_styles),
		cmocka_unit_test(test_few_reads),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_imports),
		cmocka_unit_test(test_static_runtime),
		cmocka_unit_test(test_foreign_files_are_refused),
		cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_many_reads),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_damaged),
	};

	if (argc != 4)
		return 2;
	lib_dir = argv[1];
	symbols_table = argv[2];
	fixture_dir = argv[3];
	return cmocka_run_group_tests_name("elf", tests, NULL, NULL);
}
