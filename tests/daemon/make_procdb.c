/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a database of N programs with confident profiles: `make_procdb FILE N`. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "store/procdb_store.h"

int main(int argc, char **argv)
{
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	struct procdb *db = NULL;
	int nr = argc == 3 ? atoi(argv[2]) : 0, err = procdb_new(&config, &db);

	for (int i = 0; i < nr && err == 0; i++) {
		struct procdb_key key = { .exe_id = (u64)i + 1 };
		struct procdb_record seen = { .tier = TIER_BATCH,
					      .behaviour.runtime_avg_ns = NSEC_PER_MSEC };

		snprintf(key.comm, sizeof(key.comm), "prog%d", i);
		for (int k = 0; k < 4 && err == 0; k++)
			err = procdb_merge(db, &key, 0, &seen, (u64)time(NULL));
	}
	if (err == 0)
		err = procdb_store_save(db, argv[1]);
	procdb_free(db);
	return nr == 0 || err < 0;
}
