/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/access.h"
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "base/file.h"

static bool find_group(const char *name, gid_t *ret)
{
	const struct group *group = getgrnam(name);

	if (group)
		*ret = group->gr_gid;
	return group;
}

struct access_groups access_groups_read(void)
{
	struct access_groups groups = {};

	groups.has_read = find_group(ACCESS_GROUP_READ, &groups.read);
	groups.has_change = find_group(ACCESS_GROUP_CHANGE, &groups.change);
	return groups;
}

enum access access_of(const struct access_groups *groups, bool read_own,
		      const struct socket_peer *peer)
{
	if (peer->uid == 0 || (groups->has_change && socket_peer_is_in(peer, groups->change)))
		return ACCESS_CHANGE;
	if (groups->has_read && socket_peer_is_in(peer, groups->read))
		return ACCESS_READ;
	return read_own ? ACCESS_OWN : ACCESS_NONE;
}

void access_describe(const struct socket_peer *peer, char *text, size_t size)
{
	char path[32], comm[16] = "";

	snprintf(path, sizeof(path), "/proc/%d/comm", peer->pid);
	file_read_text(path, comm, sizeof(comm));
	comm[strcspn(comm, "\n")] = '\0';
	/* If the process has exited, the pid and the name can belong to another process. */
	if (peer->pidfd < 0 ||
	    (syscall(SYS_pidfd_send_signal, peer->pidfd, 0, NULL, 0) < 0 && errno == ESRCH))
		strcpy(comm, "unknown");
	snprintf(text, size, "%s (pid %d, user %u)", comm, peer->pid, peer->uid);
}
