# SPDX-License-Identifier: GPL-2.0-or-later
"""The comparer: the same jobs under several schedulers, in one boot of a guest.

scenarios.py and schedulers.py are the tables; run.py works inside the guest and
writes a line of JSON a run; cli.py boots the guest and hands what it wrote to
stats.py (what the figures mean) and report.py (how they look).
"""
