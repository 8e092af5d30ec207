# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints the duration in ms of COUNT GET requests, sorted: latency.py PORT PATH COUNT.

A separate process, so that the work of the test does not affect the result.
"""
import http.client
import json
import sys
import time


def main():
    port, path, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    times = []
    for _ in range(count):
        start = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", path)
        answer = connection.getresponse()
        if answer.status != 200 or not answer.read():
            raise RuntimeError(f"status {answer.status}")
        connection.close()
        times.append((time.monotonic() - start) * 1000)
        time.sleep(0.005)
    print(json.dumps(sorted(times)))


if __name__ == "__main__":
    main()
