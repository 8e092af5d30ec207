# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares idle time by source line with what a Python job knows itself: each share must be within 5 points.

Each run starts the job with other times, beside a zerneld that only watches, in a guest in virtual time. Every second run has a
deeper recursion, and two of four the Python of forky, if its tree exists. At the end, a second job fills its share of the tables,
which must cost the first job nothing. The output is TAP.
"""
import concurrent.futures
import contextlib
import json
import pathlib
import subprocess
import sys
import time

import guest

BOOT_SECONDS, RUN_SECONDS = 1200, 600  # of the machine; virtual time is slow there
WATCH_SECONDS = 10
POINTS = 5
UNREADABLE_MAX = 0.01
FRAMES_MAX = 128
DEPTHS = (60, 200)  # the second one is cut
DEVICES = (("VGPU_DEVICES", "1"),)
JOB = "lab/framework/lines_job.py"
FLOOD = "lab/framework/flood_job.py"
SHARE_SECONDS = 5
STACKS_MAX = 512  # of one process
FORKY = pathlib.Path("/forky/.complete")
PROGRAMS = "lines_tick", "lines_switch"
DECODED_MIN = 90  # percent of the loader's time in the line that works
INSIDE_MIN = 20  # percent of the time of pin() inside calls of the runtime
NAME_MAX = 127  # of a kernel; longer ones are cut
RUNTIME_KERNELS = {None, "busy"}  # the runtime may have looked its kernel up before zerneld found the library
CALLS = {"cudaMallocHost", "cudaFreeHost", "cuMemAllocHost_v2", "cuMemFreeHost"}


@contextlib.contextmanager
def running(*command):
    with subprocess.Popen([*command, "--vgpu", f"{guest.BUILD}/lab/vgpu"]) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def job(seed, truth):
    python = ["tools/in-forky", "python3"] if seed % 4 > 1 and FORKY.exists() else [sys.executable]
    return running(*python, JOB, "--truth", truth, "--seed", str(seed), "--depth", str(DEPTHS[seed % len(DEPTHS)]))


def read(truth):
    return json.loads(truth.read_text())


def spent(before, after):
    """Shares of the time between two truths, in percent, by function and line."""
    seconds = {(name, line): seconds - old for (name, line, seconds), (_, _, old) in zip(after["lines"], before["lines"])}
    total = sum(seconds.values())
    return {line: 100 * value / total for line, value in seconds.items()}


def sampled(answer, lines):
    """The same from the stacks of the launcher. The innermost frame that the truth knows counts."""
    frames = [(frame["function"], frame["line"]) for frame in answer["frames"]]
    ns = dict.fromkeys([*lines, None], 0)
    for stack in answer["stacks"]:
        if stack["role"] == "launcher":
            known = [frames[i] for i in stack["frames"] if frames[i] in lines]
            ns[known[-1] if known else None] += stack["ns"]
    total = sum(ns.values())
    return {line: 100 * value / total for line, value in ns.items()} if total else {}


def check(tap, where, answer, truth):
    found = sampled(answer, truth)
    for (name, line), share in truth.items():
        got = found.get((name, line), 0)
        tap.check(abs(got - share) <= POINTS, f"{where}: {name}:{line} {share:.1f} % in truth, {got:.1f} % sampled")
    print(f"# {where}: other lines {found.get(None, 0):.1f} %, samples {answer['samples']}, dropped {answer['dropped']}, "
          f"unreadable {answer['unreadable']}, idle {100 * answer['idle_ns'] / answer['window_ns']:.1f} %, "
          f"stacks {len(answer['stacks'])}", flush=True)
    # A stack that cannot be read has one frame without a name.
    unknown = {i for i, frame in enumerate(answer["frames"]) if frame["kind"] == "unknown"}
    partly = [stack for stack in answer["stacks"] if len(stack["frames"]) > 1 and unknown & set(stack["frames"])]
    for stack in partly:
        print(f"# {where}: a name is missing: {[answer['frames'][i]['function'] for i in stack['frames']]}", flush=True)
    unread = answer["unreadable"] + sum(stack["samples"] for stack in partly)
    tap.check(answer["dropped"] == 0 and unread <= answer["samples"] * UNREADABLE_MAX,
              f"{where}: nothing was dropped; {unread} of {answer['samples']} stacks were not readable, or not completely")


def functions(code):
    """All functions and lines of a code object, as the interpreter knows them; 0 where an instruction has no line."""
    yield from ((code.co_qualname, line or 0) for _, _, line in code.co_lines())
    for constant in code.co_consts:
        if hasattr(constant, "co_lines"):
            yield from functions(constant)


def check_names(tap, where, answer):
    """Each line of the job must belong to the function that is named with it."""
    known = set(functions(compile(pathlib.Path(JOB).read_text(encoding="utf-8"), JOB, "exec")))
    own = [(frame["function"], frame["line"]) for frame in answer["frames"] if frame["file"].endswith(JOB)]
    wrong = [frame for frame in own if frame not in known]
    tap.check(own and not wrong, f"{where}: {len(own)} frames of the job are lines of their function, except {wrong}")


def check_loader(tap, where, answer, share):
    """The loader decodes while the launcher waits for it."""
    frames = [frame["function"] for frame in answer["frames"]]
    stacks = [stack for stack in answer["stacks"] if stack["role"] == "loader"]
    total = sum(stack["ns"] for stack in answer["stacks"] if stack["role"] == "launcher")
    loaded = sum(stack["ns"] for stack in stacks)
    decoded = sum(stack["ns"] for stack in stacks if "decode" in {frames[i] for i in stack["frames"]})
    tap.check(total and abs(100 * loaded / total - share) <= POINTS and 100 * decoded >= DECODED_MIN * loaded,
              f"{where}: the launcher waits {share:.1f} %, the loader has {100 * loaded / max(total, 1):.1f} %, "
              f"{100 * decoded / max(loaded, 1):.1f} % of it in decode()")


def check_calls(tap, where, answer):
    """Calls of the runtime are the innermost frames of pin(), and of nothing else that spends time."""
    frames = answer["frames"]
    inside, wrong, total = 0, set(), 0
    for stack in answer["stacks"]:
        is_pin = "pin" in {frames[i]["function"] for i in stack["frames"]}
        calls = {frames[i]["function"] for i in stack["frames"] if frames[i]["kind"] == "call"}
        total += stack["ns"] if is_pin else 0
        inside += stack["ns"] if is_pin and calls else 0
        if calls and not (is_pin and calls <= CALLS and frames[stack["frames"][-1]]["kind"] == "call"):
            wrong |= {(frames[stack["frames"][-2]]["function"], *calls)}
    burnt = {function for function, *_ in wrong} & {"burn", "decode", "checkpoint"}
    tap.check(total and 100 * inside >= INSIDE_MIN * total and not burnt,
              f"{where}: {100 * inside / max(total, 1):.1f} % of the time of pin() is in calls, other calls: {sorted(wrong)}")


def check_kernels(tap, where, answer, before, after):
    """The share of the time between each two kernels, of the time in lines that the truth has."""
    frames = [(frame["function"], frame["line"]) for frame in answer["frames"]]
    lines = {(name, line) for name, line, _ in after["lines"]}
    kernels = [(kernel["name"], kernel["cut"]) for kernel in answer["kernels"]]
    spent_s = [(first, second, new - old) for (first, second, new), (*_, old) in zip(after["between"], before["between"])]
    found = {}
    for stack in answer["stacks"]:
        if stack["role"] == "launcher" and any(frames[i] in lines for i in stack["frames"]):
            pair = tuple(kernels[stack[key]] if key in stack else (None, False) for key in ("after", "before"))
            found[pair] = found.get(pair, 0) + stack["ns"]
    total_s, total_ns = sum(seconds for *_, seconds in spent_s), max(sum(found.values()), 1)

    def is_named(kernel, true):
        name, cut = kernel
        return name in RUNTIME_KERNELS and not cut if true is None else (name, cut) == (true[:NAME_MAX], len(true) > NAME_MAX)

    for first, second, seconds in spent_s:
        ns = sum(value for (one, other), value in found.items() if is_named(one, first) and is_named(other, second))
        share, got = 100 * seconds / total_s, 100 * ns / total_ns
        tap.check(abs(got - share) <= POINTS, f"{where}: between {str(first)[:16]} and {str(second)[:16]}: {share:.1f} % in truth, "
                  f"{got:.1f} % sampled")
    known = [(name, False) for name in RUNTIME_KERNELS] + [(name[:NAME_MAX], len(name) > NAME_MAX)
                                                           for row in spent_s for name in row[:2] if name]
    wrong = {kernel for pair in found for kernel in pair if kernel not in known}
    unknown = sum(ns for pair, ns in found.items() if pair == ((None, False), (None, False)))
    tap.check(not wrong, f"{where}: no kernel has another name {wrong or ''}; without any kernel: {100 * unknown / total_ns:.1f} %")


def check_depth(tap, where, answer, depth):
    cut = [stack for stack in answer["stacks"] if stack["cut"]]
    deepest = max((len(stack["frames"]) for stack in answer["stacks"]), default=0)
    is_right = deepest == FRAMES_MAX if depth > FRAMES_MAX else depth < deepest < FRAMES_MAX
    tap.check(bool(cut) == (depth > FRAMES_MAX) and is_right,
              f"{where}: a recursion of {depth} has {deepest} frames, {len(cut)} stacks are cut")


def costs():
    """Run time and runs of the programs that sample, since they were loaded."""
    shown = json.loads(subprocess.run(["bpftool", "-j", "prog", "show"], capture_output=True, check=True).stdout)
    return {prog["name"]: (prog.get("run_time_ns", 0), prog.get("run_cnt", 0)) for prog in shown if prog.get("name") in PROGRAMS}


def print_cost(where, before, after, window_ns):
    """In virtual time, each instruction takes 4 ns, so this is no cost of a real machine."""
    for name in PROGRAMS:
        spent_ns, runs = (new - old for new, old in zip(after[name], before[name]))
        print(f"# {where}: {name}: {runs} runs of {spent_ns / max(runs, 1) / 1000:.1f} us, {100 * spent_ns / window_ns:.2f} % "
              "of the time", flush=True)


def ask(server, pid, seconds):
    with server.client() as client:
        return client.ask("lines", pid=pid, seconds=seconds)


def check_shares(lab, tap, server, where, pid):
    """Another process fills its share of the tables. The drops are its own, and so is the number of its samples."""
    with running(sys.executable, FLOOD) as other:
        assert other in lab.launchers(server, 2)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            replies = list(pool.map(lambda each: ask(server, each, SHARE_SECONDS)["result"]["lines"], (pid, other)))
    own, flood = ([len(reply["stacks"]), reply["samples"], reply["dropped"], reply["unreadable"]] for reply in replies)
    frames = replies[1]["frames"]
    # A sample whose stack was not kept may have the frame of the call that the thread was in.
    stacks = {tuple(i for i in stack["frames"] if frames[i]["kind"] != "call") for stack in replies[1]["stacks"]}
    kept = [stack for stack in stacks if len(stack) > 1]
    tap.check(own[1] and own[2] == 0 and own[3] <= own[1] * UNREADABLE_MAX,
              f"{where}: beside a job that fills its share: {own} stacks, samples, dropped, unreadable")
    tap.check(0 < flood[2] <= flood[1] and 0 < len(kept) <= STACKS_MAX, f"{where}: the other job has {flood}, {len(kept)} stacks were kept")


def run(lab, tap, server, seed):
    path = pathlib.Path("/dev/shm", f"lines-{seed}.json")  # the tree of forky sees it at the same place
    path.unlink(missing_ok=True)
    where = f"run {seed}"
    with job(seed, path) as pid:
        assert pid in lab.launchers(server)
        idle = costs()
        time.sleep(1)
        tap.check(costs() == idle, f"{where}: no program runs before a client asks")
        before = read(path)
        reply = ask(server, pid, WATCH_SECONDS)
        after, cost = read(path), costs()
        if seed == 0:
            check_shares(lab, tap, server, where, pid)
    tap.check("result" in reply, f"{where}: zerneld answers {reply.get('error', '')}")
    if "result" not in reply:
        print("# " + server.text().replace("\n", "\n# "), flush=True)
        return
    answer = reply["result"]["lines"]
    print(f"# {where}: Python {after['python']}, {after['steps'] - before['steps']} steps", flush=True)
    truth = spent(before, after)
    check(tap, where, answer, truth)
    check_names(tap, where, answer)
    check_loader(tap, where, answer, next(share for (name, _), share in truth.items() if name == "Loader.fetch"))
    check_calls(tap, where, answer)
    check_kernels(tap, where, answer, before, after)
    print_cost(where, idle, cost, answer["window_ns"])
    check_depth(tap, where, answer, DEPTHS[seed % len(DEPTHS)])


if __name__ == "__main__":
    if sys.argv[1:2] == ["guest"]:
        pathlib.Path("/proc/sys/kernel/bpf_stats_enabled").write_text("1")
    sys.exit(guest.main(sys.argv[1:], __file__, DEVICES, run, BOOT_SECONDS, RUN_SECONDS))
