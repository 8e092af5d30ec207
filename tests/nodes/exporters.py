# SPDX-License-Identifier: GPL-2.0-or-later
"""A fleet in one process: each address of 127.1.0.0/16 is a node that answers scrapes.

`exporters.py native|text|PLAIN`: nodes with Zernel in one of its formats, or nodes with PLAIN plain series.
Prints "ready" when it is ready. Run it in a separate network namespace, because it listens on all addresses.
"""
import asyncio
import os
import pathlib
import sys
import time

RANKS, OPERATIONS = 8, 3
PORT = 9476
TEXT = "text/plain; version=0.0.4; charset=utf-8"
PROTOBUF = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
PER_FAMILY = 8


def address(node):
    return f"127.1.{node // 250}.{node % 250 + 1}"


def node_of(text):
    _, _, high, low = map(int, text.split("."))
    return high * 250 + low - 1


class Zernel:
    """Rendered for each scrape, by the same code as in the gateway."""

    def __init__(self, kind):
        self.format = {"native": "protobuf", "text": "text"}[kind]
        self.content_type = {"native": PROTOBUF, "text": TEXT}[kind]
        self.lock = asyncio.Lock()

    async def start(self):
        program = pathlib.Path(os.environ["ZERNEL_BUILD"]) / "tests/nodes/render"
        self.renderer = await asyncio.create_subprocess_exec(
            program, str(RANKS), str(OPERATIONS),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 20)

    async def body(self, node, age_s):
        async with self.lock:
            self.renderer.stdin.write(f"{self.format} {node} {age_s}\n".encode())
            length = int(await self.renderer.stdout.readline())
            return await self.renderer.stdout.readexactly(length)


class Plain:
    """Only counters, a few per family, like other exporters."""

    content_type = TEXT

    def __init__(self, nr_series):
        self.nr_series = nr_series

    async def start(self):
        pass

    async def body(self, node, age_s):
        lines = []
        for i in range(self.nr_series):
            name = f"plain_operations_{i // PER_FAMILY}_total"
            if i % PER_FAMILY == 0:
                lines += [f"# HELP {name} Operations of some kind.", f"# TYPE {name} counter"]
            lines.append(f'{name}{{device="disk{i % PER_FAMILY}",rank="{node % 32 * 8}"}} {1000 + (i + 7) * age_s}')
        return ("\n".join(lines) + "\n").encode()


class Fleet:
    def __init__(self, exporter):
        self.exporter = exporter
        self.begin = time.monotonic()

    async def serve(self, reader, writer):
        node = node_of(writer.get_extra_info("sockname")[0])
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                # The nodes did not all start at the same time.
                age_s = int(time.monotonic() - self.begin) + node % 30
                body = await self.exporter.body(node, age_s)
                writer.write((f"HTTP/1.1 200 OK\r\nContent-Type: {self.exporter.content_type}\r\n"
                              f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def main(kind):
    exporter = Plain(int(kind)) if kind.isdigit() else Zernel(kind)
    await exporter.start()
    server = await asyncio.start_server(Fleet(exporter).serve, "0.0.0.0", PORT, backlog=4096)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
