# SPDX-License-Identifier: GPL-2.0-only
"""The campaigns there are."""
from dataclasses import dataclass
from typing import Callable

from . import fairness, faults


@dataclass(frozen=True)
class Campaign:
    name: str
    run: Callable  # yields lines of what it measured, raises machine.Failed
    full: int  # how many, or how many seconds
    short: int = 0  # the same in CI; 0: not there
    guest: tuple = ()  # options of tools/vm

    @property
    def help(self):
        return self.run.__doc__.splitlines()[0]


CAMPAIGNS = (
    Campaign("cycles", faults.cycles, full=300, short=10),
    Campaign("kill", faults.kill, full=20, short=3),
    Campaign("broken", faults.broken, full=1, short=1),
    Campaign("stress", faults.stress, full=600),
    Campaign("rt", faults.rt, full=30),
    Campaign("fairness", fairness.fairness, full=30, guest=("--virtual-time",)),
)
BY_NAME = {campaign.name: campaign for campaign in CAMPAIGNS}
