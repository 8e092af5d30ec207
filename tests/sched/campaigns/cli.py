# SPDX-License-Identifier: GPL-2.0-or-later
"""Outside the guest: boots a guest and prints the output of the campaigns in it."""
import argparse
import os
import subprocess

from . import guest, table

# The environment of this process that the guest gets.
PASSED_ON = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "ZERNEL_BUILD", "CAMPAIGN_CASES", "CAMPAIGN_SIZE", "ZERNEL_EXAMPLES")
TIMEOUT_SECONDS = {"short": 2200, "full": 7200}


def boot(names, form, kernel, options):
    paths = [f"{name}={os.environ[name]}" for name in PASSED_ON if name in os.environ]
    return subprocess.run(
        ["tools/vm", "--kernel", kernel, "--timeout", str(TIMEOUT_SECONDS[form]), *options, "--", "env", *paths,
         "python3", "-m", "campaigns", "guest", form, *names], check=False).returncode


def main(argv):
    if argv[:1] == ["guest"]:
        return guest.main(*argv[1:])
    parser = argparse.ArgumentParser(prog="./dev sched", description="Test the scheduler in a guest.",
                                     formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="Campaigns:\n" + "\n".join(f"  {c.name:12} {c.help}" for c in table.CAMPAIGNS))
    parser.add_argument("campaign", choices=[*table.BY_NAME, "short"], metavar="CAMPAIGN",
                        help="a campaign of the list below, or `short`: the campaigns of CI in their short form")
    parser.add_argument("--kernel", default="6.18", metavar="V",
                        help="kernel of the guest: 6.18 (default), newest, or any X.Y of the archive")
    parser.add_argument("--short", action="store_true", help="run the short form, where the campaign has one")
    parser.add_argument("--case", default="", metavar="CASE,...", help="run only these cases of the campaign `pods` or `pod-jobs`")
    args = parser.parse_args(argv)
    os.environ["CAMPAIGN_CASES"] = args.case
    if args.campaign == "short":
        return boot(table.SHORT, "short", args.kernel, table.VIRTUAL)
    campaign = table.BY_NAME[args.campaign]
    form = "short" if args.short and campaign.short else "full"
    if campaign.examples and form == "full":
        os.environ["ZERNEL_EXAMPLES"] = subprocess.run(["tools/scx-examples", args.kernel], check=True, text=True,
                                                       stdout=subprocess.PIPE).stdout.strip()
    print(f"# ./dev sched {' '.join(argv)}", flush=True)
    return boot([campaign.name], form, args.kernel, campaign.guest)
