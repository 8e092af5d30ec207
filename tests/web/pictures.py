# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws the pictures of docs/guides/dashboard.md, or with `all` those of docs/evidence/dashboard.md: every page in light, dark and
phone width, smaller.

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
SMALL = 0.6  # size of the pictures of every page
HISTORY_S = 70  # the page Compare needs two windows


class Pictures(WebCase):
    pass


def two_windows():
    end = int(time.time()) - 1
    return f"#/compare?as={end - 60}&au={end - 30}&bs={end - 30}&bu={end}"


def draw(case, folder, name, page, scheme, width, scale=1):
    case.size(width, HEIGHTS[width])
    case.media(scheme)
    case.open(page)
    case.wait("h1")
    time.sleep(5)  # the history is there, and the strips have some phases
    clip = {"x": 0, "y": 0, "width": width, "height": HEIGHTS[width], "scale": scale}
    taken = case.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "webp", "quality": 70, "clip": clip})
    (folder / f"dashboard-{name}.webp").write_bytes(base64.b64decode(taken["data"]))


def main():
    folder = pathlib.Path(sys.argv[1])
    Pictures.setUpClass()
    try:
        case = Pictures()
        case.driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        if sys.argv[2:] == ["all"]:
            time.sleep(HISTORY_S)
            for name, page in PAGES.items():
                for kind, scheme, width in (("light", "light", 1200), ("dark", "dark", 1200), ("phone", "light", 390)):
                    draw(case, folder, f"{name}-{kind}", two_windows() if name == "compare" else page, scheme, width, SMALL)
        else:
            for name, scheme, width in DOCS:
                draw(case, folder, name, PAGES.get(name, "#/now"), scheme, width)
    finally:
        Pictures.tearDownClass()


if __name__ == "__main__":
    main()
