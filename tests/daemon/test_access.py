# SPDX-License-Identifier: GPL-2.0-or-later
"""Access rights, tested as different users and groups."""
import os

import tap
from harness import ADMINS, as_user, Case, Client, GROUPS, OTHERS, READERS

OWN = ("snapshot", {}), ("jobs.ended", {}), ("subscribe", {}), ("unsubscribe", {})
READING = ("policy.get", {}), ("procdb.list", {}), ("procdb.export", {}), ("record.start", {}), ("record.stop", {})
CLOSED = "[socket]\nread_own=no\n"
CHANGING = ("policy.set", {"reserved_percent": 10}), ("scheduler.detach", {}), ("scheduler.attach", {}), \
    ("procdb.import", {"image": ""}), ("procdb.forget", {"all": True})


def try_all(path):
    """Returns the rights of this client and the error code of each method."""
    with Client(path) as client:
        codes = {}
        for method, params in OWN + READING + CHANGING:
            reply = client.ask(method, **params)
            codes[method] = reply.get("error", {}).get("code", "ok")
            if codes[method] == "forbidden":
                codes["message"] = reply["error"]["message"]
        return client.hello["may"], codes


def connect_as(uid, path):
    os.seteuid(uid)
    try:
        return Client(path, hello=False)
    finally:
        os.seteuid(0)


class Access(Case):
    def check(self, server, who, may):
        got, codes = as_user(*who, lambda: try_all(server.path))
        self.assertEqual(got, may)
        for method, _ in OWN:
            self.assertEqual(codes[method] == "forbidden", not may, method)
        for method, _ in READING:
            self.assertEqual(codes[method] == "forbidden", "read" not in may, method)
        for method, _ in CHANGING:
            self.assertEqual(codes[method] == "forbidden", "change" not in may, method)
        return codes

    def test_access_by_user_and_group(self):
        server = self.zerneld()
        everything = ["read", "change"]
        for who, may in (((0, 0, []), everything),
                         ((OTHERS, ADMINS, []), everything),
                         ((OTHERS, OTHERS, [ADMINS]), everything),
                         ((OTHERS, OTHERS, [1, 2, 3, ADMINS]), everything),
                         ((OTHERS, READERS, []), ["read"]),
                         ((OTHERS, OTHERS, [READERS]), ["read"]),
                         ((OTHERS, OTHERS, []), ["read-own"]),
                         ((OTHERS, 0, [0]), ["read-own"])):
            with self.subTest(who=who):
                self.check(server, who, may)

    def test_the_error_says_how_to_get_access(self):
        server = self.zerneld()
        self.assertIn("zernel-admin", self.check(server, (OTHERS, READERS, []), ["read"])["message"])
        self.assertIn("group zernel ", self.check(server, (OTHERS, OTHERS, []), ["read-own"])["message"] + " ")

    def test_groups_that_do_not_exist_have_no_members(self):
        server = self.zerneld(groups="root:x:0:\n")
        self.check(server, (0, 0, []), ["read", "change"])
        self.check(server, (OTHERS, READERS, [ADMINS, READERS]), ["read-own"])
        self.check(server, (OTHERS, 0, [0]), ["read-own"])

    def test_a_new_group_takes_effect_after_a_reload(self):
        server = self.zerneld(groups="root:x:0:\n")
        self.check(server, (OTHERS, READERS, []), ["read-own"])
        (server.directory / "group").write_text(GROUPS)
        server.send(1)
        server.said("configuration reloaded")
        self.check(server, (OTHERS, READERS, []), ["read"])

    def test_refused_requests_change_nothing(self):
        server = self.zerneld()
        before = server.did()
        self.check(server, (OTHERS, READERS, []), ["read"])
        # Read access includes recording.
        self.assertEqual(server.did(), before + ["timeline on", "timeline off"])

    def test_strangers_together_cannot_keep_members_out(self):
        server = self.zerneld()
        strangers = [connect_as(OTHERS + 1 + i // 2, server.path) for i in range(60)]
        self.check(server, (OTHERS, READERS, []), ["read"])
        self.assertEqual(strangers[-1].line()["error"]["code"], "busy")
        for stranger in strangers:
            stranger.close()

    def test_without_read_own_other_users_read_nothing(self):
        server = self.zerneld(config=CLOSED)
        self.check(server, (OTHERS, OTHERS, []), [])
        self.check(server, (OTHERS, READERS, []), ["read"])
        server.config.write_text(server.config.read_text().replace("read_own=no", "read_own=yes"))
        server.send(1)
        server.said("configuration reloaded")
        self.check(server, (OTHERS, OTHERS, []), ["read-own"])

    def test_a_client_that_can_do_nothing_loses_its_place(self):
        server = self.zerneld(config=CLOSED)
        with Client(server.path) as member, Client(server.path, hello=False) as silent, \
                connect_as(OTHERS, server.path) as stranger:
            stranger.ask("hello", version=2)
            self.assertIsNone(silent.line())
            self.assertIsNone(stranger.line())
            self.assertIn("result", member.ask("snapshot"))


if __name__ == "__main__":
    tap.main()
