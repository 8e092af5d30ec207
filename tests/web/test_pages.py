# SPDX-License-Identifier: GPL-2.0-or-later
"""Every page and what a user does there."""
import json
import re
import subprocess
import time
import urllib.parse
import urllib.request

import tap
from dashboard import ActionChains, Keys, TREE, WebCase, note
from harness import ZERNEL

NR_SNAPSHOTS = 14
NR_KEPT = 5


def get(url):
    with urllib.request.urlopen(url, timeout=120) as response:
        return json.load(response)


class Pages(WebCase):
    def bar_values(self):
        return dict(zip((re.match(r"rank \d+", name).group() for name in self.texts(".bar-name")), self.texts(".bar-value")))

    def test_now_has_the_answer_of_each_job(self):
        self.open()
        self.wait(".sentence", "GPU of")
        self.assertEqual(len(self.find(".answer")), 2)
        shown = set(self.texts(".sentence"))
        answers = {job["answer"] for job in get(f"{self.url}/api/v1/why?seconds=5")["jobs"]}
        cut = {re.sub(r"\d+(\.\d)? (%|s)", "N", text) for text in answers}
        self.assertEqual({re.sub(r"\d+(\.\d)? (%|s)", "N", text) for text in shown}, cut)
        self.assertEqual(len(self.find(".gpu")), 8)
        self.wait(".stat", "sched_ext")

    def cli(self, *arguments):
        done = subprocess.run([ZERNEL, "why", "--json", "--socket", self.path, *arguments], check=True, capture_output=True)
        return json.loads(done.stdout)

    def idle_shares(self, answer):
        return {f"rank {each['rank']}": f"{100 * each['idle_ns'] / (each['idle_ns'] + each['busy_ns']):.1f} %" for each in answer["processes"]}

    def test_bars_are_those_of_why(self):
        """One moment: the page is paused, so its answer stays. `zernel why` gets the two snapshots of this answer."""
        self.open("#/job/slurm-4711")
        self.wait(".bar-row", "rank 7")
        why = self.driver.execute_async_script("""
            const done = arguments[0], original = window.fetch;
            window.fetch = async (path, options) => {
                const response = await original(path, options);
                if (String(path).startsWith('/api/v1/why')) {
                    const text = await response.clone().text();
                    document.querySelector('.status button').click();
                    setTimeout(() => done(text), 300);
                    window.fetch = original;
                }
                return response;
            };""")
        why = json.loads(why)
        pushed = {each["monotonic_ns"]: each for each in self.zerneld.pushed}
        after = next(each for each in pushed.values() if each["time_ms"] == why["time_ms"])
        before = pushed[after["monotonic_ns"] - why["jobs"][0]["processes"][0]["wall_ns"]]
        self.zerneld.asked = [before, after]
        told = self.cli("--seconds", "1")
        self.assertEqual(why, told)
        job = next(each for each in told["jobs"] if each["name"] == "slurm-4711")
        self.wait(lambda: self.bar_values() == self.idle_shares(job))
        self.assertEqual(self.texts(".sentence"), [job["answer"]])
        self.assertEqual(self.texts(".advice li"), job["advice"])
        self.click("Continue")

    def test_table_sorts_filters_and_opens(self):
        self.open()
        self.wait("tr.process", "4070 python3")
        self.click("Idle", "thead button")
        self.wait(lambda: "4030 python3" in self.find("tr.process")[1].text)
        self.assertIn("sort=idle", self.hash())
        self.press("/", "4050")
        self.wait(lambda: len(self.find("tr.process")) == 1)
        self.assertIn("filter=4050", self.hash())
        self.press(Keys.ESCAPE)
        self.wait(lambda: len(self.find("tr.process")) == 9)
        self.press("t")
        self.wait("tr.thread", "nccl")
        self.press("t")
        self.wait(lambda: not self.find("tr.thread"))

    def test_typed_text_is_known_before_the_next_snapshot(self):
        """A view that is drawn with an older filter would take back the last character."""
        self.open()
        self.wait("tr.process", "4070 python3")
        self.assertTrue(self.driver.execute_script("""
            let told = false;
            addEventListener("hashchange", () => { told = true; }, { once: true });
            const filter = document.getElementById("filter");
            filter.value = "4050";
            filter.dispatchEvent(new Event("input", { bubbles: true }));
            return told;"""))

    def test_keyboard_opens_a_row(self):
        self.open()
        self.wait("tr.process", "4070 python3")
        self.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        row = self.driver.switch_to.active_element.get_attribute("data-row")
        self.press(Keys.ENTER)
        self.wait(lambda: self.driver.switch_to.active_element.get_attribute("aria-expanded") == "true")
        self.assertIn(urllib.parse.quote_plus(row), self.hash())

    def test_keys_of_top(self):
        self.open()
        self.wait("tr.process", "4070 python3")
        self.press("h")
        self.wait("dialog", "filter by name or process ID")
        self.press(Keys.ESCAPE)
        self.wait(lambda: not self.find("dialog[open]"))
        self.press("p")
        self.wait(".pill", "Paused")
        self.press("p")
        self.wait(".pill", "Live")
        for key, title in (("2", "Jobs"), ("3", "Scheduler"), ("4", "Compare"), ("5", "Health")):
            self.press(key)
            self.wait("h1", title)
        self.press("q")
        self.wait(lambda: self.hash() == "#/now")

    def test_job_page(self):
        self.open("#/now")
        self.click("slurm-4711", ".answer a", whole=False)
        self.wait("h1", "slurm-4711")
        self.wait(".bar-row.marked", "rank 3")
        self.wait(".area canvas")
        self.wait(".lanes canvas")
        self.click("All causes")
        self.wait(".legend", "loaders waited for a disk")
        self.assertIn("causes=all", self.hash())
        self.wait(".history h3", "GPU memory")
        self.wait(".panel", "cc1plus")
        self.wait(".figures", "p99")
        self.open_tables()
        self.assertGreaterEqual(len(self.find(".behind table")), 4)
        self.wait(".behind td", "launch")
        self.wait(".command", "zernel ab slurm-4711")

    def test_zoom_by_dragging_and_by_keyboard(self):
        self.open("#/job/slurm-4711?span=900")
        canvas = self.wait(".lanes canvas")[0]
        self.wait("h3", "Phases")
        ActionChains(self.driver).move_to_element_with_offset(canvas, 200, 0).click_and_hold().move_by_offset(150, 0).release().perform()
        self.wait(lambda: "since=" in self.hash() and "until=" in self.hash())
        query = dict(urllib.parse.parse_qsl(self.hash().partition("?")[2]))
        first = int(query["until"]) - int(query["since"])
        self.assertLess(first, 400)
        self.wait(".panel", "of the chosen range")
        zoom_in = self.wait("button[aria-label='Zoom in']")[0]
        zoom_in.send_keys(Keys.ENTER)
        self.wait(lambda: int(dict(urllib.parse.parse_qsl(self.hash().partition("?")[2]))["until"]) != int(query["until"]))
        self.click("Live")
        self.wait(lambda: "since=" not in self.hash())

    def test_cursor_is_shared(self):
        self.open("#/job/slurm-4711")
        self.wait(".history h3", "GPU memory")
        self.wait(".bar-row", "rank 7")
        self.press("p")  # a page that moves below the pointer moves the cursor
        self.wait(".pill", "Paused")
        canvas = self.wait(".lanes canvas")[0]
        ActionChains(self.driver).move_to_element_with_offset(canvas, canvas.size["width"] // 2 - 20, 0).perform()
        self.wait(".reading", "B ")
        self.wait(lambda: self.driver.execute_script(
            "return document.querySelector('.u-cursor-x').style.transform.includes('px') && !document.querySelector('.lanes .cursor').hidden"))
        self.press("p")

    def test_events_in_the_last_minute(self):
        self.open("#/job/slurm-4711?span=60")
        self.wait("h3", "every change")
        self.click("15 min")
        self.wait("h3", "share of each phase")

    def test_ended_job(self):
        self.open("#/job")
        self.click("slurm-4600", ".list a", whole=False)
        self.wait("h1", "slurm-4600")
        self.wait(".stat", "ended")
        self.wait(".stat", "7200")
        told = self.cli("--ended", "slurm-4600")["jobs"][0]
        self.wait(".sentence", told["answer"])
        self.wait(lambda: self.bar_values() == self.idle_shares(told))

    def test_old_snapshots_are_forgotten(self):
        """The page compares the latest snapshot with two older ones. Parts that are not drawn anew have the one that they show."""
        for page, css in (("#/now", "tr.process"), ("#/job/slurm-4711", ".lanes canvas")):
            self.open(page)
            self.wait(css)
            self.driver.execute_script("""
                const original = JSON.parse;
                window.seen = [];
                JSON.parse = (text) => {
                    const data = original(text);
                    if (data.snapshot)
                        seen.push(new WeakRef(data.snapshot));
                    return data;
                };""")
            self.wait(lambda: self.driver.execute_script("return seen.length") >= NR_SNAPSHOTS)
            self.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
            alive = self.driver.execute_script("return seen.filter((each) => each.deref()).length")
            note(f"{page}: {alive} of {NR_SNAPSHOTS} snapshots are kept")
            self.assertLessEqual(alive, NR_KEPT, page)

    def test_a_page_in_the_background_has_no_connection(self):
        """A browser keeps a page for the button Back, and sends it these events."""
        def open_sockets():
            return get(f"{self.url}/healthz")["websockets"]
        self.open()
        self.wait("tr.process")
        self.driver.execute_script("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
        self.wait(lambda: open_sockets() == 0)
        self.driver.execute_script("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
        self.wait(lambda: open_sockets() == 1)
        self.wait(".pill", "Live")

    def test_scheduler(self):
        self.open("#/scheduler")
        self.wait("th", "wanted_loader")
        self.wait(".stat.good", "attached")
        self.wait(".command", "zernel ab slurm-4711")
        self.wait(lambda: re.search(r"feeder\s+2[0-9]{2}", self.text()))

    def test_compare(self):
        def slots():
            rank = get(f"{self.url}/api/v1/history")["ranks"][0]
            return len([each for each in rank["span_ms"] if each])
        self.wait(lambda: slots() >= 14)
        end = int(time.time()) - 1
        self.open(f"#/compare?as={end - 12}&au={end - 6}&bs={end - 6}&bu={end}")
        self.wait("td", "points")
        self.wait("th", "step time, ms")
        self.wait(".bar-row", "B  slurm-4711")
        self.wait("p.verdict", "The interval of the step time")

    def test_health(self):
        self.open("#/health")
        self.wait(".stat", "single-stepped")
        self.wait(".warn-text", "zeMemFree")
        self.wait(".stat", "connections")
        self.wait(".command", "zernel doctor")
        self.click("Save a recording")
        self.wait(".notice", "Saved")

    def test_address_is_the_whole_state(self):
        self.open("#/now?filter=4020&sort=memory")
        self.wait(lambda: len(self.find("tr.process")) == 1)
        self.assertEqual(self.find("#filter")[0].get_attribute("value"), "4020")
        self.assertEqual(self.find("#sort")[0].get_attribute("value"), "memory")

    def test_any_range_in_the_address_is_drawn(self):
        """A range of a century must not be drawn second by second."""
        for query in "since=1&until=4294967296", "since=1&until=1e300", "since=5&until=5", "since=-1&until=x":
            self.open(f"#/job/slurm-4711?{query}")
            self.wait(".lanes canvas")
            self.open_tables()

    def test_titles_are_those_of_why(self):
        """The page has its own table of titles. It must be that of src/answers."""
        source = (TREE / "src/answers/why_sentence.c").read_text()
        causes = (TREE / "web/src/causes.js").read_text()
        titles = re.findall(r'\[IDLE_\w+\] = \{\s*"([^"]+)"', source)
        self.assertEqual(len(titles), 11)
        self.assertEqual([title for title in titles if f'title: "{title}"' not in causes], [])

    def test_first_paint(self):
        """Printed, not judged: it depends on the machine."""
        self.open()
        self.wait(".sentence", "GPU of")
        paints = self.driver.execute_script("return performance.getEntriesByType('paint').map((e) => [e.name, e.startTime])")
        size = self.driver.execute_script("return performance.getEntriesByType('resource').map((e) => [e.name, e.encodedBodySize])")
        note(f"paint in ms: {paints}")
        note(f"bytes: {[(name.rsplit('/', 1)[1], nr) for name, nr in size if '/assets/' in name]}")


if __name__ == "__main__":
    tap.main()
