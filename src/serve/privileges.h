/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * For good, and whatever this process was started with: another user if it is root, no
 * capability in any set, none to be gained by what it may execute, no core dump of its
 * secrets. -ESRCH: there is no such user. -EPERM: the user is root.
 */
int privileges_drop(const char *user);
