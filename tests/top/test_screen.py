# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests the screen of `zernel top`: keys, mouse, sizes, terminals, and restarts of zerneld."""
import os
import pathlib
import re
import signal
import time

import scene
import tap
from harness import TopCase

# The screens in the documentation are the expected screens.
DOCS = pathlib.Path(os.environ["ZERNEL_SOURCE"]) / "docs/guides/top.md"
WHOLE, THREADS, HELP = re.findall(r"```text\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S)

KEYS = "Enter open  t threads  s sort  / filter  p pause  h help  q quit"


class Shown(TopCase):
    def test_whole_screen_without_color(self):
        self.start(seconds=8, NO_COLOR="1")
        self.assertScreen(WHOLE)
        self.assertEqual(self.screen.lines()[-1], KEYS)
        self.assertNotRegex(self.screen.text("-e"), r"\033\[[0-9;]*[34][1-7]m")

    def test_terminals(self):
        for terminal, coloured in (("vt100", False), ("linux", True), ("screen", True), ("xterm", True)):
            self.zerneld.second = 1
            self.start(seconds=8, TERM=terminal)
            if not coloured:
                self.assertScreen(WHOLE)
            self.assertIn("+ 1030 python3       3 optim     30% load cpu", self.screen.text(), terminal)
            # The strip has a green background where a GPU computes.
            self.assertEqual("\033[30m\033[42m" in self.screen.text("-e"), coloured, terminal)
            self.screen.close()

    def test_locale_with_ascii_only(self):
        self.start(seconds=1, LANG="C", LC_ALL="C")
        self.assertIn("3000 tr?ning ?", self.screen.text())

    def test_threads_and_loaders_below_a_process(self):
        self.start(seconds=8, NO_COLOR="1")
        self.screen.keys("Down", "Enter")
        self.shows("1001 nccl")
        self.assertEqual(self.screen.lines()[5:13], THREADS.splitlines())
        self.screen.keys("t")
        self.shows("1021 nccl")
        self.screen.keys("t")
        self.hides("nccl")

    def test_sort(self):
        self.start(seconds=8, NO_COLOR="1")
        self.screen.keys("s")
        self.shows("sort by: arrows and Enter", "share of time the GPU is idle")
        self.screen.keys("Down", "Down", "Enter")
        self.hides("sort by")
        self.waits(lambda: [line[3:7] for line in self.screen.lines()[7:11]] == ["1020", "1030", "1000", "1010"],
                   "the most idle rank first")

    def test_filter(self):
        self.start(seconds=1)
        self.screen.keys("/")
        self.screen.type("LLAMA")
        self.hides("slurm 4711")
        self.shows("pod 0a1b", "/LLAMA")
        self.screen.keys("Enter")
        self.shows("filter 'LLAMA'")
        self.screen.keys("/")
        self.screen.type("nobody")
        self.shows("No job or process matches 'nobody'.")
        self.screen.keys("Escape")
        self.shows("slurm 4711")

    def test_pause(self):
        self.start(seconds=2)
        self.screen.keys("p")
        self.shows("paused")
        self.zerneld.second += 1
        time.sleep(0.3)
        self.assertIn("12:00:03", self.screen.text())
        self.screen.keys("p")
        self.hides("paused")
        self.pass_seconds(1)

    def test_help(self):
        self.start(NO_COLOR="1")
        self.screen.keys("?")
        self.shows("KEYS")
        self.assertEqual(self.screen.lines()[5:20], HELP.splitlines())
        self.screen.keys("q")
        self.hides("COLUMNS")
        self.shows("slurm 4711")

    def test_columns_without_room(self):
        self.start()
        self.assertNotIn("MEMORY", self.screen.text())
        self.screen.keys("Right", "Right")
        self.shows("MEMORY")
        self.assertIn("21.0G", self.screen.line("slurm 4711"))
        self.screen.keys("Left", "Left")
        self.hides("MEMORY")

    def test_mouse(self):
        self.start(seconds=1, NO_COLOR="1", TERM="xterm")
        self.shows("1120/s", "80%", "2000 llama", "q quit")  # rates need two snapshots; then no line moves
        row = next(i for i, line in enumerate(self.screen.lines()) if "1010 python3" in line)
        self.screen.click(4, row)
        self.screen.click(4, row)
        self.shows("1011 nccl")
        self.screen.click(4, row)
        self.hides("1011 nccl")
        title = self.screen.lines().index(self.screen.line("JOB, PROCESS"))
        self.screen.click(self.screen.line("JOB, PROCESS").index("IDLE"), title)
        self.waits(lambda: "1020" in self.screen.lines()[title + 2], "the click to sort")
        # The wheel moves three rows up, to the first process of the job.
        self.screen.click(4, row, button=64)
        self.screen.keys("Enter")
        self.shows("1021 nccl")

    def test_clicks_that_arrive_together(self):
        self.start(seconds=1, NO_COLOR="1", TERM="xterm")
        self.shows("1120/s", "80%", "2000 llama", "q quit")
        row = next(i for i, line in enumerate(self.screen.lines()) if "1010 python3" in line)
        self.screen.click(4, row, row, row - 1)
        self.shows("1011 nccl")
        self.hides("1001 nccl")
        self.screen.keys("Enter")
        self.shows("1001 nccl", "1011 nccl")


class Sizes(TopCase):
    def test_any_window_size(self):
        self.start(seconds=8, NO_COLOR="1")
        for size, lines in (((120, 40), ["MEMORY PHASES"]), ((20, 5), ["node7  Linux 6.18.15", "- slurm 47"]),
                            ((40, 12), ["JOB, PROCE RANK PHASE"]), ((5, 2), []), ((1, 1), []),
                            ((300, 80), ["gpu3 [||||||   ] 70%"]), ((80, 24), WHOLE.splitlines()[6:9])):
            self.screen.resize(*size)
            self.shows(*lines)
        self.assertScreen(WHOLE)


class Empty(TopCase):
    scene_at = staticmethod(scene.empty)

    def test_no_process_uses_a_gpu(self):
        self.start(seconds=1)
        self.shows("No process uses a GPU.")
        self.screen.keys("Down", "Enter", "t", "End", "s", "Enter", "Right")
        self.pass_seconds(1)
        self.shows("No process uses a GPU.")


class Large(TopCase):
    scene_at = staticmethod(scene.large)

    def test_64_ranks_and_8_gpus(self):
        self.start(seconds=2)
        self.shows("gpu0 [", "gpu7 [", "64 proc")
        self.screen.keys("t", "End")
        self.shows("5063 python3", "100511 python3")
        self.screen.keys("t", "Home")
        self.shows("- slurm 1", "+ 5000 python3")
        self.screen.keys("PageDown", "PageDown")
        self.shows("5026 python3")


class Hostile(TopCase):
    scene_at = staticmethod(scene.hostile)

    def test_names_cannot_control_the_terminal(self):
        self.start(seconds=1)
        self.shows("evil?]0;owned?", "- job??31m", "666 ?[2J%s%n?")
        self.assertNotIn("owned", self.screen.asks("#{pane_title}"))


class Ends(TopCase):
    def wrapped(self, **options):
        """Starts top in a shell that saves the terminal settings before and after."""
        where = pathlib.Path(self.directory)
        script = f'trap : INT; stty -a >{where}/before; "$@"; echo status $?; stty -a >{where}/after; sleep 1000'
        return self.start("sh", "-c", script, "sh", **options)

    def check_restored(self, status):
        self.shows(f"status {status}")
        where = pathlib.Path(self.directory)
        self.waits(lambda: (where / "after").exists() and (where / "after").read_text(), "the terminal settings")
        self.assertEqual((where / "before").read_text(), (where / "after").read_text())
        self.assertEqual(self.screen.asks("#{cursor_flag} #{alternate_on} #{mouse_any_flag} #{keypad_flag}"), "1 0 0 0")

    def test_quit_restores_the_terminal(self):
        self.wrapped()
        self.screen.keys("q")
        self.check_restored(0)

    def test_interrupted(self):
        self.wrapped()
        self.screen.keys("C-c")
        self.check_restored(0)

    def test_terminated(self):
        self.wrapped()
        shell = int(self.screen.asks("#{pane_pid}"))
        top = pathlib.Path(f"/proc/{shell}/task/{shell}/children").read_text(encoding="ascii").split()
        self.assertEqual(len(top), 1)
        signal.pidfd_send_signal(os.pidfd_open(int(top[0])), signal.SIGTERM)
        self.check_restored(0)


class Zerneld(TopCase):
    def test_zerneld_restarts(self):
        self.start(seconds=3, NO_COLOR="1")
        self.zerneld.stop()
        self.shows("connection to zerneld lost, reconnecting;")
        self.assertIn("slurm 4711", self.screen.text())
        self.zerneld.second += 1
        self.zerneld.start()
        self.hides("connection to zerneld lost")
        self.pass_seconds(1)
        # Time without snapshots is a gap in the strip.
        self.assertRegex(self.screen.line("1000 python3"), r"GGCG GO$")

    def test_zerneld_is_silent(self):
        self.start(interval_ms=100)
        self.shows("no data from zerneld;")
        self.zerneld.second += 1
        self.hides("no data from zerneld")

    def test_unknown_snapshot_version(self):
        self.start()
        self.zerneld.scene_at = lambda second: {"version": 99}
        self.zerneld.second += 1
        self.shows("zerneld has another protocol version;")
        self.zerneld.scene_at = scene.node
        self.zerneld.second += 1
        self.hides("another protocol version")

    def test_zerneld_restarts_with_another_protocol(self):
        self.start()
        self.zerneld.stop()
        self.shows("connection to zerneld lost, reconnecting;")
        self.zerneld.version = 1
        self.zerneld.start()
        self.shows("zerneld has another protocol version;")


if __name__ == "__main__":
    tap.main()
