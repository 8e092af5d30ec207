# SPDX-License-Identifier: GPL-2.0-or-later
"""The dashboard: its files, its endpoints, its token, other origins, and names with any content."""
import base64
import copy
import gzip
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import time
import unittest

import tap
from harness import BUILD, PATIENCE_S, ZERNEL, ServeCase, curl, known_snapshot, note, raw, wait_for
from test_ws import connect, upgrade

CSP = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
       "base-uri 'none'; frame-ancestors 'none'")
TOKEN = "s3cr3t/token+with=all,kinds"
DATA = ("/api/v1/snapshot", "/api/v1/why", "/api/v1/jobs", "/api/v1/history", "/api/v1/recording", "/api/v1/lines?pid=1", "/api/v1/health",
        "/metrics", "/healthz", "/readyz")
SIZES = BUILD / "src/serve/sizes.json"
HOSTILE = "</script><b>\u202e\U0001f600\"'&\u2028"


def working_snapshot():
    """A job of 8 ranks; `advance` makes them work."""
    snapshot = known_snapshot()
    snapshot["host"] = "node-1"
    snapshot["jobs"][0]["cgroup"] = "/job&1?=" + HOSTILE
    snapshot["jobs"][0]["name"] = HOSTILE
    for process in snapshot["processes"]:
        process["comm"] = HOSTILE[:10]
    advance(snapshot, 1000)
    return snapshot


def advance(snapshot, ms):
    """60 % busy; 40 % waiting for a CPU, because of cc1."""
    for process in snapshot["processes"]:
        part = ms * 100000
        for account in (process["counted"], process):
            account["busy_ns"] += 6 * part
            account["idle_ns"]["runqueue"] += 4 * part
        process["counted"]["steps"] += ms // 100
        process["steps"] += ms // 100
        process["phase_ns"]["gpu_compute"] += 10 * part
        process["culprits"] = [{"cause": "runqueue", "name": "cc1", "ns": process["idle_ns"]["runqueue"]}]


class WorkingCase(ServeCase):
    """zerneld reports a job that works, in the time that really passes."""

    @classmethod
    def prepare(cls):
        cls.zerneld.snapshot = working_snapshot()
        cls.zerneld.ended = copy.deepcopy(cls.zerneld.snapshot)
        cls.zerneld.ended["processes"] = []
        cls.zerneld.ended["jobs"][0].update(cgroup="/old", name="old", ended_ms=1700000005000)
        life = copy.deepcopy(cls.zerneld.snapshot)
        life["jobs"] = cls.zerneld.ended["jobs"][:1]
        life["processes"] = [each for each in life["processes"] if each["job"] == 1]
        cls.zerneld.lives = {"old": life, "/old": life}
        cls.pushed = []
        last = [time.monotonic()]
        plain = cls.zerneld.current

        def current():
            now = time.monotonic()
            advance(cls.zerneld.snapshot, int((now - last[0]) * 1000))
            last[0] = now
            cls.pushed.append(copy.deepcopy(plain()))
            return cls.zerneld.snapshot

        cls.zerneld.current = current

    def get(self, path, *arguments):
        status, _, body = curl(*arguments, f"{self.url}{path}")
        self.assertEqual(status, 200, (path, body[:200]))
        return json.loads(body)

    def wait_for_history(self, seconds):
        """Until serve has snapshots of this span."""
        self.assertTrue(wait_for(lambda: len(self.pushed) > seconds + 1 and
                                 curl(f"{self.url}/api/v1/why")[0] == 200, 60))


@unittest.skipUnless(SIZES.exists(), "built without the dashboard")
class Files(ServeCase):
    def fetch(self, path, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.serve.port, timeout=PATIENCE_S)
        connection.request("GET", path, headers={"Accept-Encoding": "gzip", **headers})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    def test_the_page_names_its_files_by_their_content(self):
        answer, body = self.fetch("/")
        page = gzip.decompress(body).decode()
        self.assertEqual((answer.status, answer.headers["cache-control"], answer.headers["content-encoding"]),
                         (200, "no-cache", "gzip"))
        paths = re.findall(r'(?:href|src)="(/[^"]*)"', page)
        self.assertEqual(len(paths), 2)
        for path in paths:
            self.assertRegex(path, r"^/assets/[a-z]+\.[0-9a-f]{16}\.(js|css)$")
            answer, body = self.fetch(path)
            self.assertEqual((answer.status, answer.headers["cache-control"]),
                             (200, "public, max-age=31536000, immutable"))
            self.assertGreater(len(gzip.decompress(body)), 1000)
        self.assertNotIn("<style", page)
        self.assertNotRegex(page, r"<script[^>]*>[^<]")

    def test_every_response_has_the_policy(self):
        for path in ("/", "/api/v1/snapshot", "/metrics", "/nothing"):
            answer, _ = self.fetch(path)
            self.assertEqual(answer.headers.get_all("content-security-policy"), [CSP], path)
            self.assertEqual((answer.headers["x-content-type-options"], answer.headers["referrer-policy"],
                              answer.headers["cross-origin-resource-policy"]), ("nosniff", "no-referrer", "same-origin"))
            self.assertIsNone(answer.headers["access-control-allow-origin"])
            self.assertIsNone(answer.headers["set-cookie"])

    def test_only_gzip_is_sent(self):
        for accepted, status in (("gzip", 200), ("br, gzip;q=0.5", 200), ("*", 200), ("identity", 406), ("gzip;q=0", 406),
                                 ("br, *;q=0", 406)):
            self.assertEqual(self.fetch("/", **{"Accept-Encoding": accepted})[0].status, status, accepted)

    def test_other_names_are_not_found(self):
        for path in ("/index.html", "/assets/", "/assets/main.js", "/assets/x.0123456789abcdef.js"):
            self.assertEqual(self.fetch(path)[0].status, 404, path)

    def test_the_size_is_within_its_budget(self):
        sizes = json.loads(SIZES.read_text())
        total = sum(each["compressed"] for each in sizes.values())
        note(f"{total} bytes compressed, {sum(each['plain'] for each in sizes.values())} plain: {sizes}")
        self.assertLess(total, 80 << 10, "the budget is 60 KB")


class Access(ServeCase):
    @classmethod
    def prepare(cls):
        file = pathlib.Path(cls.folder.name) / "token"
        file.write_text(TOKEN)
        os.chmod(file, 0o640)
        if os.getuid() == 0:
            subprocess.run(["chown", "nobody", str(file)], check=True)
        cls.options = ("--token-file", str(file))

    def test_all_data_needs_the_token(self):
        for path in DATA:
            self.assertEqual(curl(f"{self.url}{path}")[0], 401, path)
            self.assertEqual(curl("-H", "Authorization: Bearer wrong-token-of-16", f"{self.url}{path}")[0], 401, path)
            self.assertNotEqual(curl("-H", f"Authorization: Bearer {TOKEN}", f"{self.url}{path}")[0], 401, path)

    @unittest.skipUnless(SIZES.exists(), "built without the dashboard")
    def test_the_page_needs_no_token(self):
        page = gzip.decompress(curl(f"{self.url}/")[2]).decode()
        for path in ["/", *re.findall(r'(?:href|src)="(/[^"]*)"', page)]:
            self.assertEqual(curl(f"{self.url}{path}")[0], 200, path)

    def test_a_page_of_another_origin_gets_nothing(self):
        for path in ("/", *DATA):
            for origin in ("http://evil.example", "null", "http://127.0.0.1"):
                status, _, body = curl("-H", f"Authorization: Bearer {TOKEN}", "-H", f"Origin: {origin}", f"{self.url}{path}")
                self.assertEqual((status, body[:4]), (403, b"403:"), (path, origin))

    def websocket(self, *protocols):
        headers = ["Sec-WebSocket-Protocol: " + ", ".join(protocols)] if protocols else []
        # The gateway keeps an accepted connection open, so only the first bytes are read.
        with socket.create_connection(("127.0.0.1", self.serve.port), PATIENCE_S) as connection:
            connection.sendall(upgrade("/ws", *headers))
            return connection.recv(4096).decode("latin-1")

    def test_a_websocket_shows_the_token_as_a_subprotocol(self):
        def encode(text):
            return "bearer." + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

        answer = self.websocket("zernel", encode(TOKEN))
        self.assertIn(" 101 ", answer)
        self.assertRegex(answer.lower(), r"sec-websocket-protocol: zernel\r\n")
        self.assertNotIn("bearer", answer)
        for protocols in ((), ("zernel",), ("zernel", encode(TOKEN[:-1])), ("zernel", encode(TOKEN + "x")),
                          ("zernel", "bearer."), ("zernel", "bearer.!!!"), ("zernel", "bearer." + "A" * 400),
                          ("zernel", "bearer." + TOKEN)):
            self.assertIn(" 401 ", self.websocket(*protocols), protocols)


class Answers(WorkingCase):
    def test_why_is_that_of_the_command_line(self):
        """`zernel why` asks for two snapshots; both ends are then those of one answer."""
        self.wait_for_history(4)
        ours = self.get("/api/v1/why?seconds=3")
        self.assertEqual(len(ours["jobs"]), 1)
        after = next(each for each in self.pushed if each["time_ms"] == ours["time_ms"])
        wall = ours["jobs"][0]["processes"][0]["wall_ns"]
        before = next(each for each in self.pushed if each["monotonic_ns"] == after["monotonic_ns"] - wall)
        self.assertTrue(2.9e9 <= wall <= 5.2e9, wall)
        helper = subprocess.run([BUILD / "tests/serve/why_json"], input=json.dumps(before) + "\n" + json.dumps(after) + "\n",
                                check=True, capture_output=True, text=True)
        self.assertEqual(json.loads(helper.stdout), ours)
        process = ours["jobs"][0]["processes"][0]
        note(ours["jobs"][0]["answer"])
        self.assertAlmostEqual(process["causes"]["runqueue"] / wall, 0.4, delta=0.02)
        self.assertEqual(process["culprits"][0]["name"], "cc1")

    def test_jobs_are_those_of_the_command_line(self):
        self.assertTrue(wait_for(lambda: len(self.get("/api/v1/jobs")["jobs"]) == 2))
        ours = self.get("/api/v1/jobs")
        self.assertEqual([(job["name"], job["state"]) for job in ours["jobs"]], [(HOSTILE, "running"), ("old", "ended")])
        done = subprocess.run([ZERNEL, "jobs", "--json", "--socket", self.path], check=True, capture_output=True, text=True)
        theirs = json.loads(done.stdout)
        self.assertEqual(set(theirs), set(ours))
        self.assertEqual([set(job) for job in theirs["jobs"]], [set(job) for job in ours["jobs"]])
        self.assertEqual(theirs["jobs"][1], ours["jobs"][1])

    def test_the_answer_of_an_ended_job_is_that_of_zernel_why(self):
        """The gateway asks zerneld for the job, so the first response only says that it does."""
        def fetch(who):
            return curl("-G", "--data-urlencode", f"ended={who}", f"{self.url}/api/v1/why")

        for who in "old", "/old":
            self.assertTrue(wait_for(lambda: fetch(who)[0] == 200), (who, fetch(who)))
            told = subprocess.run([ZERNEL, "why", "--json", "--ended", who, "--socket", self.path], check=True, capture_output=True)
            self.assertEqual(json.loads(fetch(who)[2]), json.loads(told.stdout))
        self.assertTrue(wait_for(lambda: fetch("none")[0] == 404))
        self.assertEqual(fetch("x" * 300)[0], 400)

    def test_history_adds_up(self):
        self.wait_for_history(3)
        value = self.get("/api/v1/history")
        self.assertEqual((value["enabled"], value["step"], len(value["ranks"])), (True, 1, 8))
        rank = value["ranks"][0]
        self.assertEqual((rank["name"], rank["rank"], rank["present"]), (HOSTILE, 0, True))
        self.assertEqual({len(rank[key]) for key in ("span_ms", "busy_ms", "open_ms", "steps", "step_us", "memory_mib")},
                         {len(rank["idle_ms"]["runqueue"])})
        span, busy = (sum(each or 0 for each in rank[key]) for key in ("span_ms", "busy_ms"))
        self.assertAlmostEqual(busy / span, 0.6, delta=0.03)
        self.assertEqual(list(rank["idle_ms"]), ["runqueue"])

    def test_history_of_one_job(self):
        self.wait_for_history(2)
        for job, count in (("/job&1?=" + HOSTILE, 8), ("/job", 0), ("/job%", 0)):
            value = json.loads(curl("-G", "--data-urlencode", f"job={job}", f"{self.url}/api/v1/history")[2])
            self.assertEqual(len(value["ranks"]), count, job)

    def test_invalid_parameters(self):
        for query in ("why?seconds=0", "why?seconds=901", "why?seconds=", "why?seconds=-1", "why?seconds=9" + "9" * 400,
                      "history?since=x", "history?step=-1", "history?job=" + "a" * 600, "recording?seconds=1e3"):
            self.assertEqual(curl(f"{self.url}/api/v1/{query}")[0], 400, query)
        for query in ("history?since=0&until=0", "history?since=9999999999&until=5", "history?step=43200", "history?until=1"):
            wanted = 400 if "9999999999" in query else 200
            self.assertEqual(curl(f"{self.url}/api/v1/{query}")[0], wanted, query)

    def test_a_recording_can_be_replayed(self):
        self.wait_for_history(3)
        file = pathlib.Path(self.folder.name) / "download.zr"
        status, kind, body = curl(f"{self.url}/api/v1/recording?seconds=900")
        self.assertEqual((status, kind), (200, "application/vnd.zernel.recording"))
        file.write_bytes(body)
        csv = file.with_suffix(".csv")
        done = subprocess.run([ZERNEL, "export", file, "--csv", csv], check=False, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(len(csv.read_text().splitlines()), 8 * 3)
        head = subprocess.run(["curl", "-s", "-D", "-", "-o", "/dev/null", f"{self.url}/api/v1/recording"],
                              check=True, capture_output=True, text=True).stdout
        self.assertRegex(head, r'content-disposition: attachment; filename="zernel-node-1-\d{8}-\d{6}\.zr"')

    @unittest.skipUnless(SIZES.exists(), "built without the dashboard")
    def test_an_exported_page_has_the_data_and_loads_nothing(self):
        self.wait_for_history(3)
        file = pathlib.Path(self.folder.name) / "page.zr"
        file.write_bytes(curl(f"{self.url}/api/v1/recording?seconds=900")[2])
        page = file.with_suffix(".html")
        subprocess.run([ZERNEL, "export", file, "--html", page], check=True)
        text = page.read_text(encoding="utf-8")
        data = re.search(r'<script type="application/json" id="zernel-data">([^<]*)</script>', text).group(1)
        self.assertNotIn("\u2028", data)
        value = json.loads(data)
        self.assertEqual(set(value), {"version", "since_ms", "until_ms", "snapshot", "why", "jobs", "history", "events"})
        pushed = {each["time_ms"]: each for each in self.pushed}
        self.assertEqual(value["snapshot"]["jobs"][0]["name"], HOSTILE)
        helper = subprocess.run([BUILD / "tests/serve/why_json"], check=True, capture_output=True, text=True,
                                input="".join(json.dumps(pushed[value[key]]) + "\n" for key in ("since_ms", "until_ms")))
        self.assertEqual(json.loads(helper.stdout), value["why"])
        self.assertEqual(len(value["history"]["ranks"]), 8)
        self.assertNotRegex(text.replace(data, ""), r'(src|href)="(?!data:)')
        self.assertIn("default-src 'none'", text)

    def test_names_arrive_as_their_bytes(self):
        self.wait_for_history(2)
        for path in ("/api/v1/snapshot", "/api/v1/why", "/api/v1/jobs", "/api/v1/history"):
            text = curl(f"{self.url}{path}")[2].decode()
            self.assertIn(HOSTILE[:8], json.dumps(json.loads(text), ensure_ascii=False), path)
            self.assertNotRegex(text, r"[\x00-\x1f]", path)

    def test_health_has_the_bounds(self):
        value = self.get("/api/v1/health")
        self.assertEqual(value["history"]["bytes_max"], 32 << 20)
        self.assertEqual(value["lacks"], [])


@unittest.skipUnless(connect, "python3-websockets is not installed (layer metrics)")
class Events(WorkingCase):
    def open(self, query):
        return connect(f"ws://127.0.0.1:{self.serve.port}/ws{query}", max_size=None, open_timeout=PATIENCE_S)

    def test_events_are_sent_only_while_a_client_wants_them(self):
        self.zerneld.events = lambda: [[1, "phase", 1000, 1000, "gpu_compute"], [2, "step", 1000, 1000, 7]]
        with self.open("") as plain, self.open("?events=1") as client:
            first = json.loads(client.recv(timeout=PATIENCE_S))
            self.assertNotIn("events", first)
            values = [json.loads(client.recv(timeout=PATIENCE_S)) for _ in range(3)]
            self.assertNotIn("events", json.loads(plain.recv(timeout=PATIENCE_S)))
        self.assertEqual([b["sequence"] - a["sequence"] for a, b in zip(values, values[1:])], [1, 1])
        for value in values:
            self.assertEqual(value["events"], {"lost": 0, "events": self.zerneld.events()})
            self.assertEqual(value["last_update_ms"], value["snapshot"]["time_ms"])
        self.assertIn("record.start", self.zerneld.methods)
        self.assertTrue(wait_for(lambda: "record.stop" in self.zerneld.methods))
        self.assertEqual(self.zerneld.methods[-1], "subscribe")

    def test_other_values_are_refused(self):
        for query in ("?events=2", "?events=", "?events=true"):
            self.assertEqual(raw(self.serve.port, upgrade("/ws" + query)).status, 400, query)


class SwitchedOff(ServeCase):
    @classmethod
    def prepare(cls):
        file = pathlib.Path(cls.folder.name) / "zernel.conf"
        file.write_text("[serve]\nhistory=no\ntoken_file=\n")
        cls.options = ("--config", str(file))

    def test_there_is_no_history(self):
        self.assertEqual(json.loads(curl(f"{self.url}/api/v1/history")[2]), {"enabled": False, "ranks": []})
        for path in ("/api/v1/why", "/api/v1/recording"):
            status, _, body = curl(f"{self.url}{path}")
            self.assertEqual(status, 503, path)
            self.assertIn(b"history=yes", body)
        self.assertEqual(json.loads(curl(f"{self.url}/api/v1/health")[2])["history"], {"enabled": False})


class EndOfAJob(WorkingCase):
    def test_a_job_that_ends_is_asked_for_at_once(self):
        before = self.zerneld.methods.count("jobs.ended")
        self.zerneld.snapshot["jobs"], self.zerneld.snapshot["processes"] = [], []
        self.assertTrue(wait_for(lambda: self.zerneld.methods.count("jobs.ended") > before))


class Restart(WorkingCase):
    def test_a_new_zerneld_is_not_compared_with_the_old_one(self):
        self.wait_for_history(3)
        self.zerneld.stop()
        self.assertTrue(wait_for(lambda: curl(f"{self.url}/api/v1/why")[0] == 503))
        self.pushed.clear()
        for process in self.zerneld.snapshot["processes"]:  # its counters begin anew
            for account in (process["counted"], process):
                account["busy_ns"] = account["idle_ns"]["runqueue"] = account["steps"] = 0
        self.zerneld.start()
        self.wait_for_history(2)
        value = self.get("/api/v1/why?seconds=900")
        self.assertEqual((len(value["jobs"]), value["without_answer"]), (1, []))


if __name__ == "__main__":
    tap.main()
