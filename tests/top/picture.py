# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws docs/guides/top.png: `zernel top` in color, with the fake node of the tests.

    tools/root layer picture
    ./dev shell python3 tests/top/picture.py out/gcc docs/guides/top.png
"""
import os
import pathlib
import re
import sys
import unicodedata

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "serve")]
FONTS = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono"
SIZE = (120, 20)
HISTORY_SECONDS = 34
CELL = (9, 18)
MARGIN = 12
BACKGROUND, FOREGROUND = "#16181d", "#d6d9df"
COLOURS = ("#16181d", "#e05561", "#8cc265", "#d8b04a", "#4a8fe0", "#b877db", "#42b3c2", "#d6d9df")
ESCAPE = re.compile(r"\033\[([0-9;]*)m|\033\([A-Z0-9]|.", re.S)


def attributes_after(attributes, codes):
    """Foreground, background, bold and reverse after an SGR sequence."""
    foreground, background, bold, reverse = attributes
    for code in [int(code or 0) for code in codes.split(";")]:
        if code == 0:
            foreground, background, bold, reverse = None, None, False, False
        elif code in (1, 22):
            bold = code == 1
        elif code in (7, 27):
            reverse = code == 7
        elif 30 <= code <= 37 or code == 39:
            foreground = None if code == 39 else COLOURS[code - 30]
        elif 40 <= code <= 47 or code == 49:
            background = None if code == 49 else COLOURS[code - 40]
    return foreground, background, bold, reverse


def cells(text):
    """Yields (column, line, width, character, foreground, background, bold) of text that tmux captured."""
    attributes, x, y = (None, None, False, False), 0, 0
    for match in ESCAPE.finditer(text):
        part = match.group()
        if match.group(1) is not None:
            attributes = attributes_after(attributes, match.group(1))
        elif part == "\n":
            x, y = 0, y + 1
        elif not part.startswith("\033"):
            foreground, background = attributes[0] or FOREGROUND, attributes[1] or BACKGROUND
            if attributes[3]:
                foreground, background = background, foreground
            width = 2 if unicodedata.east_asian_width(part) in "WF" else 1
            yield x, y, width, part, foreground, background, attributes[2]
            x += width


def draw(text, path):
    from PIL import Image, ImageDraw, ImageFont
    fonts = [ImageFont.truetype(f"{FONTS}{style}.ttf", 15) for style in ("", "-Bold")]
    image = Image.new("RGB", (SIZE[0] * CELL[0] + 2 * MARGIN, SIZE[1] * CELL[1] + 2 * MARGIN), BACKGROUND)
    pen = ImageDraw.Draw(image)
    for x, y, width, character, foreground, background, bold in cells(text):
        left, top = MARGIN + x * CELL[0], MARGIN + y * CELL[1]
        pen.rectangle((left, top, left + width * CELL[0] - 1, top + CELL[1] - 1), fill=background)
        pen.text((left, top), character, font=fonts[bold], fill=foreground)
    image.quantize(64).save(path, optimize=True)


def main(build, path):
    os.environ["ZERNEL_BUILD"] = os.path.abspath(build)
    import harness
    import scene

    def node(second):
        """The node of the tests without characters that the font lacks."""
        snapshot = scene.node(second)
        snapshot["processes"][-1]["comm"] = "tr\u00e4ning"
        return snapshot

    class Picture(harness.TopCase):
        scene_at = staticmethod(node)

        def runTest(self):
            self.start(seconds=HISTORY_SECONDS, size=SIZE, TERM="screen")
            self.screen.keys("Down", "Down", "Down", "Enter")
            self.shows("1021 nccl")
            draw(self.screen.text("-e", "-N"), path)

    Picture().debug()


if __name__ == "__main__":
    main(*sys.argv[1:])
