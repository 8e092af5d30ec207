# SPDX-License-Identifier: GPL-2.0-or-later
"""Judges the roles of a job: each thread must have its true role for most of its life."""
import collections

import agreement

MIN_SHARE = 0.97  # of the life of each thread


def judge(tap, where, truth, timeline):
    by_role, all_threads = collections.defaultdict(list), collections.Counter()
    for (_, _, role), matrix in agreement.of_roles(truth, timeline).items():
        by_role[role].append(agreement.share_of_roles(matrix))
        all_threads += matrix
    for role, shares in sorted(by_role.items()):
        print(f"# {where}: {len(shares)} x {role}: role is correct for {min(shares):.4f} to {max(shares):.4f} of the time")
    agreement.show(where, all_threads, "role", agreement.ROLES)
    agreement.show(f"{where}, on the critical path", agreement.of_critical(truth, timeline), "role", agreement.ROLES)
    least = min((share for shares in by_role.values() for share in shares), default=0)
    tap.check(least >= MIN_SHARE, f"{where}: the role of each thread is correct for at least {least:.4f} of its life")
