# SPDX-License-Identifier: GPL-2.0-or-later
"""TLS, the token, client certificates, and their reload."""
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import unittest

import tap
from harness import BUILD, PATIENCE_S, Serve, ServeCase, curl, note, raw, wait_for

TOKEN, OTHER = "secret-0123456789abcdef", "another-0123456789abcdef"


def own(path, mode):
    """Makes a file readable for the user of serve, like an administrator."""
    os.chmod(path, mode)
    if os.getuid() == 0:
        os.chown(path, 65534, 65534)


class TlsCase(ServeCase):
    scheme = "https"

    @classmethod
    def certify(cls):
        subprocess.run([BUILD / "tests/serve/make_certs", cls.folder.name], check=True)
        for path in pathlib.Path(cls.folder.name).glob("*.key"):
            own(path, 0o400)

    @classmethod
    def prepare(cls):
        cls.certify()
        cls.write_token(TOKEN)
        cls.options = [option.format(cls.folder.name) for option in cls.options]

    @classmethod
    def write_token(cls, text):
        path = pathlib.Path(cls.folder.name) / "token"
        path.unlink(missing_ok=True)
        path.write_text(text + "\n")
        own(path, 0o400)

    def get(self, *options, path="/metrics", ca="ca.pem"):
        return curl("--cacert", f"{self.folder.name}/{ca}", *options, f"{self.url}{path}")[0]

    def reload(self):
        before = len(self.serve.lines)
        self.serve.process.send_signal(signal.SIGHUP)
        self.assertTrue(wait_for(lambda: any("reloaded" in line for line in self.serve.lines[before:])))
        return self.serve.lines[before:]


class Token(TlsCase):
    # All addresses, so TLS and a token or client certificates are required.
    options = ("--listen", "0.0.0.0", "--tls-cert", "{}/server.pem", "--tls-key", "{}/server.key",
               "--token-file", "{}/token")

    def test_requests_need_the_token(self):
        self.assertEqual(self.get("-H", f"Authorization: Bearer {TOKEN}"), 200)
        for path in ("/metrics", "/api/v1/snapshot", "/healthz", "/readyz", "/ws", "/nothing"):
            self.assertEqual(self.get(path=path), 401, path)
            self.assertEqual(self.get("-H", f"Authorization: Bearer {OTHER}", path=path), 401, path)
        self.assertEqual(self.get("-u", f"x:{TOKEN}"), 401)
        self.assertEqual(self.get("-H", f"Authorization: Bearer {TOKEN}", "-H", "Origin: https://evil.example"), 403)

    def test_a_websocket_needs_the_token_too(self):
        upgrade = ("-H", "Upgrade: websocket", "-H", "Connection: Upgrade", "-H", "Sec-WebSocket-Version: 13",
                   "-H", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==", "-m", "2")
        self.assertEqual(self.get(*upgrade, path="/ws"), 401)
        self.assertEqual(self.get(*upgrade, "-H", f"Authorization: Bearer {TOKEN}", path="/ws"), 101)

    def test_requests_without_tls_get_no_answer(self):
        self.assertEqual(raw(self.serve.port, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").body, b"")

    def test_old_versions_of_tls_are_refused(self):
        self.assertEqual(self.get("-H", f"Authorization: Bearer {TOKEN}", "--tls-max", "1.1"), 0)
        self.assertEqual(self.get("-H", f"Authorization: Bearer {TOKEN}", "--tls-max", "1.2"), 200)

    def test_only_http_1_is_offered(self):
        context = ssl.create_default_context(cafile=f"{self.folder.name}/ca.pem")
        context.set_alpn_protocols(["h2", "http/1.1"])
        import socket
        with socket.create_connection(("127.0.0.1", self.serve.port), 10) as plain:
            with context.wrap_socket(plain, server_hostname="localhost") as connection:
                note(f"{connection.version()} {connection.cipher()[0]}, ALPN {connection.selected_alpn_protocol()}")
                self.assertEqual(connection.selected_alpn_protocol(), "http/1.1")

    def test_the_token_is_reloaded(self):
        self.write_token(OTHER)
        self.assertEqual(self.get("-H", f"Authorization: Bearer {TOKEN}"), 200)
        self.reload()
        self.assertEqual(self.get("-H", f"Authorization: Bearer {TOKEN}"), 401)
        self.assertEqual(self.get("-H", f"Authorization: Bearer {OTHER}"), 200)
        self.write_token("short")
        self.assertTrue(any("token not changed" in line for line in self.reload()))
        self.assertEqual(self.get("-H", f"Authorization: Bearer {OTHER}"), 200)
        self.write_token(TOKEN)
        self.reload()
        self.assertEqual(self.get("-H", f"Authorization: Bearer {TOKEN}"), 200)

    def test_certificates_are_reloaded(self):
        bearer = ("-H", f"Authorization: Bearer {TOKEN}")
        shutil.copy(f"{self.folder.name}/ca.pem", f"{self.folder.name}/old-ca.pem")
        self.certify()
        self.assertEqual(self.get(*bearer, ca="ca.pem"), 0)
        self.reload()
        self.assertEqual(self.get(*bearer, ca="ca.pem"), 200)
        self.assertEqual(self.get(*bearer, ca="old-ca.pem"), 0)
        key = pathlib.Path(self.folder.name) / "server.key"
        good = key.read_text()
        key.unlink()
        key.write_text("nothing")
        own(key, 0o400)
        self.assertTrue(any("certificates not changed" in line for line in self.reload()))
        self.assertEqual(self.get(*bearer, ca="ca.pem"), 200)
        key.unlink()
        key.write_text(good)
        own(key, 0o400)

    def test_nothing_secret_is_logged(self):
        self.get("-H", f"Authorization: Bearer {OTHER}")
        for line in self.serve.lines:
            self.assertNotIn(TOKEN, line)
            self.assertNotIn(OTHER, line)


class ClientCertificates(TlsCase):
    options = ("--listen", "0.0.0.0", "--tls-cert", "{}/server.pem", "--tls-key", "{}/server.key",
               "--tls-client-ca", "{}/ca.pem")

    def identity(self, name):
        return ("--cert", f"{self.folder.name}/{name}.pem", "--key", f"{self.folder.name}/{name}.key")

    def test_clients_need_a_certificate_of_the_authority(self):
        self.assertEqual(self.get(*self.identity("client")), 200)
        self.assertEqual(self.get(), 0)
        self.assertEqual(self.get(*self.identity("stranger")), 0)

    def test_the_authority_is_reloaded(self):
        self.certify()
        self.reload()
        self.assertEqual(self.get(*self.identity("client")), 200)
        self.assertEqual(self.get(*self.identity("stranger")), 0)


class Exposed(unittest.TestCase):
    def test_an_exposed_address_without_tls_is_refused(self):
        serve = Serve("/nowhere", "--listen", "0.0.0.0")
        self.assertEqual(serve.process.wait(PATIENCE_S), 2)
        self.assertTrue(serve.says("needs TLS"))
        serve.process.stderr.close()


if __name__ == "__main__":
    tap.main()
