# SPDX-License-Identifier: GPL-2.0-or-later
"""Chromium at the dashboard of `zernel serve`, which gets its data from a fake zerneld that plays a scene."""
import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

from selenium import webdriver
from selenium.webdriver import ActionChains
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from scene import Scene

sys.path.append(str(pathlib.Path(__file__).parents[1] / "serve"))
from fake_zerneld import FakeZerneld  # noqa: E402
from harness import Serve, curl, note, wait_for  # noqa: E402

TREE = pathlib.Path(__file__).parents[2]
AXE = TREE / "out/axe/axe.min.js"
AGE_S = 3600  # of the jobs when a test begins
WAIT_S = 60

# One task of the page, and one request: a table has thousands of cells, and they are drawn again every second.
WITH_TEXT = """
    const [css, text] = arguments;
    return [...document.querySelectorAll(css)].filter((e) => !text || (e.checkVisibility() && e.innerText.replaceAll('\\u00a0', ' ').includes(text)));"""

# One task of the page: nothing moves between the look for an element and the click on what is at its place.
CLICK = """
    const [css, text, whole] = arguments;
    const found = [...document.querySelectorAll(css)].find((e) => e.checkVisibility() && (whole ? e.innerText.trim() === text : e.innerText.includes(text)));
    if (!found)
        return false;
    found.scrollIntoView({block: 'center'});
    const [box] = found.getClientRects();
    if (!found.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)))
        return false;
    found.click();
    return true;"""

# Before any script of the page: keep what the policy of the page refused.
WATCH = "window.reports = []; addEventListener('securitypolicyviolation', (e) => reports.push(e.violatedDirective + ' ' + e.blockedURI));"


class SceneZerneld(FakeZerneld):
    """Pushes the scene as it is at the moment, and to a recorder the events since the last push."""

    def __init__(self, path, scene):
        super().__init__(path, {})
        self.scene = scene
        self.began = time.time() - AGE_S
        scene.start_ms = int(1000 * self.began)
        self.told = self.now()
        self.events = self.new_events
        self.ended = scene.ended(self.now())
        self.lives = {job[key]: scene.life(self.now()) for job in self.ended["jobs"] for key in ("name", "cgroup")}
        self.pushed = []  # the latest snapshots

    def now(self):
        return time.time() - self.began

    def current(self):
        if not self.stuck:
            self.snapshot = self.scene.snapshot(self.now())
            self.pushed = [*self.pushed[-30:], self.snapshot]
        return self.snapshot

    def new_events(self):
        since, self.told = max(self.told, self.now() - 5), self.now()
        return self.scene.events(since, self.told)


def browser(width=1280, height=900):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
                     "--disable-component-update", "--no-first-run", f"--window-size={width},{height}"):
        options.add_argument(argument)
    options.add_experimental_option("prefs", {"download.default_directory": tempfile.gettempdir(), "download.prompt_for_download": False})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    return driver


class WebCase(unittest.TestCase):
    """One gateway and one browser for all tests of a class."""

    kind = SceneZerneld
    setup_s = WAIT_S
    ranks = 8
    hostile = False
    dropped = 0
    secret = ""  # the token that clients must send; empty: none

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        os.chmod(cls.folder.name, 0o755)
        cls.path = str(pathlib.Path(cls.folder.name) / "zernel.sock")
        cls.scene = Scene(cls.ranks, cls.hostile, cls.dropped)
        cls.zerneld = cls.kind(cls.path, cls.scene).start()
        cls.serve = Serve(cls.path, *cls.token_options())
        cls.url = f"http://127.0.0.1:{cls.serve.port}"
        if not wait_for(cls.has_data, cls.setup_s):
            cls.serve.stop()
            cls.zerneld.stop()
            raise RuntimeError("the gateway does not answer: " + "; ".join(cls.serve.lines))
        cls.driver = browser()
        # Parts of console messages that a test expects. On an overloaded machine a snapshot comes too late, and the
        # gateway refuses to answer with old data.
        cls.allowed = ["503"]

    @classmethod
    def token_options(cls):
        if not cls.secret:
            return ()
        path = pathlib.Path(cls.folder.name) / "token"
        path.write_text(cls.secret + "\n")
        path.chmod(0o600)
        if os.getuid() == 0:
            shutil.chown(path, "nobody")
        return "--token-file", str(path)

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()
        cls.serve.stop()
        cls.zerneld.stop()
        cls.folder.cleanup()

    @classmethod
    def has_data(cls):
        """True when the gateway answers everything: a browser writes each refusal to its console."""
        return all(curl(f"{cls.url}/api/v1/{path}")[0] in (200, 401) for path in ("snapshot", "jobs", "why"))

    def open(self, fragment=""):
        """Opens a page as if it was typed into a new tab."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.url}/{fragment}")

    def find(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def wait(self, what, text="", timeout=WAIT_S):
        """Waits until a function is true, or until an element of a selector has a text."""
        check = what if callable(what) else lambda: self.driver.execute_script(WITH_TEXT, what, text)
        found = wait_for(lambda: self.attempt(check), timeout)
        self.assertTrue(found, f"waited for {what} {text}; the page: {self.text()[:600]}")
        return found

    @staticmethod
    def attempt(check):
        try:
            return check()
        except Exception:  # an element was drawn again meanwhile
            return None

    def texts(self, css):
        return self.driver.execute_script("return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText.replaceAll('\\u00a0', ' ').trim())", css)

    def text(self):
        return self.driver.execute_script("return document.body.innerText")

    def press(self, *keys):
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def click(self, text, css="button", whole=True):
        """Clicks the element with this text, or with `whole` false the first one that contains it."""
        found = wait_for(lambda: self.driver.execute_script(CLICK, css, text, whole), WAIT_S)
        self.assertTrue(found, f"waited to click {css} {text}; the page: {self.text()[:600]}")

    def open_tables(self):
        """Opens the table behind each chart."""
        for summary in self.find(".behind summary"):
            summary.send_keys(Keys.ENTER)
        self.wait(lambda: len(self.find(".behind table")) == len(self.find(".behind")))

    def hash(self):
        return self.driver.execute_script("return location.hash")

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700})

    def media(self, scheme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})

    def tearDown(self):
        """After each test: nothing was refused by the policy, no other origin was asked, the console is empty."""
        self.assertEqual(self.driver.execute_script("return window.reports ?? []"), [])
        bad = [line["message"] for line in self.driver.get_log("browser") if not any(part in line["message"] for part in self.allowed)]
        self.assertEqual(bad, [])
        for url in self.driver.execute_script("return performance.getEntriesByType('resource').map((each) => each.name)"):
            self.assertTrue(url.startswith((self.url, "data:", "blob:")), url)

    def violations(self):
        """Serious violations that axe-core finds, as short texts."""
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": AXE.read_text()})
        found = self.driver.execute_async_script("axe.run(document, {resultTypes: ['violations']}).then(arguments[0])")
        return [f"{each['id']}: {each['nodes'][0]['html'][:160]} {each['nodes'][0].get('failureSummary', '')[:200]}"
                for each in found["violations"] if each["impact"] in ("serious", "critical")]


__all__ = ["AXE", "ActionChains", "Keys", "SceneZerneld", "TREE", "WebCase", "browser", "note", "wait_for"]
