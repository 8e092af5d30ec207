// SPDX-License-Identifier: GPL-2.0-or-later
// What happens now: the answer for each job, the GPUs, the jobs as in `zernel top`, and what Zernel does.

import { h } from "preact";
import { Bar } from "../charts/bars.js";
import { parts } from "../causes.js";
import { bytes, count, percent, rate } from "../format.js";
import { format } from "../route.js";
import { dropped, keyOf, nodeRates, processesOf, useStore } from "../store.js";
import { JobsTable } from "./table.js";
import { Empty, jobTitle, Legend, Meter, Panel, Stat, Stats, unbroken } from "./parts.js";

// The sum of the accounts of the processes of an answer.
export function accountOf(processes) {
	const causes = {};
	let busy = 0;

	for (const process of processes) {
		busy += process.busy_ns;
		for (const [cause, ns] of Object.entries(process.causes))
			causes[cause] = (causes[cause] ?? 0) + ns;
	}
	return { busy, causes };
}

function Answer({ answer, href, title }) {
	return h("article", { class: "answer" },
		h("h2", null, href ? h("a", { href }, title) : title),
		h("p", { class: "sentence" }, unbroken(answer.answer)),
		h(Bar, { account: accountOf(answer.processes), label: `GPU time of ${title}` }),
		answer.advice.length > 0 && h("ul", { class: "advice" }, answer.advice.map((text) => h("li", { key: text }, text))));
}

function Answers({ why, snapshot, error }) {
	const titleOf = (answer) => (answer.name ? jobTitle(answer) : `${answer.processes[0].comm} (${answer.processes[0].pid})`);
	const keyFor = (answer) => {
		const process = snapshot.processes.find((each) => each.pid === answer.subject);

		return process && keyOf(snapshot, process);
	};

	if (!why)
		return h(Empty, null, error || "Zernel watches the GPUs for the first answer.");
	if (!why.jobs.length)
		return h(Empty, null, "No process has used its GPU in this time.");
	return h("div", { class: "answers" }, why.jobs.map((answer) => {
		const key = keyFor(answer);

		return h(Answer, {
			key: answer.cgroup ?? answer.subject, answer, title: titleOf(answer),
			href: key && format({ page: "job", subject: key }),
		});
	}));
}

function GpuCard({ gpu, snapshot }) {
	const users = snapshot.processes.filter((process) => process.task?.gpu_id === gpu.gpu);
	const total = gpu.memory_total_bytes, used = gpu.memory_used_bytes;

	return h("article", { class: "gpu" },
		h("header", null, h("h3", null, `GPU ${gpu.gpu}`), h("span", { class: "hint" }, gpu.model)),
		h("p", { class: "big" }, gpu.busy_percent === undefined ? "-" : gpu.busy_percent,
			h("small", null, gpu.busy_percent === undefined ? " busy: not reported" : " % busy")),
		h(Meter, { value: gpu.busy_percent ?? 0, color: "busy", label: `GPU ${gpu.gpu} busy ${gpu.busy_percent ?? "unknown"} %` }),
		h("p", { class: "row" }, h("span", null, "memory"),
			h("span", { class: "num" }, used === undefined ? "-" : total ? `${bytes(used)} / ${bytes(total)}` : bytes(used))),
		total > 0 && h(Meter, { value: (100 * used) / total, color: "data", label: `memory ${percent(used, total, 0)}` }),
		h("ul", { class: "chips" }, users.slice(0, 6).map((process) => h("li", { key: process.pid },
			h("a", { href: format({ page: "job", subject: keyOf(snapshot, process) }) },
				process.nr_ranks ? `rank ${process.rank}` : process.comm, " ", h("small", null, process.pid)))),
		users.length > 6 && h("li", null, `and ${users.length - 6} more`)));
}

function Zernel({ snapshot }) {
	const rates = nodeRates();
	const { scheduler, cost } = snapshot;
	const lost = dropped(snapshot).reduce((sum, [, nr]) => sum + nr, 0);

	return h(Stats, null,
		h(Stat, { label: "acts with", value: scheduler.actuator, note: `scheduler ${scheduler.state}` }),
		h(Stat, { label: "promotions", value: `${rate(rates.promoted)} /s` }),
		scheduler.actuator === "nice" &&
			h(Stat, { label: "nice threads", value: count(scheduler.nice_threads), note: `${rate(rates.niceChanges)} changes/s` }),
		!snapshot.own && h(Stat, { label: "own CPU", value: percent(rates.cpu, 1e9), note: "of one CPU" }),
		!snapshot.own && h(Stat, { label: "BPF programs", value: percent(rates.bpf, 1e9), note: "of one CPU" }),
		!snapshot.own && h(Stat, { label: "own memory", value: bytes(cost.rss_bytes) }),
		h(Stat, { label: "dropped", value: count(lost), tone: lost ? "warn" : "", note: lost ? "see Health" : undefined }));
}

export function Now() {
	const { snapshot, why, whyError, route } = useStore();

	return h("div", { class: "page" },
		h("h1", { class: "sr" }, "Now"),
		h(Answers, { why, snapshot, error: whyError }),
		h(Legend, { items: [{ color: "busy", letter: "B", title: "busy" }, ...parts(false)] }),
		h(Panel, { title: "GPUs" }, snapshot.gpus.length
			? h("div", { class: "gpus" }, snapshot.gpus.map((gpu) => h(GpuCard, { key: gpu.gpu, gpu, snapshot })))
			: h(Empty, null, "No GPU reports its state. Jobs are watched nevertheless.")),
		h(JobsTable, { snapshot, why, query: route.query }),
		h(Panel, { title: "Zernel" }, h(Zernel, { snapshot })));
}
