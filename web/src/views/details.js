// SPDX-License-Identifier: GPL-2.0-or-later
// Details of a job: who is responsible, how long steps take, memory, threads.

import { h } from "preact";
import { Columns } from "../charts/bars.js";
import { CAUSES, ROLES } from "../causes.js";
import { bytes, count, ns, percent } from "../format.js";
import { boundNs, merge, quantile } from "../hist.js";
import { Behind, Empty, Panel, Table } from "./parts.js";

const TITLES = Object.fromEntries(CAUSES.map(({ key, title }) => [key, title]));

// The tasks and disks that had what the job waited for, over all ranks.
export function Culprits({ answer }) {
	const sums = new Map();
	const processes = answer ? answer.processes : [];
	const total = processes.reduce((all, process) => all + process.busy_ns + process.idle_ns, 0);

	for (const { culprits } of processes)
		for (const { name, cause, ns: time } of culprits) {
			const key = JSON.stringify([name, cause]);

			sums.set(key, { name, cause, time: (sums.get(key)?.time ?? 0) + time });
		}
	const rows = [...sums.values()].sort((a, b) => b.time - a.time)
		.map(({ name, cause, time }) => [h("bdi", null, name), TITLES[cause], ns(time), percent(time, total)]);

	return h(Panel, { title: "Responsible", hint: "tasks that ran instead, and disks" }, rows.length
		? h(Table, { caption: "Responsible tasks and disks", columns: [["name"], ["while"], ["time", "num"], ["of time", "num"]], rows })
		: h(Empty, null, "No task and no disk is responsible in this time."));
}

export function Steps({ processes, job }) {
	const hist = merge([...processes.map((process) => process.hists.step), job?.gone.step]);
	const buckets = new Map(hist.buckets);
	const columns = [];

	for (let slot = hist.buckets[0]?.[0]; slot <= hist.buckets.at(-1)?.[0]; slot++)
		columns.push({ key: slot, label: `${ns(boundNs(slot - 1))} to ${ns(boundNs(slot))}`, value: buckets.get(slot) ?? 0 });
	return h(Panel, { title: "Steps", hint: "since the job started, all ranks" }, columns.length === 0
		? h(Empty, null, "No step of this job is known.")
		: [h("p", { class: "figures" }, [["p50", ns(quantile(hist, 0.5))], ["p99", ns(quantile(hist, 0.99))], ["mean", ns(hist.sum / hist.count)], ["max", ns(hist.max)], ["steps", count(hist.count)]]
			.map(([name, text]) => h("span", { key: name }, name, " ", h("b", null, text)))),
		h(Columns, { columns, label: `Histogram of ${hist.count} steps from ${ns(hist.min)} to ${ns(hist.max)}` }),
		h("p", { class: "ends" }, h("span", null, ns(boundNs(columns[0].key - 1))), h("span", null, ns(boundNs(columns.at(-1).key)))),
		h(Behind, { caption: "histogram of steps", columns: [["step time"], ["steps", "num"]], rows: () => columns.map(({ label, value }) => [label, value]) })]);
}

export function Memory({ processes }) {
	const rows = processes.flatMap((process) => process.memory.map((memory) => [
		process.nr_ranks ? `rank ${process.rank}` : `${process.comm} ${process.pid}`,
		memory.gpu ?? "unknown", bytes(memory.current_bytes), bytes(memory.peak_bytes), count(memory.allocs), count(memory.frees)]));

	return h(Panel, { title: "GPU memory" }, rows.length
		? h(Table, { caption: "GPU memory of each process", columns: [["process"], ["GPU", "num"], ["now", "num"], ["peak", "num"], ["allocations", "num"], ["frees", "num"]], rows })
		: h(Empty, null, "No allocation of this job is known."));
}

export function Threads({ snapshot, processes }) {
	const pids = new Set(processes.map((process) => process.pid));
	const names = new Map(processes.map((process) => [process.pid, process.nr_ranks ? `rank ${process.rank}` : process.comm]));
	const threads = snapshot.threads.filter((thread) => pids.has(thread.pid));
	const counts = Object.entries(ROLES).map(([role, word]) => [word, threads.filter((thread) => thread.role === role).length]).filter(([, nr]) => nr);

	return h(Panel, { title: "Threads and roles", hint: counts.map(([word, nr]) => `${nr} ${word}`).join(", ") }, threads.length
		? h(Behind, { caption: "threads", columns: [["thread"], ["name"], ["process"], ["role"]], rows: () => threads.map((thread) => [thread.tid, h("bdi", null, thread.comm), names.get(thread.pid), ROLES[thread.role]]) })
		: h(Empty, null, "No thread of this job is known."));
}
