# SPDX-License-Identifier: GPL-2.0-or-later
"""Inside the guest: runs campaigns and prints TAP."""
import os

from . import machine, table


def run(campaign, size):
    """Returns None, or why the campaign failed. Prints figures as they arrive."""
    machine.forget_kernel_log()
    try:
        for line in campaign.run(size):
            print(f"# {campaign.name}: {line}", flush=True)
        machine.check(machine.wait_for(machine.is_back, machine.BACK_SECONDS), "the scheduler is still attached at the end")
        machine.check(not machine.kernel_trouble(), f"the kernel log has warnings: {machine.kernel_trouble()[:30]}")
    except (machine.Failed, machine.schedulers.SchedulerError, OSError) as error:
        return str(error) or type(error).__name__
    return None


def main(form, *names):
    # zerneld inherits this, so that it loads in time under any load.
    os.setpriority(os.PRIO_PROCESS, 0, -20)
    print(f"1..{len(names)}", flush=True)
    failed = False
    for number, name in enumerate(names, 1):
        campaign = table.BY_NAME[name]
        trouble = run(campaign, getattr(campaign, form))
        print(f"{'not ok' if trouble else 'ok'} {number} - {os.uname().release}: {campaign.help} ({name})", flush=True)
        for line in (trouble or "").splitlines():
            print(f"# {line}", flush=True)
        failed |= trouble is not None
    return int(failed)
