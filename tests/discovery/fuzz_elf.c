/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Searches arbitrary bytes as a mapped library. Every symbol found must be a requested
 * name, once per offset. The symbol table may only add to the exported symbols.
 */
#include "fuzz/fuzz.h"

#include "discovery/source.h"

static void check_symbols(const struct elf_query *query, const struct elf_symbols *found)
{
	REQUIRE(found->nr <= ELF_SYMBOLS_MAX);
	for (u32 i = 0; i < found->nr; i++) {
		const struct elf_symbol *symbol = &found->symbol[i];

		REQUIRE(symbol->name < query->nr_names);
		REQUIRE(symbol->offset <= INT64_MAX);
		for (u32 k = 0; k < i; k++)
			REQUIRE(found->symbol[k].name != symbol->name ||
				found->symbol[k].offset != symbol->offset);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct elf_symbols exported, all;
	struct image image = { data, size };
	struct elf_source source = { .read = image_read, .ctx = &image };
	static const char *names[CALL_NR];
	static u32 nr_names;
	struct elf_query query = { .names = names };
	int err;

	if (!nr_names)
		nr_names = names_of(RUNTIME_CUDA, names);
	query.nr_names = nr_names;
	err = elf_find_symbols(&source, &query, &exported);
	query.with_symtab = true;
	REQUIRE(elf_find_symbols(&source, &query, &all) == err);
	if (err)
		return 0;
	check_symbols(&query, &exported);
	check_symbols(&query, &all);
	REQUIRE(all.nr >= exported.nr);
	REQUIRE(!memcmp(all.symbol, exported.symbol, exported.nr * sizeof(*all.symbol)));
	return 0;
}
