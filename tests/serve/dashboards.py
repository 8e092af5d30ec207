# SPDX-License-Identifier: GPL-2.0-or-later
"""What open dashboards and the history cost the gateway: CPU time and memory.

Each client does what the page does: it reads /ws once a second, and asks for /api/v1/why once a second and for
/api/v1/jobs and /api/v1/health every 10 s, on one connection. Run it with ./dev campaign dashboards.
"""
import argparse
import asyncio
import copy
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from fake_zerneld import FakeZerneld
from harness import Serve, curl, known_snapshot, note, wait_for
from test_ws import upgrade
from test_dashboard import advance

PONG = b"\x8a\x80" + bytes(4)  # a client that answers no ping is closed
PONG_S = 10


class Node(FakeZerneld):
    """A job of many ranks that work 1 s in each second."""

    def __init__(self, path, nr_ranks):
        snapshot = known_snapshot()
        snapshot["host"] = "node-1"
        one = snapshot["processes"][0]
        one["hists"] = dict(one["hists"])
        snapshot["processes"] = [{**copy.deepcopy(one), "pid": 1000 + rank, "rank": rank, "nr_ranks": nr_ranks,
                                  "start_ns": 1000 + rank} for rank in range(nr_ranks)]
        super().__init__(path, snapshot)

    def current(self):
        advance(self.snapshot, 1000)
        return super().current()


async def read_ws(port, counters):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    writer.write(upgrade("/ws"))
    await reader.readuntil(b"\r\n\r\n")
    told = time.monotonic()
    while part := await reader.read(1 << 16):
        counters["ws"] += len(part)
        if time.monotonic() - told > PONG_S:
            writer.write(PONG)
            told = time.monotonic()


async def ask(port, counters):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)

    async def get(path):
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
        await reader.readexactly(length)
        counters[head.split()[1]] = counters.get(head.split()[1], 0) + 1

    await get("/")
    await get("/api/v1/history")
    for second in range(1 << 30):
        await get("/api/v1/why?seconds=5")
        if second % 10 == 0:
            await get("/api/v1/jobs")
            await get("/api/v1/health")
        await asyncio.sleep(1)


async def run_clients(port, count, seconds, counters):
    tasks = []
    for _ in range(count):
        tasks += [asyncio.create_task(read_ws(port, counters)), asyncio.create_task(ask(port, counters))]
        await asyncio.sleep(5 / count)
    await asyncio.sleep(seconds)
    failed = [each for each in tasks if each.done()]
    for each in tasks:
        each.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return len(failed)


def measure(serve, zerneld, what, seconds, clients=0):
    """The clients are a process of their own, so that this one can be the fake zerneld."""
    child = None
    if clients:
        child = subprocess.Popen([sys.executable, __file__, "--port", str(serve.port), "--clients", str(clients),
                                  "--seconds", str(seconds + 10)], stdout=subprocess.PIPE, text=True)
        time.sleep(7)
    cpu, start, pushes = serve.cpu_seconds(), time.monotonic(), zerneld.pushes
    time.sleep(seconds)
    share = (serve.cpu_seconds() - cpu) / (time.monotonic() - start)
    note(f"{what}: {share:.2%} of a CPU, RSS {serve.rss_kib() / 1024:.1f} MiB, {zerneld.pushes - pushes} snapshots in {seconds} s")
    if child:
        note(f"{what}: {child.communicate()[0].strip()}")
        note(f"{what}: {curl(f'http://127.0.0.1:{serve.port}/healthz')[2].decode().strip()}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--port", type=int)
    args = parser.parse_args()
    if args.port:
        counters = {"ws": 0}
        failed = asyncio.run(run_clients(args.port, args.clients, args.seconds, counters))
        print(f"{counters.pop('ws') / args.seconds / args.clients / 1024:.0f} KiB/s for each WebSocket, "
              f"responses {counters}, {failed} connections ended")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = pathlib.Path(folder) / "zernel.sock"
        zerneld = Node(str(path), args.ranks).start()
        for history in ("no", "yes"):
            config = pathlib.Path(folder) / "zernel.conf"
            config.write_text(f"[serve]\nhistory={history}\ntoken_file=\n")
            serve = Serve(str(path), "--config", str(config))
            wait_for(lambda: serve.said("zerneld answers"))
            measure(serve, zerneld, f"{args.ranks} ranks, history={history}, no client", args.seconds)
            if history == "yes":
                measure(serve, zerneld, f"{args.ranks} ranks, {args.clients} dashboards", args.seconds, args.clients)
                measure(serve, zerneld, "after they are closed", 10)
            serve.stop()
        zerneld.stop()


if __name__ == "__main__":
    main()
