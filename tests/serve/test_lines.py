# SPDX-License-Identifier: GPL-2.0-or-later
"""/api/v1/lines: zerneld samples stacks only while a client asks, and only clients with a token may ask."""
import json
import os
import pathlib
import shutil
import subprocess

import tap
from harness import ServeCase, ZERNEL, curl, wait_for
from stacks import stacks

TOKEN = "a-token-of-the-test"
PID = 1000  # of the known snapshot
WAIT_S = 60
WINDOW_S = 1


class Lines(ServeCase):
    @classmethod
    def prepare(cls):
        file = pathlib.Path(cls.folder.name) / "token"
        file.write_text(TOKEN)
        file.chmod(0o600)
        if os.getuid() == 0:
            shutil.chown(file, "nobody")
        cls.options = ("--token-file", str(file))
        cls.zerneld.snapshot["processes"] = [each for each in cls.zerneld.snapshot["processes"] if each["pid"] == PID]

    def setUp(self):
        """A watch of an earlier test must be over."""
        self.zerneld.lines, self.zerneld.lines_error, self.zerneld.lines_s = stacks(PID), None, WINDOW_S
        self.ends()
        self.zerneld.lines_asked.clear()

    def ends(self):
        self.assertTrue(wait_for(lambda: not self.zerneld.sampled and len(self.zerneld.clients) == 1, WAIT_S),
                        "a request for stacks outlives its client")

    def get(self, query, token=TOKEN):
        return curl("-H", f"Authorization: Bearer {token}", f"{self.url}/api/v1/lines{query}")

    def answer(self, query):
        """The answer that ends the wait. A second request could come after the gateway has forgotten it."""
        def got():
            answer = self.get(query)
            return answer if answer[0] != 202 else None
        answer = wait_for(got, WAIT_S)
        self.assertTrue(answer)
        return answer

    def is_asked_again(self):
        """A moment after zerneld refused a request."""
        self.assertTrue(wait_for(lambda: self.get(f"?pid={PID}")[0] == 200, WAIT_S))

    def test_the_first_answer_takes_a_window(self):
        self.assertEqual(self.get(f"?pid={PID}&seconds=7")[:2], (202, "application/json"))
        status, kind, body = self.answer(f"?pid={PID}&seconds=7")
        self.assertEqual((status, kind), (200, "application/json"))
        self.assertEqual(self.zerneld.lines_asked[0], {"pid": PID, "seconds": 7})
        told = subprocess.run([ZERNEL, "why", "--lines", "--json", "--socket", self.path], check=True, capture_output=True)
        ours, theirs = json.loads(body), json.loads(told.stdout)
        self.assertEqual(ours["places"], theirs["places"])
        self.assertEqual(ours["answer"], theirs["answer"])
        self.assertIn("22 points in collate() train.py:142", ours["answer"])
        train = ours["tree"][0]["children"][0]["children"][0]
        self.assertEqual([each["function"] for each in train["children"]][:2], ["collate", "log_metrics"])

    def test_small_parts_are_left_out(self):
        self.zerneld.lines["stacks"][-1]["frames"] = [0]  # 0.4 points
        train = json.loads(self.answer(f"?pid={PID}")[2])["tree"][0]["children"][0]
        self.assertAlmostEqual(train["points"], 25.0)
        self.assertEqual(len(train["children"]), 1)
        self.zerneld.lines["stacks"][3]["ns"] //= 2  # 0.3 points
        self.assertTrue(wait_for(lambda: "onerror" not in json.dumps(json.loads(self.get(f"?pid={PID}")[2])["tree"]), WAIT_S))

    def test_windows_follow_each_other_while_a_client_asks(self):
        self.assertTrue(wait_for(lambda: self.get(f"?pid={PID}&seconds=3")[0] and len(self.zerneld.lines_asked) >= 3, WAIT_S))
        self.assertEqual(len(self.zerneld.sampled), 1)
        self.ends()
        nr = len(self.zerneld.lines_asked)
        self.assertFalse(wait_for(lambda: len(self.zerneld.lines_asked) > nr, 2), "nobody asks any more")

    def test_clients_share_a_window(self):
        self.zerneld.lines_s = WAIT_S
        for _ in range(5):
            self.assertEqual(self.get(f"?pid={PID}")[0], 202)
        self.assertEqual(len(self.zerneld.lines_asked), 1)

    def test_nothing_is_sampled_for_other_requests(self):
        for path in "snapshot", "why", "jobs", "health":
            curl("-H", f"Authorization: Bearer {TOKEN}", f"{self.url}/api/v1/{path}")
        self.assertEqual(self.zerneld.lines_asked, [])
        self.answer(f"?pid={PID}")
        for path in "/metrics", "/api/v1/snapshot", "/api/v1/recording":
            body = curl("-H", f"Authorization: Bearer {TOKEN}", f"{self.url}{path}")[2]
            self.assertNotIn(b"collate", body, path)

    def test_a_token_is_needed(self):
        self.assertEqual(self.get(f"?pid={PID}", "another-token-of-16")[0], 401)
        self.assertEqual(self.zerneld.lines_asked, [])

    def test_invalid_parameters(self):
        for query in "", "?pid=0", "?pid=x", "?pid=-1", "?pid=99999999", f"?pid={PID}&seconds=0", f"?pid={PID}&seconds=61":
            self.assertEqual(self.get(query)[0], 400, query)
        self.assertEqual(self.zerneld.lines_asked, [])

    def test_refusals_of_zerneld_are_passed_on(self):
        for code, text, status in (("not-found", "process 1000 has ended", 404), ("failed", "another client samples it", 503),
                                   ("unknown-method", "update zerneld", 503)):
            self.zerneld.lines_error = {"code": code, "message": text}
            got, _, body = self.answer(f"?pid={PID}")
            self.assertEqual(got, status, code)
            self.assertIn(text, body.decode())
            self.ends()
            self.zerneld.lines_error = None
            self.is_asked_again()
            self.ends()

    def test_invalid_stacks_are_refused(self):
        self.zerneld.lines["stacks"][0]["frames"] = [99]
        status, _, body = self.answer(f"?pid={PID}")
        self.assertEqual(status, 503)
        self.assertIn("invalid stacks", body.decode())
        self.zerneld.lines = stacks(PID)
        self.is_asked_again()

    def test_the_number_of_processes_is_bounded(self):
        self.zerneld.lines_s = WAIT_S
        for nr in range(1, 5):  # the earlier ones again, so that none of them ends meanwhile
            for pid in range(1, nr + 1):
                self.assertEqual(self.get(f"?pid={pid}")[0], 202)
        status, _, body = self.get("?pid=5")
        self.assertEqual(status, 503)
        self.assertIn("too many processes", body.decode())
        self.assertEqual(len(self.zerneld.lines_asked), 4)

    def test_zerneld_goes_away(self):
        self.zerneld.lines_s = WAIT_S
        self.assertEqual(self.get(f"?pid={PID}")[0], 202)
        self.zerneld.stop()
        self.zerneld.sampled.clear()
        self.assertTrue(wait_for(lambda: self.get(f"?pid={PID}")[0] == 503, WAIT_S))
        self.zerneld.lines_s = WINDOW_S
        self.zerneld.start()
        self.assertTrue(wait_for(lambda: self.get(f"?pid={PID}")[0] == 200, WAIT_S))


class Open(ServeCase):
    """Without a token, every user of the machine is a client."""

    def test_stacks_are_forbidden(self):
        self.zerneld.lines = stacks(PID)
        status, _, body = curl(f"{self.url}/api/v1/lines?pid={PID}")
        self.assertEqual(status, 403)
        self.assertIn("token", body.decode())
        self.assertEqual(self.zerneld.lines_asked, [])


if __name__ == "__main__":
    tap.main()
