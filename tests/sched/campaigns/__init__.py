# SPDX-License-Identifier: GPL-2.0-or-later
"""Campaigns that test the scheduler: faults, fairness, everyday work, topologies.

table.py lists the campaigns, with the length of the short and the full form and the
guest that each one needs. cli.py boots that guest. guest.py runs campaigns inside it
and prints TAP. machine.py contains the operations on the guest and the measurements.
"""
