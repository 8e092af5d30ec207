# SPDX-License-Identifier: GPL-2.0-or-later
"""The scheduler is attached beside other work, and detached."""
import os
import time

from . import machine
from .machine import check

HOGS_PER_CPU = 2


def attach(number):
    """Attach zerneld beside hogs, take a CPU offline and online, and detach zerneld."""
    yield f"uname -m: {os.uname().machine}"
    for _ in range(number):
        begin = time.monotonic()
        with machine.attached() as attached, machine.hogs([machine.Hog] * (HOGS_PER_CPU * os.cpu_count())) as hogs:
            yield f"attached after {time.monotonic() - begin:.1f} s: {machine.read_sysfs('root/ops')}"
            got = machine.cpu_time_of(hogs, 2)
            machine.set_online(1, False)
            time.sleep(1)
            machine.set_online(1, True)
            more = machine.cpu_time_of(hogs, 2)
            check(not attached.trouble(), attached.trouble())
        yield f"CPU time of {len(got)} hogs in 2 s: {sum(got):.2f} s, after CPU 1 was offline: {sum(more):.2f} s"
        check(min(got + more) > 0.3, "a hog did not get its share")
        check("scheduler detached: unregistered from user space" in machine.log_text(), "zerneld did not detach")
