# SPDX-License-Identifier: GPL-2.0-or-later
"""The campaign `gateway`: slow TLS clients and a large snapshot. Every scrape is answered, in bounded memory.

Each client asks for the snapshot, in turns over HTTP and as a WebSocket, and reads 4 KiB of it now and then. A client
that the gateway closes connects again. Between two rounds, a scraper reads /metrics.
"""
import argparse
import base64
import json
import os
import pathlib
import resource
import socket
import ssl
import subprocess
import tempfile
import time

from fake_zerneld import FakeZerneld
from harness import BUILD, Serve, known_snapshot, note, wait_for

RSS_MAX_KIB = 128 << 10
SECONDS = 60  # until a connection counts as broken
PIECE = 4096


class Large(FakeZerneld):
    """Its snapshot has many processes and threads, up to the limits of a snapshot. Only its times are encoded for each push."""

    def __init__(self, path, mebibytes):
        snapshot = known_snapshot()
        left = mebibytes << 20
        for name, key, most in ("processes", "pid", 4096), ("threads", "tid", 65536):
            one = snapshot[name][0]
            size = len(json.dumps({**one, key: 100000})) + 2
            nr = min(most, left // size)
            snapshot[name] = [{**one, key: number} for number in range(1, nr + 1)]
            left -= nr * size
        super().__init__(path, snapshot)
        self.text = json.dumps({**snapshot, "time_ms": "TIME", "monotonic_ns": "CLOCK"})

    def _send(self, client, what):
        if "event" not in what:
            super()._send(client, what)
            return
        text = self.text.replace('"TIME"', str(int(time.time() * 1000)), 1).replace('"CLOCK"', str(time.monotonic_ns()), 1)
        try:
            client.sendall(f'{{"event":"snapshot","data":{text}}}\n'.encode())
        except OSError:
            client.close()
            self.clients.pop(client, None)


def connect(context, port, *options):
    plain = socket.socket()
    for option in options:
        plain.setsockopt(*option)
    plain.settimeout(SECONDS)
    plain.connect(("127.0.0.1", port))
    return context.wrap_socket(plain, server_hostname="localhost")


def slow_client(context, port, number):
    client = connect(context, port, (socket.SOL_SOCKET, socket.SO_RCVBUF, PIECE))
    if number % 2:
        client.sendall(b"GET /api/v1/snapshot HTTP/1.1\r\nHost: localhost\r\n\r\n")
    else:
        key = base64.b64encode(os.urandom(16)).decode()
        client.sendall((f"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
    client.setblocking(False)
    return client


def is_open(client):
    try:
        return bool(client.recv(PIECE))
    except (ssl.SSLWantReadError, BlockingIOError):
        return True
    except OSError:
        return False


def scrape(context, port):
    with connect(context, port) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        answer = b""
        while part := client.recv(65536):
            answer += part
    if not answer.startswith(b"HTTP/1.1 200"):
        note(f"a scrape got {answer[:100]}")
        return False
    return True


def run(serve, context, args):
    begin, closed, refused, scrapes, answered, minutes = time.monotonic(), 0, 0, 0, 0, 0
    clients = [None] * args.clients
    while time.monotonic() < begin + 60 * args.minutes:
        for i in range(args.clients):
            try:
                if clients[i] and not is_open(clients[i]):
                    closed += 1
                    clients[i].close()
                    clients[i] = None
                clients[i] = clients[i] or slow_client(context, serve.port, i)
            except OSError:
                refused += 1
            if i % 64 == 0:
                scrapes += 1
                answered += scrape(context, serve.port)
        if time.monotonic() >= begin + 60 * (minutes + 1):
            minutes = int((time.monotonic() - begin) / 60)
            note(f"after {minutes} min: {sum(map(bool, clients))} connected, RSS {serve.rss_kib() >> 10} MiB, {serve.peak_rss_kib() >> 10} MiB at most")
    most = serve.peak_rss_kib()
    note(f"{args.clients} clients, {sum(map(bool, clients))} connected at the end, {args.mebibytes} MiB snapshots, {args.minutes} min: "
         f"{closed} connections closed and opened again, {refused} refused, {answered} of {scrapes} scrapes answered, RSS {most >> 10} MiB at most")
    return most, scrapes, answered


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=2000)
    parser.add_argument("--mebibytes", type=int, default=13)
    parser.add_argument("--minutes", type=float, default=30)
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        subprocess.run([BUILD / "tests/serve/make_certs", folder], check=True)
        os.chown(folder / "server.key", 65534, 65534)
        zerneld = Large(str(folder / "zernel.sock"), args.mebibytes).start()
        serve = Serve(str(folder / "zernel.sock"), "--tls-cert", str(folder / "server.pem"), "--tls-key", str(folder / "server.key"))
        try:
            wait_for(lambda: serve.said("zerneld answers"), 60)
            context = ssl.create_default_context(cafile=folder / "ca.pem")
            most, scrapes, answered = run(serve, context, args)
        finally:
            serve.stop()
            zerneld.stop()
    good = most <= RSS_MAX_KIB, answered == scrapes
    for number, (held, what) in enumerate(zip(good, (f"RSS at most {RSS_MAX_KIB >> 10} MiB", "every scrape answered")), 1):
        print("ok" if held else "not ok", number, "-", what)
    print("1..2")
    return not all(good)


if __name__ == "__main__":
    raise SystemExit(main())
