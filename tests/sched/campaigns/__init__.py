# SPDX-License-Identifier: GPL-2.0-or-later
"""Campaigns against the scheduler: faults, fairness, everyday work, topologies.

table.py says which there are, how long each is in its short and its full form and
what guest it needs; cli.py boots that guest; guest.py runs campaigns inside it and
speaks TAP. machine.py is what the campaigns do to the guest and how they watch it.
"""
