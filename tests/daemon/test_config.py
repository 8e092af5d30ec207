# SPDX-License-Identifier: GPL-2.0-or-later
"""Configuration: files, drop-ins, options, errors and reloads."""
import json
import os
import pathlib
import signal
import subprocess

import tap
from harness import BUILD, Case, ZERNEL, ZERNELD

SOURCE = pathlib.Path(os.environ["ZERNEL_SOURCE"])


def run(*arguments):
    return subprocess.run([ZERNELD, *arguments], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "FAKE_KERNEL": "/nonexistent"})


class Files(Case):
    def refused(self, text, line, problem):
        path = pathlib.Path(self.directory) / "zernel.conf"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        done = run("--config", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{path}:{line}: " if line else f"{path}: ", done.stderr)
        self.assertIn(problem, done.stderr)

    def setUp(self):
        self.directory = self.enterContext(__import__("tempfile").TemporaryDirectory())

    def test_errors_name_file_and_line(self):
        self.refused("[scheduler]\n\nreserved_percent=91\n", 3, "a number from 0 to 90, not '91'")
        self.refused("[scheduler]\nattach=maybe\n", 2, "attach must be no, auto or yes, not 'maybe'")
        self.refused("[scheduler]\nwithout=tier,tiger\n", 2, "rules")
        for value in "1.001", "0.3001", ".3", "0.", "03", "-0.3", "0,3", "0.3x", "":
            self.refused(f"[phase_detection]\nio_wait_threshold={value}\n", 2, "a fraction from 0 to 1 with at most")
        self.refused("[phase_detection]\noptimizer_burst_max_ns=0\n", 2, "a number from 1 to 1000000000")
        self.refused("[phase_detection]\ngpu_active_threshold=101\n", 2, "a number from 0 to 100")
        self.refused("[phase_detection]\nphase_stability_count=1001\n", 2, "a number from 0 to 1000")
        self.refused("[phase_detection]\nnccl_detection_enabled=maybe\n", 2, "yes or no")
        self.refused("[phase_detection]\ngpu_idle_threshold=80\n", 2,
                     "gpu_idle_threshold (80) must be less than gpu_active_threshold (80)")
        self.refused("[phase_detection]\ngpu_active_threshold=9\n[kernel]\nretry_s=2\n", 2,
                     "gpu_idle_threshold (10) must be less than gpu_active_threshold (9)")
        self.refused("[learning]\nprofiles=63\n", 2, "64")
        self.refused("[learning]\nprofiles=4096x\n", 2, "number")
        self.refused("[learning]\nstate_directory=here\n", 2, "absolute path")
        self.refused("[socket]\npath=/" + "x" * 107 + "\n", 2, "107")
        self.refused("[scheduler]\nspeed=9\n", 2, "unknown key speed in section [scheduler]: see zernel.conf(5)")
        self.refused("attach=yes\n", 1, "unknown key attach in section []")
        self.refused("[scheduler]\nwhatever\n", 2, "key=value")
        self.refused("[scheduler]\n# " + "x" * 400 + "\n", 2, "too long")
        self.refused(b"[scheduler]\n\0attach=no\n", 2, "NUL byte")
        self.refused("[serve]\nlisten=127.0.0.1,,::1\n", 2, "list of at most 8 items")
        self.refused("[serve]\nlisten=" + ",".join(["::1"] * 9) + "\n", 2, "list of at most 8 items")
        self.refused("[serve]\nuser=\n", 2, "a name of at most 32 bytes")
        self.refused("[serve]\nuser=" + "x" * 33 + "\n", 2, "a name of at most 32 bytes")
        self.refused("[serve]\ntls_cert=chain.pem\n", 2, "empty, or an absolute path")
        self.refused("# \n" * 40000, 0, "cannot be read")

    def test_the_file_of_the_option_must_exist(self):
        done = run("--config", f"{self.directory}/missing.conf")
        self.assertEqual(done.returncode, 1)
        self.assertIn("missing.conf: cannot be read", done.stderr)

    def test_options_are_checked_like_keys(self):
        for words in ("--profiles", "1"), ("--without", "tiger"), ("--socket", "relative"):
            done = run(*words)
            self.assertEqual(done.returncode, 1)
            self.assertIn("command line: ", done.stderr)
        for words, problem in ((("--unknown",), "'--unknown'"), (("word",), "unexpected operand 'word'"),
                               (("--state",), "'--state' requires an argument"),
                               (("--log-level", "loud"), "--log-level must be error, warning, info or debug, not 'loud'")):
            done = run(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(problem, done.stderr)
            self.assertIn("Try 'zerneld --help'.", done.stderr)
        self.assertEqual(run("--help").returncode, 0)
        self.assertEqual([line for line in run("--help").stdout.splitlines() if len(line) > 80], [])

    def test_the_shipped_files_match_the_table(self):
        shipped = (SOURCE / "packaging/zernel.conf").read_text()
        self.assertEqual(run("--print-config").stdout, shipped)
        done = run("--print-config")
        self.assertEqual(done.returncode, 0)
        manual = subprocess.run([BUILD / "tests/daemon/config-manual"], capture_output=True, text=True, check=True)
        self.assertEqual(manual.stdout, (SOURCE / "packaging/man/zernel.conf.5").read_text())

    def test_the_shipped_file_is_valid_with_all_keys_uncommented(self):
        lines = [line[1:] if line.startswith("#") and "=" in line and " " not in line else line
                 for line in (SOURCE / "packaging/zernel.conf").read_text().splitlines()]
        path = pathlib.Path(self.directory) / "zernel.conf"
        path.write_text("\n".join(lines) + "\n[scheduler]\nreserved_percent=9999\n")
        done = run("--config", path)
        self.assertIn(f"{path}:{len(lines) + 2}: ", done.stderr)

    def test_the_documented_capabilities_match_the_table(self):
        text = "".join(path.read_text() for path in (SOURCE / "docs").rglob("*.md"))
        for line in run("--print-capabilities").stdout.splitlines():
            name, reason = line.split(maxsplit=1)
            self.assertIn(f"| `{name}` | {reason} |", text)


class Reload(Case):
    def test_drop_ins_take_effect_in_the_order_of_their_names(self):
        server = self.zerneld(config="[scheduler]\nreserved_percent=10\n")
        drop_ins = pathlib.Path(f"{server.config}.d")
        drop_ins.mkdir()
        (drop_ins / "20.conf").write_text("[scheduler]\nreserved_percent=20\n")
        (drop_ins / "10.conf").write_text("[scheduler]\nreserved_percent=15\nwithout=tier,place\n")
        (drop_ins / ".hidden.conf").write_text("nonsense\n")
        (drop_ins / "30.conf.bak").write_text("nonsense\n")
        server.send(signal.SIGHUP)
        server.said("configuration reloaded")
        self.assertEqual(server.scheduler()["reserved_percent"], 20)
        self.assertEqual(server.did()[-1], "policy rules_off=c0 reserved=20")

    def test_settings_of_the_phase_detector_take_effect_at_once(self):
        def shown():
            with server.client() as client:
                return client.ask("snapshot")["result"]["phase_detection"]

        server = self.zerneld()
        self.assertIn("phases io=300 burst=5000000 idle=10 active=80 stability=3 nccl=0", server.did())
        self.assertEqual(shown(), {"io_wait_threshold": 0.3, "optimizer_burst_max_ns": 5000000, "gpu_idle_threshold": 10,
                                   "gpu_active_threshold": 80, "phase_stability_count": 3,
                                   "nccl_detection_enabled": False})
        changed = {"io_wait_threshold": 0.125, "optimizer_burst_max_ns": 2000000, "gpu_idle_threshold": 85,
                   "gpu_active_threshold": 90, "phase_stability_count": 1, "nccl_detection_enabled": True}
        server.config.write_text(server.config.read_text() + "[phase_detection]\n" +
                                 "".join(f"{key}={value}\n" for key, value in changed.items()).lower())
        server.send(signal.SIGHUP)
        server.said("configuration reloaded")
        self.assertNotIn("takes effect", server.text())
        self.assertEqual(server.did()[-2], "phases io=125 burst=2000000 idle=85 active=90 stability=1 nccl=1")
        self.assertEqual(shown(), changed)
        status = subprocess.run([ZERNEL, "status", "--json", "--socket", server.path], capture_output=True, check=True)
        self.assertEqual(json.loads(status.stdout)["phase_detection"], changed)
        config = subprocess.run([ZERNEL, "config", "show", "--config", server.config], capture_output=True, text=True,
                                check=True)
        self.assertRegex(config.stdout, r"phase_detection.io_wait_threshold +0.125 +/")

    def test_a_bad_file_changes_nothing(self):
        server = self.zerneld(config="[scheduler]\nreserved_percent=10\n")
        before = server.did()
        good = server.config.read_text()
        server.config.write_text(good + "without=tier\nreserved_percent=x\n")
        server.send(signal.SIGHUP)
        server.said("reload failed: the previous configuration stays in effect")
        lines = len(good.splitlines())
        server.said(f"{server.config}:{lines + 2}: reserved_percent must be")
        self.assertEqual(server.did(), before)
        server.config.write_text(good)
        server.send(signal.SIGHUP)
        server.said("configuration reloaded")

    def test_a_reload_undoes_changes_of_clients(self):
        server = self.zerneld()
        with server.client() as client:
            client.ask("policy.set", reserved_percent=50)
        server.send(signal.SIGHUP)
        server.said("configuration reloaded")
        self.assertEqual(server.scheduler()["reserved_percent"], 30)

    def test_the_scheduler_can_be_switched_off_and_the_command_line_overrides_the_file(self):
        server = self.zerneld("--without", "spinner,place")
        server.config.write_text(server.config.read_text() + "[scheduler]\nattach=no\nwithout=tier\n")
        server.send(signal.SIGHUP)
        server.said("configuration reloaded")
        self.assertEqual(server.scheduler()["state"], "off")
        self.assertIn("policy rules_off=88 reserved=30", server.did())

    def test_a_key_that_needs_a_restart_is_reported(self):
        server = self.zerneld()
        server.config.write_text(server.config.read_text() + "[learning]\nprofiles=64\n")
        server.send(signal.SIGHUP)
        server.said("the new value of profiles takes effect when zerneld restarts")

    def test_keys_of_the_gateway_are_checked_and_need_no_restart_of_zerneld(self):
        server = self.zerneld()
        server.config.write_text(server.config.read_text() + "[serve]\nport=80\nlisten=127.0.0.1\n")
        server.send(signal.SIGHUP)
        server.said("configuration reloaded")
        self.assertNotIn("takes effect", server.text())

    def test_an_unchanged_value_that_is_set_twice_needs_no_restart(self):
        server = self.zerneld()
        path = str(server.config.parent / "s")
        server.config.write_text(server.config.read_text() + f"[learning]\nstate_directory={path}\n")
        server.stop()
        server.start()
        drop_ins = pathlib.Path(f"{server.config}.d")
        drop_ins.mkdir()
        (drop_ins / "10.conf").write_text(f"[learning]\nstate_directory={path}-longer\n")
        (drop_ins / "20.conf").write_text(f"[learning]\nstate_directory={path}\n")
        server.send(signal.SIGHUP)
        server.said("configuration reloaded")
        self.assertNotIn("takes effect", server.text())


if __name__ == "__main__":
    tap.main()
