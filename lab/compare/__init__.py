# SPDX-License-Identifier: GPL-2.0-or-later
"""The comparer: runs the same jobs under several schedulers, in one or more boots of a guest.

scenarios.py and schedulers.py are the tables. run.py works inside the guest and
writes one line of JSON for each run. cli.py boots the guests and passes the runs to
rows.py and stats.py (statistics) and to report.py (table and picture).
"""
