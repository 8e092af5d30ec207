/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Drops all privileges permanently. A process that runs as root changes to `user`. All
 * capability sets are emptied, programs that it executes gain no privileges, and its memory
 * is not dumped to a core file. -ESRCH: the user does not exist. -EPERM: the user is root.
 */
int privileges_drop(const char *user);
