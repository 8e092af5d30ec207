# SPDX-License-Identifier: GPL-2.0-or-later
"""The packaged VictoriaMetrics with the recording rules in its vmalert, asked like Prometheus."""
import pathlib
import subprocess
import tempfile

from prometheus import Prometheus, rules


class VictoriaMetrics(Prometheus):
    """Runs on a port in the network namespace of the caller. It waits 1 s for late samples instead of 30 s."""

    def __init__(self, config, speed, port):
        self.url = f"http://127.0.0.1:{port}"
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        (folder / "scrape.yml").write_text(config)
        (folder / "rules.yml").write_text(rules(speed))
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["victoria-metrics", f"-promscrape.config={folder}/scrape.yml", "-promscrape.config.strictParse=false",
                 f"-storageDataPath={folder}/data", f"-httpListenAddr={self.url.removeprefix('http://')}",
                 "-search.latencyOffset=1s"], stdout=log, stderr=log)
            self.vmalert = subprocess.Popen(
                ["vmalert", f"-rule={folder}/rules.yml", "-httpListenAddr=127.0.0.1:0",
                 *(f"-{use}.url={self.url}" for use in ("datasource", "remoteWrite")), "-rule.evalDelay=1s",
                 "-remoteWrite.flushInterval=200ms", "-notifier.blackhole"], stdout=log, stderr=log)

    def stop(self):
        self.vmalert.terminate()
        self.vmalert.wait()
        super().stop()
