#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the Grafana boards of packaging/grafana from the table of panels below: boards.py [DIRECTORY].

Each row of a board is one panel: title, kind, unit, expression, legend, and `empty`: when the expression may have no
result on a healthy node. Without `empty`, it must have one as soon as a job runs. The tests read the same table.
"""
import json
import pathlib
import sys
from typing import NamedTuple

# The interval of the packaged rules: a sum of recorded numbers of GPUs times this is GPU time.
RULE_S = 15
HOURS = f"* {RULE_S} / 3600"
COLLECTIVES = "without collectives"
DRIVER = "without a driver that reports it"


class Panel(NamedTuple):
    title: str
    kind: str  # of Grafana: timeseries, table, bargauge, stat
    unit: str  # of Grafana
    expr: str
    legend: str
    empty: str = ""


class Board(NamedTuple):
    name: str
    title: str
    variable: str  # the label that selects what the board shows; "" for all
    panels: tuple


def quantile(q, metric, by, where=""):
    """Of a native histogram, or of a classic one."""
    return (f"histogram_quantile({q}, sum by ({by}) (rate({metric}{where}[5m]))) or "
            f"histogram_quantile({q}, sum by ({by}, le) (rate({metric}_bucket{where}[5m])))")


JOB = '{job_name="$job_name"}'
NODE = '{instance="$instance"}'

FLEET = Board("fleet", "Zernel: fleet", "", (
    Panel("GPU hours idle, by cause", "bargauge", "h",
          f"sum by (cause) (sum_over_time(job_name_cause:zernel_gpu_idle:gpus[$__range])) {HOURS}", "{{cause}}"),
    Panel("GPU hours busy", "stat", "h", f"sum(sum_over_time(job_name:zernel_gpu_busy:gpus[$__range])) {HOURS}", "busy"),
    Panel("GPU hours not known to be idle or busy", "stat", "h",
          f"sum(sum_over_time(job_name:zernel_gpu_open:gpus[$__range])) {HOURS}", "not known"),
    Panel("GPUs idle, by cause", "timeseries", "short", "sum by (cause) (job_name_cause:zernel_gpu_idle:gpus)",
          "{{cause}}"),
    Panel("The ten jobs with most idle GPU hours", "table", "h",
          f"topk(10, sum by (job_name) (sum_over_time(job_name_cause:zernel_gpu_idle:gpus[$__range])) {HOURS})",
          "{{job_name}}"),
    Panel("Largest cause of idle time of each job", "table", "percentunit",
          "topk by (job_name) (1, job_name_cause:zernel_gpu_idle:share)", "{{job_name}}: {{cause}}"),
    Panel("Stragglers: lead in collectives over the median rank", "table", "percentunit",
          "topk(10, job_name_rank:zernel_collective_lead:share)", "{{job_name}} rank {{rank}} on {{instance}}",
          COLLECTIVES),
    Panel("Jobs without steps", "table", "short", "min by (job_name) (zernel_job_stuck)", "{{job_name}}"),
    Panel("Nodes where the scheduler is refused", "table", "short", "max by (instance, reason) (zernel_scheduler_refused)",
          "{{instance}}: {{reason}}", "unless a CPU limit forbids the scheduler"),
    Panel("Nodes with the scheduler", "stat", "short", "sum(zernel_scheduler_attached)", "nodes"),
    Panel("Nodes, by version", "stat", "short", "count by (version) (zernel_build_info)", "{{version}}"),
    Panel("GPUs, by model", "bargauge", "short", "count by (model) (zernel_gpu_info)", "{{model}}", DRIVER),
))

JOB_BOARD = Board("job", "Zernel: job", "job_name", (
    Panel("Idle time of a step, by cause", "timeseries", "s",
          f"sum by (cause) (rate(zernel_gpu_idle_seconds_total{JOB}[5m])) / on () group_left () "
          f"sum(rate(zernel_steps_total{JOB}[5m]))", "{{cause}}"),
    Panel("GPU time, share by cause", "timeseries", "percentunit", f"job_name_cause:zernel_gpu_idle:share{JOB}",
          "{{cause}}"),
    Panel("Step time, median", "timeseries", "s", quantile(0.5, "zernel_step_seconds", "job_name", JOB), "p50"),
    Panel("Step time, p99", "timeseries", "s", quantile(0.99, "zernel_step_seconds", "job_name", JOB), "p99"),
    Panel("Steps per second, by rank", "timeseries", "short",
          f"sum by (rank, instance) (rate(zernel_steps_total{JOB}[5m]))", "rank {{rank}} on {{instance}}"),
    Panel("GPU busy, by rank", "timeseries", "percentunit",
          f"sum by (rank, instance) (rate(zernel_gpu_busy_seconds_total{JOB}[5m]))", "rank {{rank}} on {{instance}}"),
    Panel("GPU idle, by rank", "timeseries", "percentunit",
          f"sum by (rank, instance) (rate(zernel_gpu_idle_seconds_total{JOB}[5m]))", "rank {{rank}} on {{instance}}"),
    Panel("GPU not known to be idle or busy, by rank", "timeseries", "percentunit",
          f"sum by (rank, instance) (rate(zernel_gpu_open_seconds_total{JOB}[5m]))", "rank {{rank}} on {{instance}}"),
    Panel("Phases, mean of all ranks", "timeseries", "percentunit",
          f"avg by (phase) (job_name_rank_phase:zernel_phase:share{JOB})", "{{phase}}"),
    Panel("Launchers wait for a CPU, by rank", "timeseries", "percentunit",
          f"job_name_rank:zernel_launcher_runqueue:share{JOB}", "rank {{rank}} on {{instance}}"),
    Panel("Lead in collectives over the median rank", "timeseries", "percentunit",
          f"job_name_rank:zernel_collective_lead:share{JOB}", "rank {{rank}} on {{instance}}", COLLECTIVES),
    Panel("Collectives per second", "timeseries", "ops", f"sum by (op) (rate(zernel_collectives_total{JOB}[5m]))",
          "{{op}}", COLLECTIVES),
    Panel("Bytes in collectives per second", "timeseries", "Bps",
          f"sum by (op) (rate(zernel_collective_bytes_total{JOB}[5m]))", "{{op}}", COLLECTIVES),
    Panel("Duration of collectives, p99", "timeseries", "s", quantile(0.99, "zernel_collective_seconds", "op", JOB),
          "{{op}}", COLLECTIVES),
    Panel("Wait for data, p99", "timeseries", "s", quantile(0.99, "zernel_loader_wait_seconds", "job_name", JOB), "p99",
          "if the launcher never waits for data"),
    Panel("Wait for the GPU, p99", "timeseries", "s", quantile(0.99, "zernel_sync_wait_seconds", "job_name", JOB), "p99"),
    Panel("Launch calls, p99", "timeseries", "s", quantile(0.99, "zernel_gpu_launch_seconds", "job_name", JOB), "p99"),
    Panel("Nodes and cgroups", "table", "short", f"max by (instance, cgroup) (zernel_job_info{JOB})",
          "{{instance}}: {{cgroup}}"),
))

NODE_BOARD = Board("node", "Zernel: node", "instance", (
    Panel("GPU utilization", "timeseries", "percentunit", f"zernel_gpu_busy_ratio{NODE}", "GPU {{gpu}}", DRIVER),
    Panel("GPU memory in use", "timeseries", "bytes", f"zernel_gpu_device_memory_used_bytes{NODE}", "GPU {{gpu}}", DRIVER),
    Panel("GPUs", "table", "short", f"zernel_gpu_info{NODE}", "{{gpu}}: {{model}} {{uuid}}", DRIVER),
    Panel("GPUs idle, by job and cause", "timeseries", "short",
          f"sum by (job_name, cause) (rate(zernel_gpu_idle_seconds_total{NODE}[5m]))", "{{job_name}}: {{cause}}"),
    Panel("ML processes, by phase", "timeseries", "short", f"zernel_processes{NODE}", "{{phase}}"),
    Panel("Threads, by role", "timeseries", "short", f"zernel_threads{NODE}", "{{role}}"),
    Panel("Scheduler attached", "stat", "short", f"zernel_scheduler_attached{NODE}", "attached"),
    Panel("CPU time, by class", "timeseries", "short", f"rate(zernel_scheduler_run_seconds_total{NODE}[5m])", "{{class}}"),
    Panel("Run queue wait, p99", "timeseries", "s", quantile(0.99, "zernel_runqueue_wait_seconds", "class", NODE),
          "{{class}}", "while the scheduler is not attached"),
    Panel("Preemptions per second", "timeseries", "ops", f"rate(zernel_scheduler_preempted_total{NODE}[5m])", "{{class}}"),
    Panel("Records dropped per second", "timeseries", "ops", f"rate(zernel_dropped_total{NODE}[5m])", "{{reason}}",
          "if nothing was dropped"),
    Panel("CPU of zerneld", "timeseries", "percentunit", f"rate(zernel_daemon_cpu_seconds_total{NODE}[5m])", "zerneld"),
    Panel("CPU of BPF programs", "timeseries", "percentunit", f"rate(zernel_bpf_run_seconds_total{NODE}[5m])", "BPF"),
    Panel("Memory of zerneld", "timeseries", "bytes", f"zernel_daemon_resident_memory_bytes{NODE}", "zerneld"),
    Panel("Series left out", "stat", "short", f"zernel_series_left_out{NODE}", "series"),
))

BOARDS = (FLEET, JOB_BOARD, NODE_BOARD)
# Where the values of a variable come from.
VALUES = {"job_name": "label_values(zernel_job_info, job_name)", "instance": "label_values(zernel_build_info, instance)"}
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH, HEIGHT, COLUMNS = 12, 8, 2
# Kinds that show one value for each series, not a course of time.
INSTANT = ("table", "bargauge", "stat")


def panel_json(number, panel):
    is_instant = panel.kind in INSTANT
    return {
        "id": number + 1,
        "title": panel.title,
        "description": f"No data {panel.empty}." if panel.empty else "",
        "type": panel.kind,
        "datasource": DATASOURCE,
        "gridPos": {"x": number % COLUMNS * WIDTH, "y": number // COLUMNS * HEIGHT, "w": WIDTH, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [{
            "refId": "A", "datasource": DATASOURCE, "expr": panel.expr, "legendFormat": panel.legend,
            "instant": is_instant, "range": not is_instant, "format": "table" if panel.kind == "table" else "time_series",
        }],
    }


def variables(board):
    yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    if board.variable:
        yield {"name": board.variable, "label": board.variable, "type": "query", "datasource": DATASOURCE,
               "query": VALUES[board.variable], "refresh": 2, "sort": 1}


def board_json(board):
    return {
        "uid": f"zernel-{board.name}",
        "title": board.title,
        "tags": ["zernel"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": list(variables(board))},
        "panels": [panel_json(number, panel) for number, panel in enumerate(board.panels)],
    }


def files():
    """The name and the text of each file."""
    for board in BOARDS:
        yield f"zernel-{board.name}.json", json.dumps(board_json(board), indent=2) + "\n"


def query(panel, **values):
    """The expression as Grafana sends it, with the values of variables."""
    text = panel.expr.replace("$__range", values.pop("range", "1h"))
    for name, value in values.items():
        text = text.replace(f"${name}", value)
    return text


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1] / "packaging/grafana")
    for name, text in files():
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
