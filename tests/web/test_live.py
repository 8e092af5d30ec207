# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page says about its connection, its data, names that try to be markup, and people with a keyboard only."""
from urllib.parse import quote

import tap
from dashboard import ActionChains, AXE, Keys, WebCase
from scene import HOSTILE

# Each page, and what it shows when its data is there.
PAGES = {"#/now": ".sentence", "#/job/slurm-4711?causes=all": ".lanes canvas", "#/job": ".list a", "#/scheduler": ".command",
         "#/compare": ".choice option", "#/health": ".stat"}
STOPS = "return [...document.querySelectorAll('a[href], button, input, select, summary')].filter((e) => e.checkVisibility() && !e.disabled)"


class Loss(WebCase):
    """The tests run in the order of their names: the last one stops the gateway."""

    dropped = 1234

    def test_1_drops_are_shown(self):
        self.open()
        self.wait(".pill.warn", "1234 dropped")
        self.open("#/health")
        self.wait("th", "events")

    def test_2_old_data_is_called_old(self):
        self.open()
        self.wait(".pill", "Live")
        self.zerneld.silent = True
        self.wait(".pill.warn", "s old")
        self.zerneld.silent = False
        self.wait(".pill", "Live")

    def test_3_a_lost_connection_is_shown(self):
        self.open()
        self.wait(".pill", "Live")
        self.allowed += ["WebSocket connection", "ERR_CONNECTION_REFUSED", "net::ERR"]
        self.serve.stop()
        self.wait(".pill.bad", "Connection lost")
        self.assertTrue(self.find("tr.process"), "the last data stays")


class Hostile(WebCase):
    hostile = True
    ranks = 2

    def test_names_are_text_everywhere(self):
        for page in ("#/now?threads=1", "#/job", "#/scheduler", "#/compare", "#/health"):
            self.open(page)
            self.wait("h1")
            self.wait(lambda: "Waiting" not in self.text())
            self.assertEqual(self.driver.execute_script("return document.querySelectorAll('img, main script, iframe').length"), 0)
        self.open()
        self.click(HOSTILE[:28], ".answer a", whole=False)
        self.wait("h1", HOSTILE[:28])
        self.wait(".bar-row", "rank 1")
        self.wait(".lanes canvas")
        self.open_tables()
        self.wait(".behind td", HOSTILE[:10])
        self.assertEqual(self.driver.execute_script("return document.querySelectorAll('img').length"), 0)
        self.assertNotIn("<img", self.find(".command code")[0].text, "a name in a command to copy is one word, or a number")

    def test_address_is_text(self):
        self.open("#/job/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E?filter=%3Cb%3E")
        self.wait("h1", "<img src=x onerror=alert(1)>")
        self.open("#/job/%E0%A4%A?since=x&until=-1&window=99999&span=abc&sort=none")
        self.wait("h1")


class Access(WebCase):
    ranks = 4

    def test_axe_finds_nothing_serious(self):
        if not AXE.exists():
            self.skipTest("out/axe/axe.min.js does not exist: run tests/web/get-axe")
        for scheme in ("light", "dark"):
            self.media(scheme)
            for page in PAGES:
                self.open(page)
                self.wait(PAGES[page])
                self.wait(lambda: "Loading." not in self.text())
                self.assertEqual(self.violations(), [], f"{page} {scheme}")
        self.media("light")

    def test_tab_reaches_everything(self):
        for page in PAGES:
            self.open(page)
            self.wait(PAGES[page])
            self.driver.execute_script("window.reached = new WeakSet(); document.addEventListener('focusin', (e) => reached.add(e.target));")
            # Twice around at most. A field for a time has a stop for each of its parts.
            ActionChains(self.driver).send_keys(Keys.TAB * (2 * len(self.driver.execute_script(STOPS)) + 60)).perform()
            self.assertEqual(self.driver.execute_script(STOPS + ".filter((e) => !reached.has(e)).map((e) => e.outerHTML.slice(0, 120))"), [], page)

    def test_phone_width(self):
        self.size(390, 800)
        for page in PAGES:
            self.open(page)
            self.wait(PAGES[page])
            self.assertLessEqual(self.driver.execute_script("return document.documentElement.scrollWidth"), 390, page)
        self.size(1280, 900)


class Token(WebCase):
    secret = "secret/+token=of.the~test"
    ranks = 1

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.allowed += ["401", "WebSocket connection"]

    def test_page_asks_for_the_token(self):
        self.open()
        field = self.wait("input[name=token]")[0]
        self.assertEqual(self.find("tr.process"), [])
        field.send_keys("a wrong token of 20 bytes", Keys.ENTER)
        self.wait(".warn-text[role=alert]")
        field = self.wait("input[name=token]")[0]
        field.clear()
        field.send_keys(self.secret, Keys.ENTER)
        self.wait("tr.process")
        self.assertNotIn("secret", self.driver.current_url)
        self.assertEqual(self.driver.get_cookies(), [])

    def test_token_in_the_fragment_is_taken_and_removed(self):
        self.open("#token=" + quote(self.secret, safe=""))
        self.wait("tr.process")
        self.assertNotIn("token", self.driver.current_url)


if __name__ == "__main__":
    tap.main()
