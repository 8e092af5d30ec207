/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "collect/elf_symbols.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#define SEGMENTS_MAX 32
#define HEADERS_MAX  512 /* maximum number of program headers that are read */
#define DYNAMIC_MAX  4096
#define SYMBOLS_MAX  (1U << 20)
#define WINDOW_BYTES 8192
/*
 * Maximum number of reads of a file. A file can have its names in an order in which each one needs
 * a read, and a million of them.
 */
#define READS_MAX    32768

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#error "calls are decoded on x86-64 and arm64 only"
#endif

/* A part of the file. Two windows allow reading symbols and their names alternately. */
struct window {
	const struct elf_source *source;
	u8 *bytes; /* buffer of WINDOW_BYTES */
	u64 start;
	size_t size;
	int error;     /* the first error of the source */
	u32 *nr_reads; /* of all windows */
};

struct segment {
	u64 address;
	u64 offset;
	u64 size;
	u32 flags;
};

struct scan {
	struct window *tables;
	struct window *strings;
	const struct elf_query *query;
	struct elf_symbols *found;
	struct segment segment[SEGMENTS_MAX];
	u32 nr_segments;
	u64 dynamic_offset;
	u64 dynamic_size;
};

/* The file offsets of a symbol table and its strings. */
struct table {
	u64 symbols;
	u64 nr;
	u64 strings;
	u64 strings_size;
};

/* Returns `size` bytes at `offset`, valid until the next call. NULL: the file is too short. */
static const u8 *window_at(struct window *window, u64 offset, size_t size)
{
	u64 start = offset - offset % (WINDOW_BYTES / 2);
	ssize_t n;

	if (size > WINDOW_BYTES / 2 || offset > INT64_MAX - WINDOW_BYTES)
		return NULL;
	if (offset < window->start || offset - window->start + size > window->size) {
		window->size = 0;
		if (++*window->nr_reads > READS_MAX)
			return NULL;
		n = window->source->read(window->source->ctx, window->bytes, WINDOW_BYTES, start);
		if (n < 0) {
			window->error = window->error ?: (int)n;
			return NULL;
		}
		window->start = start;
		window->size = (size_t)n;
		if (offset - start + size > window->size)
			return NULL;
	}
	return window->bytes + (offset - window->start);
}

static bool copy_at(struct window *window, u64 offset, void *ret, size_t size)
{
	const u8 *bytes = window_at(window, offset, size);

	if (bytes)
		memcpy(ret, bytes, size);
	return bytes;
}

/* Copies the n-th element of an array in the file. */
static bool copy_nth(struct window *window, u64 array, u64 n, void *ret, size_t size)
{
	u64 offset;

	if (__builtin_mul_overflow(n, (u64)size, &offset) ||
	    __builtin_add_overflow(array, offset, &offset))
		return false;
	return copy_at(window, offset, ret, size);
}

static bool header_is_ours(const Elf64_Ehdr *header)
{
	return !memcmp(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
	       header->e_machine == MACHINE &&
	       (header->e_type == ET_DYN || header->e_type == ET_EXEC) &&
	       header->e_phentsize == sizeof(Elf64_Phdr);
}

static void read_segments(struct scan *scan, const Elf64_Ehdr *header)
{
	u32 nr = header->e_phnum < HEADERS_MAX ? header->e_phnum : HEADERS_MAX;

	for (u32 i = 0; i < nr; i++) {
		Elf64_Phdr row;

		if (!copy_nth(scan->tables, header->e_phoff, i, &row, sizeof(row)))
			return;
		if (row.p_type == PT_DYNAMIC) {
			scan->dynamic_offset = row.p_offset;
			scan->dynamic_size = row.p_filesz;
		}
		if (row.p_type != PT_LOAD || scan->nr_segments == SEGMENTS_MAX)
			continue;
		scan->segment[scan->nr_segments++] = (struct segment){
			.address = row.p_vaddr,
			.offset = row.p_offset,
			.size = row.p_filesz,
			.flags = row.p_flags,
		};
	}
}

/* The file offset of an address of the loaded image. */
static bool find_offset(const struct scan *scan, u64 address, u32 flags, u64 *ret)
{
	for (u32 i = 0; i < scan->nr_segments; i++) {
		const struct segment *segment = &scan->segment[i];

		if (address < segment->address || address - segment->address >= segment->size ||
		    (segment->flags & flags) != flags)
			continue;
		return !__builtin_add_overflow(segment->offset, address - segment->address, ret) &&
		       *ret <= INT64_MAX;
	}
	return false;
}

/*
 * Compares the first `length` characters of a name, without its version after the @, with
 * `name`.
 */
static int compare_name(const char *text, size_t length, const char *name)
{
	int order = strncmp(text, name, length);

	return order ? order : name[length] ? -1 : 0;
}

static bool find_name(const struct elf_query *query, const char *text, size_t length, u32 *ret)
{
	u32 low = 0, high = query->nr_names;

	while (low < high) {
		u32 middle = low + (high - low) / 2;
		int order = compare_name(text, length, query->names[middle]);

		if (!order) {
			*ret = middle;
			return true;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return false;
}

static void add_symbol(struct elf_symbols *found, struct elf_symbol symbol)
{
	for (u32 i = 0; i < found->nr; i++)
		if (found->symbol[i].name == symbol.name &&
		    found->symbol[i].offset == symbol.offset)
			return;
	if (found->nr == ELF_SYMBOLS_MAX) {
		found->nr_dropped++;
		return;
	}
	found->symbol[found->nr++] = symbol;
}

/* Skips indirect functions: their address is the address of the resolver. */
static void consider_symbol(struct scan *scan, const struct table *table, const Elf64_Sym *row)
{
	struct elf_symbol symbol = { .size = row->st_size };
	size_t room = ELF_NAME_BYTES, length;
	const char *text;
	u64 at;

	if (ELF64_ST_TYPE(row->st_info) != (scan->query->of_data ? STT_OBJECT : STT_FUNC) ||
	    row->st_shndx == SHN_UNDEF || row->st_name >= table->strings_size)
		return;
	if (table->strings_size - row->st_name < room)
		room = table->strings_size - row->st_name;
	if (__builtin_add_overflow(table->strings, (u64)row->st_name, &at))
		return;
	text = (const char *)window_at(scan->strings, at, room);
	if (!text)
		return;
	length = strnlen(text, room);
	if (length == room)
		return;
	length = (size_t)(strchrnul(text, '@') - text);
	if (!find_name(scan->query, text, length, &symbol.name) ||
	    !find_offset(scan, row->st_value, scan->query->of_data ? 0 : PF_X, &symbol.offset))
		return;
	add_symbol(scan->found, symbol);
}

static bool consider_nth(struct scan *scan, const struct table *table, u64 n)
{
	Elf64_Sym row;

	if (!copy_nth(scan->tables, table->symbols, n, &row, sizeof(row)))
		return false;
	consider_symbol(scan, table, &row);
	return true;
}

static void scan_table(struct scan *scan, const struct table *table)
{
	u32 nr = table->nr < SYMBOLS_MAX ? (u32)table->nr : SYMBOLS_MAX;

	for (u32 i = 0; i < nr; i++)
		if (!consider_nth(scan, table, i))
			return;
	if (table->nr > nr) {
		u64 rest = table->nr - nr;

		scan->found->nr_dropped += rest < UINT32_MAX / 2 ? (u32)rest : UINT32_MAX / 2;
	}
}

/* The hash function of the dynamic linker. */
static u32 gnu_hash_of(const char *name)
{
	u32 hash = 5381;

	while (*name)
		hash = hash * 33 + (u8)*name++;
	return hash;
}

/*
 * Looks up each name like the dynamic linker. Reading all symbols would need a read per
 * symbol, because symbols and their names are in different orders, and a compiler library
 * exports 30,000 symbols. A chain ends where the lowest bit is set. It usually has a few
 * symbols; the budget limits the chains of a malicious file.
 */
static void search_gnu_hash(struct scan *scan, const struct table *table, u64 offset)
{
	struct {
		u32 nr_buckets, first, nr_bloom, shift;
	} header;
	u64 buckets, chains;
	u32 budget = SYMBOLS_MAX;

	if (!copy_at(scan->tables, offset, &header, sizeof(header)) || !header.nr_buckets)
		return;
	buckets = offset + sizeof(header) + (u64)header.nr_bloom * sizeof(u64);
	chains = buckets + (u64)header.nr_buckets * sizeof(u32);
	for (u32 i = 0; i < scan->query->nr_names; i++) {
		u32 wanted = gnu_hash_of(scan->query->names[i]), hash = 0, at;

		if (!copy_nth(scan->tables, buckets, wanted % header.nr_buckets, &at, sizeof(at)))
			return;
		for (u64 n = at; at >= header.first && !(hash & 1); n++) {
			if (!budget--) {
				scan->found->nr_dropped++;
				return;
			}
			if (!copy_nth(scan->tables, chains, n - header.first, &hash, sizeof(hash)))
				return;
			if (hash >> 1 == wanted >> 1)
				consider_nth(scan, table, n);
		}
	}
}

static u64 count_sysv_hash(struct scan *scan, u64 offset)
{
	u32 header[2]; /* buckets, chain entries; each symbol has one chain entry */

	return copy_at(scan->tables, offset, header, sizeof(header)) ? header[1] : 0;
}

/*
 * Finds exported symbols like the dynamic linker. Section headers have the same data, but
 * they can be stripped, because a running program does not need them.
 */
static void scan_dynamic(struct scan *scan)
{
	u64 value[DT_NUM] = {}, gnu_hash = 0, offset;
	struct table table = {};

	for (u64 i = 0; i < scan->dynamic_size / sizeof(Elf64_Dyn) && i < DYNAMIC_MAX; i++) {
		Elf64_Dyn row;

		if (!copy_nth(scan->tables, scan->dynamic_offset, i, &row, sizeof(row)) ||
		    row.d_tag == DT_NULL)
			break;
		if (row.d_tag > 0 && row.d_tag < DT_NUM)
			value[row.d_tag] = row.d_un.d_val;
		if (row.d_tag == DT_GNU_HASH)
			gnu_hash = row.d_un.d_val;
	}
	if (!find_offset(scan, value[DT_SYMTAB], 0, &table.symbols) ||
	    !find_offset(scan, value[DT_STRTAB], 0, &table.strings))
		return;
	table.strings_size = value[DT_STRSZ];
	if (gnu_hash && find_offset(scan, gnu_hash, 0, &offset)) {
		search_gnu_hash(scan, &table, offset);
	} else if (value[DT_HASH] && find_offset(scan, value[DT_HASH], 0, &offset)) {
		table.nr = count_sysv_hash(scan, offset);
		scan_table(scan, &table);
	}
}

/* The names of functions that are not exported are only in a section, unless it is stripped. */
static void scan_sections(struct scan *scan, const Elf64_Ehdr *header)
{
	if (header->e_shentsize != sizeof(Elf64_Shdr))
		return;
	for (u32 i = 0; i < header->e_shnum; i++) {
		Elf64_Shdr symbols, strings;

		if (!copy_nth(scan->tables, header->e_shoff, i, &symbols, sizeof(symbols)))
			return;
		if (symbols.sh_type != SHT_SYMTAB || symbols.sh_entsize != sizeof(Elf64_Sym) ||
		    symbols.sh_link >= header->e_shnum ||
		    !copy_nth(scan->tables, header->e_shoff, symbols.sh_link, &strings,
			      sizeof(strings)) ||
		    strings.sh_type != SHT_STRTAB)
			continue;
		scan_table(scan, &(struct table){ .symbols = symbols.sh_offset,
						  .nr = symbols.sh_size / sizeof(Elf64_Sym),
						  .strings = strings.sh_offset,
						  .strings_size = strings.sh_size });
		return; /* a file has one symbol table, and the work must be bounded */
	}
}

int elf_find_symbols(const struct elf_source *source, const struct elf_query *query,
		     struct elf_symbols *ret)
{
	u8 table_bytes[WINDOW_BYTES], string_bytes[WINDOW_BYTES];
	u32 nr_reads = 0;
	struct window tables = { .source = source, .bytes = table_bytes, .nr_reads = &nr_reads };
	struct window strings = { .source = source, .bytes = string_bytes, .nr_reads = &nr_reads };
	struct elf_symbols found = {};
	struct scan scan = {
		.tables = &tables,
		.strings = &strings,
		.query = query,
		.found = &found,
	};
	Elf64_Ehdr header;

	if (!copy_at(&tables, 0, &header, sizeof(header)))
		return tables.error ?: -ENOEXEC;
	if (!header_is_ours(&header))
		return -ENOEXEC;
	read_segments(&scan, &header);
	scan_dynamic(&scan);
	if (query->with_symtab)
		scan_sections(&scan, &header);
	if (tables.error || strings.error)
		return tables.error ?: strings.error;
	found.nr_dropped += nr_reads > READS_MAX;
	*ret = found;
	return 0;
}

int elf_find_section(const struct elf_source *source, const char *name, u64 *ret)
{
	u8 table_bytes[WINDOW_BYTES], string_bytes[WINDOW_BYTES];
	u32 nr_reads = 0;
	struct window tables = { .source = source, .bytes = table_bytes, .nr_reads = &nr_reads };
	struct window strings = { .source = source, .bytes = string_bytes, .nr_reads = &nr_reads };
	Elf64_Ehdr header;
	Elf64_Shdr row, names;

	if (!copy_at(&tables, 0, &header, sizeof(header)))
		return tables.error ?: -ENOEXEC;
	if (!header_is_ours(&header) || header.e_shentsize != sizeof(row))
		return -ENOEXEC;
	if (!copy_nth(&tables, header.e_shoff, header.e_shstrndx, &names, sizeof(names)))
		return tables.error ?: -ENOENT;
	for (u32 i = 0; i < header.e_shnum; i++) {
		const u8 *text;
		u64 at;

		if (!copy_nth(&tables, header.e_shoff, i, &row, sizeof(row)))
			return tables.error ?: -ENOENT;
		if (row.sh_type != SHT_PROGBITS || row.sh_offset > INT64_MAX ||
		    __builtin_add_overflow(names.sh_offset, (u64)row.sh_name, &at))
			continue;
		text = window_at(&strings, at, strlen(name) + 1);
		if (text && !memcmp(text, name, strlen(name) + 1)) {
			*ret = row.sh_offset;
			return 0;
		}
	}
	return strings.error ?: -ENOENT;
}
