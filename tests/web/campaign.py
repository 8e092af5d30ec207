# SPDX-License-Identifier: GPL-2.0-or-later
"""The page with 64 ranks at 1 Hz for minutes: script time in a frame, and the heap.

Usage: campaign.py [MINUTES [PAGE]]. The times are those of Chromium's own trace: the CPU time of all scripts of the page
between two frames. CPU time does not depend on other work of the machine as much as the duration does.
"""
import json
import socket
import statistics
import sys
import time
import urllib.request

import websocket
from dashboard import SceneZerneld, WebCase, note

SCRIPT = {"FunctionCall", "EvaluateScript", "v8.run", "FireAnimationFrame", "TimerFire", "RunMicrotasks", "EventDispatch"}
FRAME_MS = 1000 / 60
FRAME_MAX_MS = 16
HEAP_MAX = 0.10
HEAP_PARTS = 5
HEAP_TRIES = 6
PART_S = 30
SO_SNDBUFFORCE = 32
PAST_S = 900


class PastZerneld(SceneZerneld):
    """Begins with the snapshots of the last 15 minutes, as fast as they are read: the page then has a full history."""

    def __init__(self, path, scene):
        self.late_s = PAST_S
        super().__init__(path, scene)

    def now(self):
        return super().now() - self.late_s

    def _push(self, client):
        state = self.clients[client]
        if self.late_s and state[1] is not None:
            client.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 16 << 20)  # both sides work meanwhile
            self.late_s = max(0, self.late_s - 1)
            state[2] = 0
        super()._push(client)


class Load(WebCase):
    ranks = 64
    kind = PastZerneld
    setup_s = 600

    @classmethod
    def has_data(cls):
        return not cls.zerneld.late_s and super().has_data()


class Tracing:
    """Chromium's trace, by a connection to the browser itself: the log of the driver keeps every event as text."""

    def __init__(self, driver):
        address = driver.capabilities["goog:chromeOptions"]["debuggerAddress"]
        with urllib.request.urlopen(f"http://{address}/json/version") as response:
            url = json.load(response)["webSocketDebuggerUrl"]
        self.socket = websocket.create_connection(url, timeout=120, suppress_origin=True)

    def start(self):
        self.socket.send(json.dumps({"id": 1, "method": "Tracing.start", "params": {
            "traceConfig": {"includedCategories": ["devtools.timeline", "v8"], "excludedCategories": ["*"]}}}))

    def end(self):
        """The events since start()."""
        events = []
        self.socket.send(json.dumps({"id": 2, "method": "Tracing.end"}))
        while True:
            message = json.loads(self.socket.recv())
            if "error" in message:
                raise RuntimeError(message["error"])
            if message.get("method") == "Tracing.dataCollected":
                events += message["params"]["value"]
            if message.get("method") == "Tracing.tracingComplete":
                return events


def heap(driver):
    """The bytes that stay: the least of some values, because messages arrive while the heap is measured."""
    values = []
    for _ in range(HEAP_TRIES):
        driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        values.append(driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"])
    return min(values)


def script_spans(events):
    """Start and CPU time in ms of the outermost script tasks of the page."""
    mains = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"}
    spans, outer, end = [], [], 0
    for event in events:
        if event["ph"] == "X" and event["name"] in SCRIPT and (event["pid"], event["tid"]) in mains:
            spans.append((event["ts"] / 1000, event["dur"] / 1000, event.get("tdur", event["dur"]) / 1000))
    for start, length, cpu in sorted(spans):
        if start >= end:
            outer.append((start, cpu))
            end = start + length
    return outer


def frames(spans):
    """The script time in each frame that had any."""
    sums = {}
    for start, length in spans:
        key = int(start / FRAME_MS)
        sums[key] = sums.get(key, 0) + length
    return list(sums.values())


def measure(case, page, minutes):
    case.open(page)
    case.wait("tr.process, .bar-row")
    time.sleep(20)  # the frames of the start do not count
    tracing, begun, heaps, values = Tracing(case.driver), time.monotonic(), [heap(case.driver)], []
    while time.monotonic() - begun < 60 * minutes:
        tracing.start()
        time.sleep(PART_S)
        values += frames(script_spans(tracing.end()))
        heaps.append(heap(case.driver))
        note(f"{time.monotonic() - begun:.0f} s: heap {heaps[-1] / 2**20:.2f} MiB, {len(values)} frames with scripts")
    values.sort()
    p50, p99 = (values[int(q * (len(values) - 1))] for q in (0.5, 0.99))
    first, last = statistics.median(heaps[:HEAP_PARTS]), statistics.median(heaps[-HEAP_PARTS:])
    grown = last / first - 1
    note(f"{len(values)} frames with scripts: p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {values[-1]:.1f} ms")
    note(f"heap: {first / 2**20:.2f} MiB, the median of the first {HEAP_PARTS} values, {last / 2**20:.2f} MiB, that of the last ones ({grown:+.1%})")
    note(f"gateway: {case.serve.cpu_seconds():.1f} s CPU, {case.serve.rss_kib() / 1024:.1f} MiB")
    return p99 < FRAME_MAX_MS, abs(grown) <= HEAP_MAX


def main():
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    page = sys.argv[2] if len(sys.argv) > 2 else "#/job/slurm-4711"
    Load.setUpClass()
    try:
        fast, flat = measure(Load(), page, minutes)
    finally:
        Load.tearDownClass()
    print("1..2")
    print(f"{'ok' if fast else 'not ok'} 1 - p99 of the script time in a frame is below {FRAME_MAX_MS} ms")
    print(f"{'ok' if flat else 'not ok'} 2 - the heap is flat within {HEAP_MAX:.0%}")
    sys.exit(not (fast and flat))


if __name__ == "__main__":
    main()
