# SPDX-License-Identifier: GPL-2.0-or-later
"""The packaged Prometheus with the packaged scrape configuration and rules, with shorter intervals."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

PACKAGED = pathlib.Path(os.environ["ZERNEL_SOURCE"]) / "packaging/prometheus"
DURATION = re.compile(r"(?<![\w.])(\d+)(s|m)\b")
TARGETS = '["localhost:9476"]'
AUTHORIZATION = "    authorization: { credentials_file: /run/zernel-serve/token }\n"  # of a gateway on this machine
SAMPLE = re.compile(r"^(\w+)(\{.*\})? (\S+)$", re.M)
INTERVAL_S = 15  # of the packaged files


def faster(text, speed):
    """The same file, each of its durations divided by `speed`."""
    def shorten(match):
        return f"{int(match[1]) * {'s': 1, 'm': 60}[match[2]] * 1000 // speed}ms"
    return DURATION.sub(shorten, text)


def configuration(targets, speed, **more):
    """prometheus.yml; `more` joins the packaged scrape configuration. JSON is YAML."""
    scrape = (PACKAGED / "scrape.yml").read_text()
    for part in TARGETS, AUTHORIZATION:
        if part not in scrape:
            raise RuntimeError(f"scrape.yml does not have {part}")
    scrape = scrape.replace(AUTHORIZATION, "")
    evaluation = json.dumps({"evaluation_interval": f"{INTERVAL_S * 1000 // speed}ms"})
    options = "".join(f"    {key}: {json.dumps(value)}\n" for key, value in more.items())
    return (f"global: {evaluation}\nrule_files: [zernel.rules.yml]\n"
            + faster(scrape, speed).replace(TARGETS, json.dumps(targets)) + options)


def rules(speed):
    return faster((PACKAGED / "zernel.rules.yml").read_text(), speed)


class Prometheus:
    """Runs on a port in the network namespace of the caller."""

    def __init__(self, config, speed, *options, port=9090, program="prometheus"):
        self.url = f"http://127.0.0.1:{port}"
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        (folder / "prometheus.yml").write_text(config)
        (folder / "zernel.rules.yml").write_text(rules(speed))
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
                 f"--web.listen-address={self.url.removeprefix('http://')}", *options], stdout=log, stderr=log)

    def _get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=120) as reply:
            return reply.read()

    def wait_ready(self, timeout_s=120):
        end = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < end:
            try:
                return self._get("/-/ready")
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        raise RuntimeError("Prometheus did not start: " + self.log.read_text()[-2000:])

    def query(self, expression):
        """Pairs of labels and value."""
        reply = json.loads(self._get("/api/v1/query?" + urllib.parse.urlencode({"query": expression})))
        return [(one["metric"], float(one["value"][1])) for one in reply["data"]["result"]]

    def number(self, expression):
        found = self.query(expression)
        return found[0][1] if found else 0

    def alerts(self):
        """The firing alerts: pairs of labels and annotations."""
        reply = json.loads(self._get("/api/v1/alerts"))["data"]["alerts"]
        return [(one["labels"], one["annotations"]) for one in reply if one["state"] == "firing"]

    def own(self):
        """The metrics of Prometheus itself: the sum over all labels by name, and the values by name and labels."""
        found = {}
        for name, labels, value in SAMPLE.findall(self._get("/metrics").decode()):
            found[name] = found.get(name, 0) + float(value)
            if labels:
                found[name + labels] = float(value)
        return found

    def block(self):
        """Samples and bytes of a block of all data so far, as it is stored. Needs --web.enable-admin-api."""
        request = urllib.request.Request(self.url + "/api/v1/admin/tsdb/snapshot", method="POST")
        with urllib.request.urlopen(request, timeout=120) as reply:
            name = json.load(reply)["data"]["name"]
        folder = pathlib.Path(self.folder.name) / "data/snapshots" / name
        samples = sum(json.loads(path.read_text())["stats"]["numSamples"] for path in folder.glob("*/meta.json"))
        return samples, sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    def memory_kib(self, key="VmRSS"):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"^{key}:\s*(\d+)", text, re.M)[1])

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()
