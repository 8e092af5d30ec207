# SPDX-License-Identifier: GPL-2.0-or-later
"""The panel of a job with its idle time by source line: zerneld samples only while it shows a process."""
import tap
from dashboard import ActionChains, AXE, Keys, WebCase
from stacks import stacks

PID = 4030  # rank 3
PAGE = "#/job/slurm-4711"
STOPS = ("return [...document.querySelectorAll('.lines a[href], .lines button, .lines select, .lines summary, .lines [tabindex]')]"
         ".filter((e) => e.checkVisibility())")


class Lines(WebCase):
    secret = "a-token-of-the-test"
    ranks = 4

    def setUp(self):
        self.zerneld.lines, self.zerneld.lines_error, self.zerneld.lines_s = stacks(PID), None, 1
        self.open(f"#token={self.secret}")
        self.wait("tr.process")
        self.ends()  # a request of an earlier test
        self.zerneld.lines_asked.clear()

    def show(self, scheme="light"):
        self.media(scheme)
        self.open(f"{PAGE}?lines={PID}")
        self.wait(".lines-answer", "22 points in collate() train.py:142")

    def ends(self):
        self.wait(lambda: not self.zerneld.sampled and len(self.zerneld.clients) == 1)

    def choose(self, value):
        self.driver.execute_script("""
            const select = document.querySelector('.lines select');
            select.value = arguments[0];
            select.dispatchEvent(new Event('change', {bubbles: true}));""", value)

    def test_nothing_is_sampled_until_a_process_is_chosen(self):
        self.open(PAGE)
        self.wait(".lines", "Choose a process")
        self.wait(lambda: "rank 3" in self.texts(".lines option"))
        self.wait(".history h3", "GPU memory")
        self.assertEqual(self.zerneld.lines_asked, [])
        self.choose(str(PID))
        self.wait(".lines-answer", "22 points in collate() train.py:142")
        self.assertIn(f"lines={PID}", self.hash())
        self.assertEqual(self.zerneld.lines_asked[0]["pid"], PID)
        self.choose("")
        self.wait(".lines", "Choose a process")
        self.ends()

    def test_leaving_the_page_ends_the_sampling(self):
        self.show()
        self.assertTrue(self.zerneld.sampled or self.zerneld.lines_asked)
        self.press("1")
        self.wait("tr.process")
        self.ends()

    def test_a_paused_page_samples_nothing(self):
        self.show()
        self.press("p")
        self.wait(".pill", "Paused")
        self.ends()
        self.press("p")
        self.wait(".pill", "Live")

    def test_lines_and_calls_have_their_points(self):
        self.show()
        rows = dict(zip(self.texts(".places tbody th"), self.texts(".places tbody td:nth-child(3)")))
        self.assertEqual(rows["collate() train.py:142"], "22.0")
        self.assertEqual(rows["_get_data() dataloader.py:1284"], "6.0")
        boxes = self.driver.execute_script("return [...document.querySelectorAll('.flame-box > span')].map((e) => [e.title, e.getBoundingClientRect().width])")
        widths = dict(boxes)
        ratio = widths["collate() train.py:142: 22.0 points"] / widths["_get_data() dataloader.py:1284: 6.0 points"]
        self.assertAlmostEqual(ratio, 22 / 6, delta=0.3)
        self.find(".lines .behind summary")[0].send_keys(Keys.ENTER)
        self.wait(".lines .behind th", "launcher computed")

    def test_names_are_text(self):
        self.show()
        self.wait(".places th", "<img src=x")
        self.assertEqual(self.driver.execute_script("return document.querySelectorAll('img').length"), 0)

    def test_refusals_are_shown(self):
        self.allowed.append("404")
        self.zerneld.lines_error = {"code": "not-found", "message": "process 4030 has ended"}
        self.open(f"{PAGE}?lines={PID}")
        self.wait(".lines .empty", "process 4030 has ended")

    def test_keyboard_and_screen_readers(self):
        for scheme in ("light", "dark"):
            self.show(scheme)
            if AXE.exists():
                self.assertEqual(self.violations(), [], scheme)
        self.media("light")
        self.driver.execute_script("window.reached = new WeakSet(); document.addEventListener('focusin', (e) => reached.add(e.target));")
        ActionChains(self.driver).send_keys(Keys.TAB * 120).perform()
        self.assertEqual(self.driver.execute_script(STOPS + ".filter((e) => !reached.has(e)).map((e) => e.outerHTML.slice(0, 120))"), [])

    def test_phone_width(self):
        self.size(390, 800)
        self.show()
        self.assertLessEqual(self.driver.execute_script("return document.documentElement.scrollWidth"), 390)
        self.size(1280, 900)


class Open(WebCase):
    ranks = 1

    def test_without_a_token_stacks_are_not_shown(self):
        self.allowed.append("403")
        self.zerneld.lines = stacks(4000)
        self.open(f"{PAGE}?lines=4000")
        self.wait(".lines .empty", "only to clients with a token")
        self.assertEqual(self.zerneld.lines_asked, [])


if __name__ == "__main__":
    tap.main()
