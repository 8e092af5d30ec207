# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws the pictures of docs/guides/dashboard.md, or with `all` every page in light, dark and phone width as PNG.

Usage: pictures.py FOLDER [all]
"""
import base64
import pathlib
import sys
import time

from dashboard import WebCase

PAGES = {"now": "#/now", "job": "#/job/slurm-4711?span=60", "scheduler": "#/scheduler", "compare": "#/compare", "health": "#/health"}
DOCS = [("now", "light", 1200), ("job", "dark", 1200), ("phone", "light", 390)]
HEIGHTS = {1200: 1420, 390: 844}


class Pictures(WebCase):
    pass


def draw(case, folder, name, page, scheme, width, kind):
    case.size(width, HEIGHTS[width])
    case.media(scheme)
    case.open(page)
    case.wait("h1")
    time.sleep(5)  # the history is there, and the strips have some phases
    taken = case.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": kind, **({"quality": 70} if kind == "webp" else {})})
    (folder / f"dashboard-{name}.{kind}").write_bytes(base64.b64decode(taken["data"]))


def main():
    folder = pathlib.Path(sys.argv[1])
    Pictures.setUpClass()
    try:
        case = Pictures()
        case.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        if sys.argv[2:] == ["all"]:
            for name, page in PAGES.items():
                for scheme, width in (("light", 1200), ("dark", 1200), ("light", 390)):
                    draw(case, folder, f"{name}-{scheme}-{width}", page, scheme, width, "png")
        else:
            for name, scheme, width in DOCS:
                draw(case, folder, name, PAGES.get(name, "#/now"), scheme, width, "webp")
    finally:
        Pictures.tearDownClass()


if __name__ == "__main__":
    main()
