# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests invalid configurations at startup, and their error messages."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

import tap
from harness import PATIENCE_S, ZERNEL, Serve, curl

GROUP = 4242


def run(*options, timeout=PATIENCE_S, token=("--token-file", "")):
    return subprocess.run([ZERNEL, "serve", "--port", "0", *token, *options], capture_output=True, text=True,
                          check=False, timeout=timeout)


def setUpModule():
    """Gives the tests a /run of their own: another run on this machine makes /run/zernel-serve as well."""
    if os.getuid() == 0:
        os.unshare(os.CLONE_NEWNS)
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)


class Refused(unittest.TestCase):
    def assert_refused(self, pattern, *options):
        done = run(*options)
        self.assertNotEqual(done.returncode, 0, options)
        self.assertRegex(done.stderr, pattern)
        self.assertEqual(done.stdout, "")

    def test_exposed_without_tls(self):
        for address in ("0.0.0.0", "::", "192.0.2.1"):
            self.assert_refused("needs TLS: set tls_cert", "--listen", address)
            self.assert_refused("needs TLS: set tls_cert", "--listen", address, "--token-file", "/dev/null")

    def test_exposed_without_authentication(self):
        self.assert_refused("set token_file or tls_client_ca", "--listen", "0.0.0.0",
                            "--tls-cert", "c", "--tls-key", "k")

    def test_host_names_are_refused(self):
        self.assert_refused("names are not looked up", "--listen", "localhost")

    def test_invalid_options_print_a_hint(self):
        for options in (("--port", "65536"), ("--port", "x"), ("--bogus",), ("operand",), ("--log-level", "loud")):
            self.assert_refused("Try 'zernel serve --help'", *options)

    def test_root_privileges_are_not_kept(self):
        if os.getuid() != 0:
            self.skipTest("this test needs root")
        self.assert_refused("cannot run as root", "--user", "root")
        self.assert_refused("the user does not exist; create it, or choose another user with --user", "--user", "nobody-at-all")

    def test_a_token_file_that_other_users_can_read(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            path = pathlib.Path(folder) / "token"
            path.write_text("0123456789abcdef\n")
            path.chmod(0o644)
            self.assert_refused("users outside of its group can access the file", "--user", "nobody", "--token-file", path)
            self.assert_refused("No such file", "--user", "nobody", "--token-file", f"{path}2")
            path.write_text("short\n")
            path.chmod(0o400)
            os.chown(path, 65534, 65534)
            self.assert_refused("16 to 255 printable characters", "--user", "nobody", "--token-file", path)

    def test_invalid_certificates(self):
        with tempfile.NamedTemporaryFile() as file:
            os.chmod(file.name, 0o644)
            self.assert_refused("must be in PEM format", "--user", "nobody", "--tls-cert", file.name, "--tls-key", file.name)
            self.assert_refused("No such file", "--user", "nobody", "--tls-cert", "/nowhere", "--tls-key", "/nowhere")

    def test_a_port_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.assert_refused("cannot listen on 127.0.0.1 port .*: Address already in use", "--port", str(port))


class Configured(unittest.TestCase):
    """Section [serve] of a file, and command line options that override it."""

    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        self.file = folder / "zernel.conf"

    def write(self, text):
        self.file.write_text(f"[socket]\npath=/nowhere/zernel.sock\n[serve]\n{text}")
        if "token_file" not in text:
            with open(self.file, "a", encoding="utf-8") as file:
                file.write("token_file=\n")

    def refused(self, pattern, *options, status=1):
        done = subprocess.run([ZERNEL, "serve", "--config", self.file, *options], capture_output=True, text=True,
                              check=False, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, status, done)
        self.assertRegex(done.stderr, pattern)

    def test_errors_have_the_file_and_the_line(self):
        self.write("port=65536\n")
        self.refused(r"zernel\.conf:4: port must be a number from 0 to 65535, not '65536'")
        self.write("token_file=token\n")
        self.refused(r"zernel\.conf:4: token_file must be empty, or an absolute path")
        self.write("listen=127.0.0.1,\n")
        self.refused(r"zernel\.conf:4: listen must be a comma-separated list of at most 8 items")
        self.write("speed=9\n")
        self.refused(r"zernel\.conf:4: unknown key speed in section \[serve\]")
        self.file.unlink()
        self.refused(r"zernel\.conf: cannot be read: No such file")

    def test_the_file_is_checked_like_the_options(self):
        self.write("listen=0.0.0.0\n")
        self.refused("needs TLS: set tls_cert", status=2)
        self.write("listen=localhost\n")
        self.refused("names are not looked up", status=2)
        self.write("user=nobody-at-all\nport=0\n")
        if os.getuid() == 0:
            self.refused("cannot change to user nobody-at-all")

    def test_options_override_the_file(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            self.write(f"listen=127.0.0.1\nport={port}\nuser=nobody\n")
            self.refused(f"cannot listen on 127.0.0.1 port {port}: Address already in use")
            serve = Serve("/nowhere/zernel.sock", "--config", self.file, "--listen", "127.0.0.2")
        self.addCleanup(serve.stop)
        self.assertTrue(serve.said(r"listening on http://127\.0\.0\.2:"))
        self.assertFalse(serve.said(r"127\.0\.0\.1"))

    def test_the_socket_of_the_file_is_used(self):
        self.write("port=0\nuser=nobody\n")
        with subprocess.Popen([ZERNEL, "serve", "--config", self.file], stderr=subprocess.PIPE, text=True) as child:
            self.addCleanup(child.kill)
            for line in child.stderr:
                if "no data from zerneld at /nowhere/zernel.sock" in line:
                    break
            else:
                self.fail("the gateway used another socket")
            child.terminate()


class Started(unittest.TestCase):
    def test_help(self):
        done = run("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for option in ("--listen", "--port", "--socket", "--tls-cert", "--token-file", "--allow-origin", "--user",
                       "--config"):
            self.assertIn(option, done.stdout)

    def test_its_log_has_times_and_levels(self):
        serve = Serve("/nowhere/zernel.sock", "--json")
        self.assertEqual(serve.stop(), 0)
        for line in serve.lines:
            self.assertRegex(line, r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ zernel-serve (error|warning|info): .")
        quiet = subprocess.Popen([ZERNEL, "serve", "--port", "0", "--user", "nobody", "--token-file", "", "--log-level", "error"],
                                 stderr=subprocess.PIPE, text=True)
        with self.assertRaises(subprocess.TimeoutExpired):
            quiet.wait(1)
        quiet.terminate()
        self.assertEqual(quiet.communicate(timeout=PATIENCE_S)[1], "")

    def test_without_a_token_it_does_not_start_unless_it_is_told_to(self):
        self.assertFalse(pathlib.Path("/run/zernel-serve").exists(), "a gateway of this machine has its token there")
        done = run(*(("--user", "nobody") if os.getuid() == 0 else ()), token=())
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot make a token in /run/zernel-serve/token: No such file", done.stderr)
        serve = Serve("/nowhere/zernel.sock", "--token-file", "")
        self.assertTrue(serve.says("serving without a token: every user of this machine can read"))
        self.assertEqual(serve.stop(), 0)

    @unittest.skipUnless(os.getuid() == 0, "making /run/zernel-serve needs root")
    def test_the_token_that_it_makes_is_for_the_group_of_the_folder(self):
        folder = pathlib.Path("/run/zernel-serve")
        folder.mkdir()
        self.addCleanup(shutil.rmtree, folder)
        os.chown(folder, 65534, GROUP)
        folder.chmod(0o2750)
        seen = []
        for _ in range(2):
            serve = Serve("/nowhere/zernel.sock", makes_token=True)
            self.addCleanup(serve.stop)
            self.assertIsNotNone(serve.port, serve.lines)
            # It listens before it makes the token, and answers after that.
            self.assertEqual(curl(f"http://127.0.0.1:{serve.port}/healthz")[0], 401)
            token = (folder / "token").read_text().strip()
            stat = (folder / "token").stat()
            self.assertEqual((stat.st_uid, stat.st_gid, stat.st_mode & 0o777), (65534, GROUP, 0o640))
            self.assertRegex(token, "^[0-9a-f]{64}$")
            self.assertEqual(curl("-H", f"Authorization: Bearer {token}", f"http://127.0.0.1:{serve.port}/healthz")[0], 200)
            seen.append(token)
            self.assertEqual(serve.stop(), 0)
        self.assertEqual(*seen, "a restart keeps the token")

    def test_signals_stop_it_cleanly(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            serve = Serve("/nowhere/zernel.sock")
            serve.process.send_signal(number)
            self.assertEqual(serve.process.wait(PATIENCE_S), 0)
            self.assertEqual(serve.stop(), 0)
            self.assertTrue(serve.said("stopping"))

    def test_the_service_manager_is_notified(self):
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            path = f"{folder}/notify"
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.bind(path)
                os.chmod(path, 0o666)
                manager.settimeout(PATIENCE_S)
                os.environ["NOTIFY_SOCKET"] = path
                try:
                    serve = Serve("/nowhere/zernel.sock")
                finally:
                    del os.environ["NOTIFY_SOCKET"]
                self.assertIn(b"READY=1", manager.recv(4096))
                self.assertEqual(serve.stop(), 0)
                self.assertIn(b"STOPPING=1", manager.recv(4096))


if __name__ == "__main__":
    tap.main()
