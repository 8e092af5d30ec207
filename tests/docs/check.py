#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the documents: their length, the links of the pages outside of docs/, and the parts of evidence pages.

mkdocs checks the links inside of docs/, in the test beside this one.
"""
import os
import pathlib
import re
import unittest

import tap

ROOT = pathlib.Path(os.environ["ZERNEL_SOURCE"])
DOCS = ROOT / "docs"
PAGE_LINES = 250
README_LINES = 150
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
EVIDENCE = ("Claim", "Command", "Commit", "Result", "Limits")
DIALECT = re.compile(r"\b[Ww]hoever\b|^ \* Who |It is .* with commas|makes no sense|that is none", re.M)


def pages():
    return sorted(DOCS.rglob("*.md"))


def top_level():
    return sorted([*ROOT.glob("*.md"), *(ROOT / ".github").rglob("*.md")])


def sources(*folders):
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix not in {".png", ".svg", ".pyc"}:
                yield path


def outside_code(text):
    return re.sub(r"```.*?```", "", text, flags=re.S)


class Pages(unittest.TestCase):
    def test_no_page_is_too_long(self):
        long = {str(page): lines for page in pages()
                if (lines := len(page.read_text(encoding="utf-8").splitlines())) > PAGE_LINES}
        self.assertEqual(long, {})

    def test_the_readme_is_short(self):
        self.assertLessEqual(len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()), README_LINES)

    def test_links_of_top_level_pages_lead_to_files(self):
        for page in top_level():
            for target in LINK.findall(outside_code(page.read_text(encoding="utf-8"))):
                if "://" in target or target.startswith(("#", "mailto:")):
                    continue
                self.assertTrue((page.parent / target.partition("#")[0]).exists(), f"{page}: {target}")

    def test_evidence_pages_have_all_parts(self):
        for page in sorted((DOCS / "evidence").glob("*.md")):
            if page.name == "index.md":
                continue
            text = page.read_text(encoding="utf-8")
            for part in EVIDENCE:
                self.assertRegex(text, rf"(?m)^(#+ |\*\*){part}", f"{page}: no part '{part}'")

    def test_the_index_of_evidence_lists_every_page(self):
        index = (DOCS / "evidence/index.md").read_text(encoding="utf-8")
        for page in sorted((DOCS / "evidence").glob("*.md")):
            if page.name != "index.md":
                self.assertIn(f"({page.name})", index)


class Language(unittest.TestCase):
    def test_phrases_of_the_old_dialect_do_not_return(self):
        found = [f"{path}: {match}" for path in [ROOT / "README.md", *sources("src", "lab", "docs")]
                 for match in DIALECT.findall(path.read_text(encoding="utf-8", errors="replace"))]
        self.assertEqual(found, [])


if __name__ == "__main__":
    tap.main()
