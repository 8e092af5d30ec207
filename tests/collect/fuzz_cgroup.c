/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Parses arbitrary bytes as each file of the kernel that shows CPU limits. A result must keep its
 * bounds. Only the two complete forms of "no limit" may be read as such.
 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "core/cpu_limit.h"

#define TEXT_LEN 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char text[TEXT_LEN];
	struct cgroup_hierarchies hierarchies;
	struct cgroup_mount mount;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (cpu_quota_of_max(text) == CPU_QUOTA_NONE)
		REQUIRE(strncmp(text, "max ", 4) == 0 && strspn(text + 4, "0123456789\n") > 0);
	if (cpu_quota_of_cfs(text) == CPU_QUOTA_NONE)
		REQUIRE(strcmp(text, "-1\n") == 0 || strcmp(text, "-1") == 0);
	if (!cgroup_may_have_tasks(text))
		REQUIRE(strstr(text, "populated 0\n"));
	(void)cgroup_hierarchies_parse(text, &hierarchies);
	if (cgroup_mount_parse(text, &mount) == 0)
		REQUIRE(memchr(mount.path, '\0', sizeof(mount.path)) && mount.path[0] == '/');
	return 0;
}
