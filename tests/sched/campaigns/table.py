# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of campaigns."""
from dataclasses import dataclass
from typing import Callable

from . import ablation, attach, everyday, fairness, faults, nice, places, spin, trips, verifier
from .pods import pod_jobs, pods, rivals

# In virtual time, other work on the machine does not change a figure.
VIRTUAL = ("--virtual-time",)
# Where a wakeup of another CPU that is late by 2 ms would be most of a figure.
FINE = ("--fine-time",)


@dataclass(frozen=True)
class Campaign:
    name: str
    run: Callable  # yields lines with figures, raises machine.Failed
    full: int  # size of the full form: repetitions or seconds
    short: int = 0  # size of the short form for CI; 0: there is none
    guest: tuple = ()  # options for tools/vm
    examples: bool = False  # the full form needs the kernel's example schedulers

    @property
    def help(self):
        return self.run.__doc__.splitlines()[0]


CAMPAIGNS = (
    Campaign("attach", attach.attach, full=5, short=1, guest=VIRTUAL),
    Campaign("cycles", faults.cycles, full=300, short=10, guest=VIRTUAL),
    Campaign("kill", faults.kill, full=20),
    Campaign("broken", faults.broken, full=1, short=1, guest=VIRTUAL),
    Campaign("stress", faults.stress, full=600),
    Campaign("rt", faults.rt, full=30),
    Campaign("fairness", fairness.fairness, full=30, guest=VIRTUAL),
    Campaign("weights", fairness.weights, full=10, guest=VIRTUAL),
    Campaign("pods", pods, full=5, short=2, guest=VIRTUAL),
    Campaign("pod-jobs", pod_jobs, full=5, guest=FINE),
    Campaign("rivals", rivals, full=10, guest=(*VIRTUAL, "--mem", "6144")),
    Campaign("spin", spin.spin, full=5, guest=FINE),
    Campaign("topology", places.topology, full=30,
             guest=(*VIRTUAL, "--cpus", "16", "--numa", "2", "--caches", "2", "--bare-node")),
    Campaign("caches", places.apart, full=5, guest=(*FINE, "--caches", "2")),
    Campaign("many", places.many, full=20, guest=("--cpus", "64", "--mem", "4096")),
    Campaign("large", places.large, full=10,
             guest=(*VIRTUAL, "--cpus", "64", "--numa", "2", "--caches", "2", "--mem", "4096")),
    Campaign("round-trips", trips.round_trips, full=10000, short=2000, guest=(*VIRTUAL, "--cpus", "1"), examples=True),
    Campaign("everyday", everyday.everyday, full=3, guest=VIRTUAL),
    Campaign("ablation", ablation.ablation, full=2, guest=VIRTUAL),
    Campaign("nice-restore", nice.nice_restore, full=20, guest=VIRTUAL),
    Campaign("verifier", verifier.verifier, full=1),
)
BY_NAME = {campaign.name: campaign for campaign in CAMPAIGNS}
# In one guest, because loading zerneld takes most of the time.
SHORT = ("cycles", "broken")
