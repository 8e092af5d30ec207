# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the commands with a zerneld that has fake BPF programs."""
import json
import os
import pathlib
import pty
import subprocess
import tempfile

import tap
from fake_zerneld import FakeZerneld
from harness import BUILD, Case, OTHERS, ZERNEL, as_user, read_terminal, wait_until
from node import mapped_library


def zernel(*words, status=0, **options):
    done = subprocess.run([ZERNEL, *words], capture_output=True, text=True, timeout=60, check=False, **options)
    assert done.returncode == status, (words, done)
    return done.stdout if status == 0 else done.stdout + done.stderr


def on_terminal(*words, **variables):
    """The output of a command on a terminal."""
    leader, follower = pty.openpty()
    with subprocess.Popen([ZERNEL, *words], stdout=follower, env={**os.environ, "TERM": "xterm", **variables}) as child:
        os.close(follower)
        text = read_terminal(leader)
        os.close(leader)
    assert child.returncode == 0
    return text


class Status(Case):
    def test_status_of_a_running_zerneld(self):
        server = self.zerneld()
        text = zernel("status", "--socket", server.path)
        self.assertIn("scheduler  attached", text)
        self.assertIn("own cost", text)
        self.assertNotIn("\033", text)
        self.assertIn("\033[32mattached", on_terminal("status", "--socket", server.path))
        self.assertNotIn("\033", on_terminal("status", "--socket", server.path, NO_COLOR="1"))
        self.assertNotIn("\033", on_terminal("status", "--socket", server.path, TERM="dumb"))

    def test_json_is_the_snapshot(self):
        server = self.zerneld()
        snapshot = json.loads(zernel("status", "--json", "--socket", server.path))
        self.assertEqual(snapshot["scheduler"]["state"], "attached")
        self.assertEqual(snapshot["processes"][0]["task"]["current_phase"], "GpuCompute")

    def test_without_zerneld(self):
        text = zernel("status", "--socket", "/nonexistent/socket", status=1)
        self.assertIn("systemctl start zerneld", text)

    def test_user_without_access_gets_an_error(self):
        server = self.zerneld(config="[socket]\nread_own=no\n")
        text = as_user(OTHERS, OTHERS, [], lambda: zernel("status", "--socket", server.path, status=1))
        self.assertIn("zernel", text)
        self.assertIn("refused", text)


class Hang(Case):
    def test_ranks_of_a_running_zerneld(self):
        """The ranks have entered ten all-reduces and one all-gather. Their pids can be those of other jobs."""
        server = self.zerneld()
        answer = json.loads(zernel("hang", "--json", "--socket", server.path))
        comms = [comm for job in answer["jobs"] for comm in job["communicators"]]
        for comm in comms:
            self.assertEqual((comm["identity"], comm["verdict"], comm["number"]), ("0000000000000abc", "none", 11))
        self.assertEqual(sorted((rank["rank"], rank["entered"], rank["op"], rank["bytes"], rank["returned"])
                                for comm in comms for rank in comm["ranks"]),
                         [(number, 11, "all_gather", 64, False) for number in range(3)])
        self.assertIn("no rank hangs: ", zernel("hang", "--socket", server.path))

    def test_no_such_job(self):
        server = self.zerneld()
        self.assertIn("No matching process or job", zernel("hang", "nobody", "--socket", server.path, status=3))

    def test_without_zerneld(self):
        self.assertIn("systemctl start zerneld", zernel("hang", "--socket", "/nonexistent/socket", status=1))


class AnotherVersion(Case):
    """A zerneld that is older than the command."""

    def setUp(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = str(directory / "zernel.sock")
        zerneld = FakeZerneld(self.path, {})
        zerneld.version = 1
        self.addCleanup(zerneld.start().stop)

    def test_every_command_reports_another_protocol_version(self):
        for words in ("status",), ("why",), ("hang",), ("top",), ("procdb", "list"), ("record", f"{self.path}.zr"):
            text = zernel(*words, "--socket", self.path, status=1)
            self.assertIn(f"zerneld at {self.path} speaks another protocol version: update both to the same version",
                          text)
        report = json.loads(zernel("doctor", "--json", "--socket", self.path, status=2).rpartition("}")[0] + "}")
        check = next(each for each in report["checks"] if each["name"] == "zerneld")
        self.assertEqual(check["verdict"], "failure")
        self.assertIn("another protocol version", check["text"])


class Doctor(Case):
    """The verdicts depend on the machine, but all checks must run."""

    def test_exit_status_is_the_worst_verdict(self):
        server = self.zerneld()
        done = subprocess.run([ZERNEL, "doctor", "--json", "--socket", server.path], capture_output=True, text=True,
                              check=False)
        report = json.loads(done.stdout)
        order = ["ok", "warning", "failure"]
        verdicts = {check["name"]: check["verdict"] for check in report["checks"]}
        self.assertEqual(order[done.returncode], report["verdict"])
        self.assertEqual(report["verdict"], max(verdicts.values(), key=order.index))
        self.assertEqual(verdicts["zerneld"], "ok")
        self.assertEqual(verdicts["capabilities"], "ok")

    def test_remedy_names_the_group_to_join(self):
        server = self.zerneld()
        done = as_user(OTHERS, OTHERS, [], lambda: subprocess.run(
            [ZERNEL, "doctor", "--socket", server.path], capture_output=True, text=True, check=False).stdout)
        self.assertIn("sudo usermod -aG zernel $USER", done)

    def test_usage_error_is_not_a_verdict(self):
        self.assertIn("Try 'zernel doctor --help'.", zernel("doctor", "extra", status=3))


class Config(Case):
    def setUp(self):
        self.file = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "zernel.conf"
        self.file.write_text("[scheduler]\nreserved_percent=10\nwithout=tier,helper\n")
        drop_ins = pathlib.Path(f"{self.file}.d")
        drop_ins.mkdir()
        self.drop_in = drop_ins / "10.conf"
        self.drop_in.write_text("# mine\n[scheduler]\nreserved_percent=20\n")

    def test_each_value_and_its_origin(self):
        keys = json.loads(zernel("config", "show", "--json", "--config", self.file))["keys"]
        keys = {f"{key['section']}.{key['key']}": key for key in keys}
        self.assertEqual(keys["scheduler.reserved_percent"],
                         {"section": "scheduler", "key": "reserved_percent", "value": "20", "default": "30",
                          "file": str(self.drop_in), "line": 3})
        self.assertEqual((keys["scheduler.without"]["value"], keys["scheduler.without"]["line"]), ("tier,helper", 3))
        self.assertEqual(keys["kernel.retry_s"], {"section": "kernel", "key": "retry_s", "value": "60", "default": "60"})
        table = zernel("config", "show", "--config", self.file)
        self.assertRegex(table, rf"scheduler.reserved_percent +20 +{self.drop_in}:3\n")
        self.assertRegex(table, r"kernel.retry_s +60 +default\n")
        self.assertEqual(len(table.splitlines()), len(keys) + 1)

    def test_check(self):
        self.assertIn("is valid", zernel("config", "check", self.file))
        self.assertEqual(json.loads(zernel("config", "check", "-j", self.file)), {"file": str(self.file), "status": "valid"})
        self.drop_in.write_text("[scheduler]\nreserved_percent=many\n")
        self.assertIn(f"{self.drop_in}:2: reserved_percent must be", zernel("config", "check", self.file, status=1))
        self.assertIn("reserved_percent must be", zernel("config", "show", "--config", self.file, status=1))
        self.assertIn("cannot be read", zernel("config", "check", "/nonexistent", status=1))

    def test_check_covers_the_gateway(self):
        self.drop_in.write_text("[serve]\nlisten=127.0.0.1,::1\nallow_origin=https://grafana.example:3000\n")
        self.assertIn("is valid", zernel("config", "check", self.file))
        table = zernel("config", "show", "--config", self.file)
        self.assertRegex(table, rf"serve.listen +127.0.0.1,::1 +{self.drop_in}:2\n")
        self.assertRegex(table, r"serve.port +9476 +default\n")
        for text, problem in (("listen=0.0.0.0", "needs TLS"), ("listen=localhost", "names are not looked up"),
                              ("allow_origin=*", "an origin is"), ("tls_cert=/c", "needs its key")):
            self.drop_in.write_text(f"[serve]\n{text}\n")
            self.assertIn(f"{self.file}: section [serve]: ", refusal := zernel("config", "check", self.file, status=1))
            self.assertIn(problem, refusal)


class Usage(Case):
    def test_help_and_missing_command(self):
        self.assertIn("Usage: zernel COMMAND", zernel("--help"))
        self.assertIn("Usage: zernel status", zernel("status", "--help"))
        self.assertIn("Usage: zernel procdb show NAME", zernel("procdb", "show", "--help"))
        self.assertIn("Usage: zernel COMMAND", zernel(status=2))
        self.assertIn("Usage: zernel procdb COMMAND", zernel("procdb", status=2))

    def test_usage_errors_name_the_value_and_the_help(self):
        for words, problem, name in (
                (("fry",), "unknown command 'fry' for 'zernel'", "zernel"),
                (("procdb", "fry"), "unknown command 'fry' for 'zernel procdb'", "zernel procdb"),
                (("--fry",), "unknown option '--fry' for 'zernel'", "zernel"),
                (("why", "--foo"), "unknown option '--foo' for 'zernel why'", "zernel why"),
                (("why", "-x"), "unknown option '-x' for 'zernel why'", "zernel why"),
                (("why", "-js"), "unknown option '-s' for 'zernel why'", "zernel why"),
                (("why", "--socket"), "option '--socket' for 'zernel why' needs an argument: PATH", "zernel why"),
                (("why", "--json=3"), "option '--json' for 'zernel why' takes no argument, but got '3'", "zernel why"),
                (("why", "--seconds", "0"), "--seconds must be a number from 1 to 3600, not '0'", "zernel why"),
                (("why", "--seconds=-1"), "--seconds must be a number from 1 to 3600, not '-1'", "zernel why"),
                (("ab", "--bound", "x", "1"), "--bound must be a number from 1 to 100, not 'x'", "zernel ab"),
                (("ab",), "missing operand for 'zernel ab': PID|JOB", "zernel ab"),
                (("status", "extra"), "unexpected operand 'extra' for 'zernel status'", "zernel status"),
                (("status", "--color=red"), "--color must be auto, always or never, not 'red'", "zernel status"),
                (("version", "x"), "unexpected operand 'x' for 'zernel version'", "zernel version"),
                (("config", "check"), "missing operand for 'zernel config check': FILE", "zernel config check"),
                (("procdb", "forget", "x", "--all"), "unexpected operand 'x' for 'zernel procdb forget'",
                 "zernel procdb forget")):
            self.assertEqual(zernel(*words, status=2), f"zernel: {problem}. Try '{name} --help'.\n")

    def test_version_of_every_command(self):
        version = zernel("version")
        self.assertRegex(version, r"^zernel \d+\.\d+\.\d+\n$")
        for words in ("--version",), ("-V",), ("why", "-V"), ("procdb", "--version"), ("procdb", "list", "-jV"), ("serve", "-V"):
            self.assertEqual(zernel(*words), version)
        self.assertEqual(json.loads(zernel("version", "--json")), {"version": version.split()[1]})


class Scheduler(Case):
    """zernel scheduler writes a drop-in, and a running zerneld follows it."""

    def setUp(self):
        super().setUp()
        self.enterContext(mapped_library())  # with attach=auto, the scheduler is for ML processes

    def watching(self):
        """Starts zerneld, which does not act and has found the process."""
        server = self.zerneld(attach="no")
        wait_until(lambda: json.loads(zernel("status", "--json", "--socket", server.path))["probes"]["processes"], "the process is found")
        return server

    def switch(self, server, *words, **options):
        return zernel("scheduler", *words, "--config", server.config, "--socket", server.path, **options)

    def test_on_and_off(self):
        server = self.watching()
        drop_in = server.config.with_name("zernel.conf.d") / "zernel-scheduler.conf"
        text = self.switch(server, "on")
        self.assertIn("attach=auto\n", drop_in.read_text())
        self.assertIn("now      scheduler attached", text)
        for hint in str(drop_in), "zernel ab", "zernel scheduler off":
            self.assertIn(hint, text)
        server.stop()
        server.start()
        wait_until(lambda: server.scheduler()["state"] == "attached", "attached again")
        text = self.switch(server, "off")
        self.assertIn("attach=no\n", drop_in.read_text())
        self.assertIn("now      scheduler off", text)
        self.assertIn("zernel scheduler on", text)

    def test_json(self):
        server = self.watching()
        result = json.loads(self.switch(server, "on", "-j"))
        self.assertEqual((result["attach"], result["state"], result["actuator"]), ("auto", "attached", "sched_ext"))

    def test_without_zerneld(self):
        server = self.zerneld(attach="no")
        server.stop()
        self.assertIn("systemctl enable --now zerneld", self.switch(server, "on"))
        self.assertEqual(json.loads(self.switch(server, "off", "-j"))["state"], "not running")

    def test_a_later_file_that_sets_the_key_is_named(self):
        server = self.zerneld(attach="no")
        later = server.config.with_name("zernel.conf.d") / "zz.conf"
        later.parent.mkdir()
        later.write_text("[scheduler]\nattach=no\n")
        self.assertIn(f"{later}:2 sets attach=no", self.switch(server, "on", status=1))

    def test_user_without_permission(self):
        server = self.zerneld(attach="no")
        self.assertIn("run this command with sudo", as_user(OTHERS, OTHERS, [], lambda: self.switch(server, "on", status=1)))
        self.assertEqual(server.scheduler()["state"], "off")


class Common(Case):
    """--json and --color, at any position."""

    def test_color(self):
        path = self.zerneld().path
        self.assertIn("\033[32mattached", zernel("status", "--socket", path, "--color=always"))
        self.assertIn("\033[32mattached", zernel("--color", "always", "status", "--socket", path))
        self.assertIn("\033[", on_terminal("config", "show", "--color=always", NO_COLOR="1"))
        for words in ("status", "--socket", path), ("config", "show"), ("procdb", "list", "--socket", path):
            self.assertNotIn("\033", on_terminal(*words, "--color=never"))
            self.assertNotIn("\033", zernel(*words, "--color=auto"))

    def test_json_at_any_position(self):
        path = self.zerneld().path
        for words in ("-j", "status"), ("--json", "status"), ("status", "-j"), ("top", "-j"):
            self.assertEqual(json.loads(zernel(*words, "--socket", path))["scheduler"]["state"], "attached")

    def test_json_of_changes(self):
        server = self.zerneld()
        source = server.directory / "source"
        subprocess.run([BUILD / "tests/daemon/make_procdb", source, "3"], check=True)
        for words, result in ((("import", source), {"imported": 3}), (("export", server.directory / "copy"), {"exported": 3}),
                              (("forget", "--all"), {"forgotten": 3})):
            self.assertEqual(json.loads(zernel("procdb", *words, "-j", "--socket", server.path)), result)


if __name__ == "__main__":
    tap.main()
