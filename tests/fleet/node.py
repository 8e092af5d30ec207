# SPDX-License-Identifier: GPL-2.0-or-later
"""A node as administrators set it up: the packaged units under systemd, a job, and the packaged Prometheus."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from compare import run

BUILD = pathlib.Path(os.environ["ZERNEL_BUILD"])
PACKAGING = pathlib.Path(os.environ["ZERNEL_SOURCE"]) / "packaging"
SECONDS = 600  # timeout: zerneld needs a minute to load, and five minutes next to other guests
UNITS = {"zerneld": f"{BUILD}/src/daemon/zerneld", "zernel-serve": f"{BUILD}/src/cli/zernel serve"}
SOCKET = pathlib.Path("/run/zernel/zernel.sock")
TOKEN = pathlib.Path("/run/zernel-serve/token")
JOB = "train.service"
TRUTH = pathlib.Path("/tmp/truth")
TRUTH_SYNC, TRUTH_LAUNCH = 11, 12  # lab/truth/truth.h
TRUTH_WORK_KERNEL = 0


def note(text):
    print(f"# {text}", flush=True)


def wait_until(condition, what):
    """`what` is the text of the error, or a function that returns it."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(0.5)
    raise AssertionError(f"timeout after {SECONDS} s: {what() if callable(what) else what}")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def install(settings):
    """Installs like a package, except that the programs stay in the build directory."""
    for name, command in UNITS.items():
        shutil.copy(BUILD / f"packaging/{name}.service", "/etc/systemd/system")
        folder = pathlib.Path(f"/etc/systemd/system/{name}.service.d")
        folder.mkdir()
        (folder / "built.conf").write_text(f"[Service]\nExecStart=\nExecStart={command}\n")
    folder = pathlib.Path("/etc/zernel/zernel.conf.d")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(PACKAGING / "zernel.conf", folder.parent)
    (folder / "test.conf").write_text(settings)
    output("systemd-sysusers", *PACKAGING.glob("sysusers.d/*.conf"))
    output("systemd-tmpfiles", "--create", *PACKAGING.glob("tmpfiles.d/*.conf"))
    output("systemctl", "daemon-reload")


class Unit:
    def __init__(self, name):
        self.name = name

    def ctl(self, verb):
        output("systemctl", verb, self.name)

    def show(self, key):
        return output("systemctl", "show", "--value", "-p", key, self.name).strip()

    def active(self):
        return self.show("ActiveState") == "active"

    def pid(self):
        return int(self.show("MainPID"))

    def log(self):
        return output("journalctl", "-q", "-o", "cat", "-u", self.name)

    def status(self, key):
        text = pathlib.Path(f"/proc/{self.pid()}/status").read_text(encoding="utf-8")
        return re.search(rf"^{key}:\s*(.*)$", text, re.M).group(1)

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid()}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def exposure(self):
        text = output("systemd-analyze", "security", "--no-pager", self.name)
        return float(re.search(r"Overall exposure level for .*: ([0-9.]+)", text).group(1)), text


def get(url, headers=None):
    """Status and text; status 0 when no server answers."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def ask_gateway(path):
    """Like get(), with the token that the gateway made."""
    token = TOKEN.read_text(encoding="ascii").strip() if TOKEN.exists() else ""
    return get(f"http://127.0.0.1:9476{path}", {"Authorization": f"Bearer {token}"})


def ready():
    return ask_gateway("/readyz")[0] == 200


def start_job():
    """
    A training job of a user other than root, which logs the truth. Launches are long, because the probes around a
    launch are not in the truth and take a tenth of a millisecond or more on an emulated CPU.
    """
    TRUTH.mkdir()
    TRUTH.chmod(0o777)
    output("systemd-run", "-q", f"--unit={JOB}", "--uid=nobody", "-E", f"LD_LIBRARY_PATH={BUILD}/lab/vgpu",
           "-E", "VGPU_LAUNCH_NS=4000000", f"{BUILD}/lab/train/train", "--launches", "3", "--kernel-us", "5000",
           "--optimizer-us", "500", "--sync", "block", "--loaders", "1", "--load-cpu-us", "2000", "--seconds", "3000",
           "--truth", str(TRUTH))


def truth_spans(kind, before):
    """The duration in seconds of each call that ended before the given time, oldest first."""
    before_ns = (before - time.time() + time.monotonic()) * 1e9
    spans = [(end, end - begin) for path in TRUTH.glob("*.truth")
             for begin, end, *_, sub, its_kind in run.records(path)
             if its_kind == kind and end <= before_ns and (kind == TRUTH_SYNC or sub == TRUTH_WORK_KERNEL)]
    return [duration / 1e9 for _, duration in sorted(spans)]


class Prometheus:
    """The packaged Prometheus with the packaged configuration, except for a shorter scrape interval."""

    def __init__(self):
        folder = pathlib.Path("/tmp/prometheus")
        folder.mkdir()
        config = (PACKAGING / "prometheus/scrape.yml").read_text(encoding="utf-8")
        rules = f"rule_files: [{PACKAGING}/prometheus/zernel.rules.yml]\n"
        (folder / "prometheus.yml").write_text(rules + config.replace("15s", "2s"))
        with open(folder / "log", "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 "--web.listen-address=127.0.0.1:9090", "--enable-feature=native-histograms"], stdout=log, stderr=log)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def rows(self, text, at=None):
        """The rows of the result; None if Prometheus refuses the query or does not answer."""
        parameters = urllib.parse.urlencode({"query": text, "time": at or time.time()})
        status, body = get(f"http://127.0.0.1:9090/api/v1/query?{parameters}")
        return json.loads(body)["data"]["result"] if status == 200 else None

    def query(self, text, at=None):
        """The value of the single result, or None."""
        rows = self.rows(text, at) or []
        return float(rows[0]["value"][1]) if len(rows) == 1 else None

    def rules(self):
        status, body = get("http://127.0.0.1:9090/api/v1/rules")
        return [rule for group in json.loads(body)["data"]["groups"] for rule in group["rules"]] if status == 200 else []
