# SPDX-License-Identifier: GPL-2.0-or-later
"""The page with 64 ranks at 1 Hz for minutes: script time in a frame, and the heap.

Usage: campaign.py [MINUTES [PAGE]]. The times are those of Chromium's own trace: the CPU time of all scripts of the page
between two frames. CPU time does not depend on other work of the machine as much as the duration does.
"""
import json
import sys
import time

from dashboard import WebCase, note

SCRIPT = {"FunctionCall", "EvaluateScript", "v8.run", "FireAnimationFrame", "TimerFire", "XHRReadyStateChange", "RunMicrotasks", "EventDispatch"}
FRAME_MS = 1000 / 60


class Load(WebCase):
    ranks = 64
    trace = True


def heap(driver):
    driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    return driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"]


def script_spans(driver):
    """Start and CPU time in ms of the outermost script tasks of the page."""
    spans, end = [], 0
    for line in driver.get_log("performance"):
        message = json.loads(line["message"])["message"]
        if message["method"] != "Tracing.dataCollected":
            continue
        event = message["params"]
        if event.get("ph") == "X" and event["name"] in SCRIPT:
            spans.append((event["ts"] / 1000, event["dur"] / 1000, event.get("tdur", event["dur"]) / 1000))
    outer = []
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
    return sorted(sums.values())


def main():
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10
    page = sys.argv[2] if len(sys.argv) > 2 else "#/job/slurm-4711"
    Load.setUpClass()
    try:
        case = Load()
        case.open(page)
        case.wait("tr.process, .bar-row")
        time.sleep(20)
        script_spans(case.driver)  # those of the start do not count
        first, begun, heaps, spans = heap(case.driver), time.monotonic(), [], []
        while time.monotonic() - begun < 60 * minutes:
            time.sleep(15)
            spans += script_spans(case.driver)
            heaps.append(heap(case.driver))
            note(f"{time.monotonic() - begun:.0f} s: heap {heaps[-1] / 2**20:.2f} MiB")
        values = frames(spans)
        quantile = lambda q: values[int(q * (len(values) - 1))]  # noqa: E731
        note(f"{len(values)} frames with scripts: p50 {quantile(0.5):.1f} ms, p99 {quantile(0.99):.1f} ms, max {values[-1]:.1f} ms")
        note(f"heap: {first / 2**20:.2f} MiB after 20 s, {heaps[-1] / 2**20:.2f} MiB at the end ({100 * (heaps[-1] / first - 1):+.1f} %)")
        note(f"gateway: {case.serve.cpu_seconds():.1f} s CPU, {case.serve.rss_kib() / 1024:.1f} MiB")
    finally:
        Load.tearDownClass()


if __name__ == "__main__":
    main()
