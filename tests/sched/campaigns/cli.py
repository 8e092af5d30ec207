# SPDX-License-Identifier: GPL-2.0-or-later
"""Outside the guest: boots a guest and prints the output of the campaigns in it."""
import argparse
import os
import subprocess

from . import guest, table

TIMEOUT_SECONDS = {"short": 600, "full": 7200}


def boot(names, form, kernel, options):
    paths = [f"{name}={os.environ[name]}" for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "ZERNEL_BUILD")]
    return subprocess.run(
        ["tools/vm", "--kernel", kernel, "--timeout", str(TIMEOUT_SECONDS[form]), *options, "--", "env", *paths,
         "python3", "-m", "campaigns", "guest", form, *names], check=False).returncode


def main(argv):
    if argv[:1] == ["guest"]:
        return guest.main(*argv[1:])
    parser = argparse.ArgumentParser(prog="./dev sched", description="Test the scheduler in a guest.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="Campaigns:\n" + "\n".join(f"  {c.name:10} {c.help}" for c in table.CAMPAIGNS))
    parser.add_argument("campaign", choices=[*table.BY_NAME, "short"], metavar="CAMPAIGN",
                        help="a campaign of the list below, or `short`: the campaigns of CI in their short form")
    parser.add_argument("--kernel", default="6.18", metavar="V",
                        help="kernel of the guest: 6.18 (default), newest, or any X.Y of the archive")
    args = parser.parse_args(argv)
    if args.campaign == "short":
        return boot([c.name for c in table.CAMPAIGNS if c.short], "short", args.kernel, ())
    print(f"./dev sched {' '.join(argv)}", flush=True)
    return boot([args.campaign], "full", args.kernel, table.BY_NAME[args.campaign].guest)
