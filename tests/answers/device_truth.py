# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the lab's truth of a device: when it was idle, and what the thread that launched next did in that time.

A job of lab/framework logs what each thread did. A job of lab/train logs the phases in which it has no work for its device
instead. Outside of them it only launches and waits for its device: if the device is idle then, the launcher has no CPU.
"""
import bisect
import collections

import idle_truth

# lab/truth/truth.h
KIND_BUSY, KIND_DID = 7, 15
DID_COMPUTE, DID_DEVICE, DID_DATA, DID_REQUEST, DID_PEER = range(5)
CAUSES = (*idle_truth.CAUSES, "no_requests")


class Truth(idle_truth.Truth):
    """The truth of one job, with the work of its devices."""

    def __init__(self, folder):
        self.works = collections.defaultdict(list)  # pid -> (start, end, device, sequence) of all work
        self.launches = collections.defaultdict(dict)  # pid -> (device, sequence) -> (start, thread)
        self.did = collections.defaultdict(lambda: collections.defaultdict(list))  # pid -> thread -> spans
        super().__init__(folder)
        for threads in self.did.values():
            for spans in threads.values():
                spans.sort()
        for works in self.works.values():
            works.sort()

    def add(self, pid, record, launchers):
        start, end, a, b, c, tid, sub, kind = record
        if kind == KIND_BUSY:
            self.works[pid].append((start, end, a, c))
        elif kind == KIND_DID:
            self.did[pid][tid].append((start, end, sub, a, b, c))
        else:
            if kind == idle_truth.KIND_LAUNCH:
                self.launches[pid][a, c] = (start, tid)
            super().add(pid, record, launchers)

    def first_launch_ns(self, pid):
        return min(start for start, _ in self.launches[pid].values())

    def idle_spans(self, pid, begin, finish):
        """Yields (start, end, thread that launched next) of the time in which no work of the process ran."""
        until = begin
        for start, end, device, sequence in self.works[pid]:
            if end <= begin:
                continue
            _, thread = self.launches[pid].get((device, sequence), (0, pid))
            if start > until:
                yield until, min(start, finish), thread
            until = max(until, end)
            if until >= finish:
                return
        yield until, finish, pid

    def idle_causes(self, pid, begin, finish):
        """Idle time by cause from `begin` to `finish`. The causes add up to the true idle time, except for rounding."""
        spans = list(self.idle_spans(pid, begin, finish))
        if pid not in self.did:
            causes = self.idle_ns(self.ranks[pid], begin, finish)
            causes["runqueue"] += max(0, sum(end - start for start, end, _ in spans) - sum(causes.values()))
            return causes
        causes = collections.Counter()
        for start, end, thread in spans:
            causes.update(self.causes_of(pid, thread, start, end))
        return causes

    def overlaps(self, pid, thread, start, end):
        """Yields (start, end, span) of what the thread did from `start` to `end`."""
        spans = self.did[pid][thread]
        for span in spans[max(0, bisect.bisect_right(spans, (start,)) - 1):]:
            if span[0] >= end:
                return
            if span[1] > start:
                yield max(start, span[0]), min(end, span[1]), span

    def causes_of(self, pid, thread, start, end):
        causes = collections.Counter()
        for begin, finish, span in self.overlaps(pid, thread, start, end):
            if span[2] == DID_PEER:
                # The thread only waited for its turn: the thread that had the turn is the cause.
                for other in self.did[pid]:
                    for part in self.overlaps(pid, other, begin, finish) if other != thread else ():
                        if part[2][2] != DID_PEER:
                            causes.update(self.parts(pid, *part))
            else:
                causes.update(self.parts(pid, begin, finish, span))
        return causes

    def parts(self, pid, start, end, span):
        """The causes of a part of one span. CPU time and delay are spread evenly over the span."""
        begin, finish, what, cpu, delay, subject = span
        length, share = end - start, (end - start) / (finish - begin)
        cpu, delay = cpu * share, delay * share
        slept = max(0, length - cpu - delay)
        if what == DID_REQUEST:
            return collections.Counter(no_requests=length)
        if what == DID_DATA:
            # The launcher is in the scope of its loader here: what it does itself counts as the loader.
            causes = self.loader_parts(self.ranks[pid], subject & idle_truth.BATCH_MASK, start, end, slept)
            causes.update(loader_cpu=cpu, loader_runqueue=delay)
            return causes
        return collections.Counter(cpu=cpu, runqueue=delay, other=slept)
