// SPDX-License-Identifier: GPL-2.0-or-later
// The jobs, their processes and threads, with the columns and keys of `zernel top`.

import { h } from "preact";
import { causeWord, PHASES, PHASE_KEYS, ROLES } from "../causes.js";
import { bytes, ns, percent, rate } from "../format.js";
import { between, merge, quantile } from "../hist.js";
import { adjust, format } from "../route.js";
import { inOlder, isRank, keyOf, state } from "../store.js";
import { Empty, jobTitle, Panel } from "./parts.js";

// A wider range of the idle share is shown as a range.
const RANGE_POINTS = 3;
const STRIP_LENGTH = 40;
const BASES = { sync: "s", iteration: "i", optimizer: "o" };

// Values of one process: from the answer of `why`, and differences of snapshots.
function processValues(process, answer) {
	const seconds = answer ? answer.wall_ns / 1e9 : 0;
	const before = inOlder(process);
	const wait = between(before?.hists.runqueue_wait, process.hists.runqueue_wait);

	return {
		rank: process.nr_ranks ? process.rank : undefined,
		phase: process.phase,
		watched: answer ? answer.busy_ns + answer.idle_ns : 0,
		idle: answer?.idle_ns ?? 0,
		idleMin: answer?.idle_min_ns ?? 0,
		idleMax: answer?.idle_max_ns ?? 0,
		cause: answer?.disagrees ? "?" : answer?.cause,
		causes: answer?.causes ?? {},
		step: answer?.steps.mean_ns,
		basis: BASES[process.step_basis] ?? "",
		steps: seconds ? answer.steps.count / seconds : undefined,
		wait,
		memory: process.memory.reduce((sum, each) => sum + each.current_bytes, 0),
	};
}

const mean = (values) => (values.length ? values.reduce((a, b) => a + b, 0) / values.length : undefined);

function jobValues(ranks) {
	const sum = (key) => ranks.reduce((all, { values }) => all + values[key], 0);
	const known = (key) => ranks.map(({ values }) => values[key]).filter((value) => value);
	const causes = {};
	const bases = new Set(ranks.filter(({ values }) => values.step).map(({ values }) => values.basis));

	for (const { values } of ranks)
		for (const [cause, ns_] of Object.entries(values.causes))
			causes[cause] = (causes[cause] ?? 0) + ns_;
	const [largest] = Object.entries(causes).sort((a, b) => b[1] - a[1]);

	return {
		watched: sum("watched"), idle: sum("idle"), idleMin: sum("idleMin"), idleMax: sum("idleMax"),
		cause: ranks.some(({ values }) => values.cause === "?") ? "?" : largest?.[1] ? largest[0] : undefined,
		step: mean(known("step")), steps: mean(known("steps")),
		basis: bases.size > 1 ? "*" : [...bases][0] ?? "",
		wait: merge(ranks.map(({ values }) => values.wait)), memory: sum("memory"),
	};
}

function idleText({ watched, idle, idleMin, idleMax }) {
	const share = (part) => Math.round((100 * part) / watched);

	if (!watched)
		return "-";
	return share(idleMax) - share(idleMin) > RANGE_POINTS ? `${share(idleMin)}–${share(idleMax)} %` : percent(idle, watched, 0);
}

const p99 = ({ wait }) => quantile(wait, 0.99);

// Title, text of a cell, value to sort by, help. Larger values come first where `down`.
const COLUMNS = [
	{ key: "name", title: "Job, process" },
	{ key: "rank", title: "Rank", num: true, text: (v) => v.rank ?? "", value: (v) => v.rank, help: "rank in a distributed job" },
	{ key: "phase", title: "Phase", text: (v) => PHASES[v.phase]?.word, value: (v) => v.phase, help: "current phase; role of a thread" },
	{ key: "idle", title: "Idle", num: true, down: true, text: idleText, value: (v) => (v.watched ? v.idle / v.watched : undefined), help: "share of time the GPU is idle" },
	{ key: "because", title: "Because", text: (v) => (v.cause ? causeWord(v.cause) : "-"), value: (v) => v.cause, help: "largest cause of idle time" },
	{ key: "step", title: "Step", num: true, down: true, text: (v) => (v.step ? `${ns(v.step)} ${v.basis}` : "-"), value: (v) => v.step, help: "step time; s sync, i iteration, o optimizer" },
	{ key: "rate", title: "Steps/s", num: true, down: true, text: (v) => (v.steps ? rate(v.steps) : "-"), value: (v) => v.steps, help: "steps per second" },
	{ key: "runq99", title: "Runq p99", num: true, down: true, text: (v) => ns(p99(v)), value: p99, help: "p99 of waits in a run queue" },
	{ key: "memory", title: "Memory", num: true, down: true, text: (v) => (v.memory ? bytes(v.memory) : "-"), value: (v) => v.memory, help: "GPU memory in use" },
];

export const columnHelp = COLUMNS.slice(1).map(({ title, help }) => [title, help]);

function compare(sort) {
	const column = COLUMNS.find(({ key }) => key === sort) ?? COLUMNS[0];
	const direction = column.down ? -1 : 1;
	const other = (a, b) => (a.values.rank ?? -1) - (b.values.rank ?? -1) || a.order - b.order;

	if (!column.value)
		return (a, b) => a.title.localeCompare(b.title, undefined, { numeric: true }) || other(a, b);
	return (a, b) => {
		const x = column.value(a.values), y = column.value(b.values);

		// Unknown values come last.
		if ((x === undefined) !== (y === undefined))
			return x === undefined ? 1 : -1;
		return direction * ((x > y) - (x < y)) || other(a, b);
	};
}

function strip(process) {
	const phases = state.strips?.get(`${process.pid}.${process.start_ns}`);

	return phases && h("span", { class: "strip", role: "img", "aria-label": `phases: ${phases.map((p) => PHASES[PHASE_KEYS[p]].letter).join("")}` },
		phases.slice(-STRIP_LENGTH).map((phase, i) => h("i", { key: i, class: `c-${PHASE_KEYS[phase]}` }, PHASES[PHASE_KEYS[phase]].letter)));
}

function matches(snapshot, process, filter) {
	const job = snapshot.jobs[process.job - 1];
	const texts = [String(process.pid), process.comm, job?.name, job && jobTitle(job),
		...snapshot.threads.filter((thread) => thread.pid === process.pid).map((thread) => thread.comm)];

	return texts.some((text) => text?.toLowerCase().includes(filter));
}

// The tree as rows. `open` decides whether a row shows what is below it.
function rowsOf(snapshot, why, query) {
	const filter = (query.filter ?? "").toLowerCase();
	const closed = new Set((query.closed ?? "").split(" ")), opened = new Set((query.open ?? "").split(" "));
	const answers = new Map((why?.jobs ?? []).flatMap((job) => job.processes).map((each) => [each.pid, each]));
	const order = compare(query.sort ?? "name");
	const wanted = (process) => !filter || matches(snapshot, process, filter);
	const nodeOf = (process, depth) => ({
		id: `p${process.pid}`, kind: "process", process, depth, order: process.pid,
		title: `${process.pid} ${process.gpu_evidence === "none" ? "unproven: " : ""}${process.comm}`,
		values: processValues(process, answers.get(process.pid)),
	});
	const rows = [];

	function addProcess(node) {
		const { process, depth } = node;
		const loaders = snapshot.processes.filter((each) => each.consumer_pid === process.pid && wanted(each));
		const threads = snapshot.threads.filter((thread) => thread.pid === process.pid);
		const open = query.threads === "1" ? !closed.has(node.id) : opened.has(node.id);

		rows.push({ ...node, has: loaders.length + threads.length > 0, open });
		if (!open)
			return;
		for (const thread of threads)
			rows.push({ id: `t${thread.tid}`, kind: "thread", thread, depth: depth + 1, title: `${thread.tid} ${thread.comm}` });
		for (const loader of loaders.map((each) => nodeOf(each, depth + 1)).sort(order))
			addProcess(loader);
	}

	const ranks = snapshot.processes.filter((process) => isRank(process) &&
		(wanted(process) || snapshot.processes.some((each) => each.consumer_pid === process.pid && wanted(each))));
	const jobs = snapshot.jobs.map((job, i) => {
		const nodes = ranks.filter((process) => process.job === i + 1).map((process) => nodeOf(process, 1));

		return { id: `j${job.cgroup}`, kind: "job", job, depth: 0, order: i, title: jobTitle(job), nodes, values: jobValues(nodes) };
	}).filter(({ nodes }) => nodes.length);

	for (const job of jobs.sort(order)) {
		const open = !closed.has(job.id);

		rows.push({ ...job, has: true, open });
		if (open)
			job.nodes.sort(order).forEach(addProcess);
	}
	ranks.filter((process) => !process.job).map((process) => nodeOf(process, 0)).sort(order).forEach(addProcess);
	return rows;
}

// What is open and closed is in the address, by the identity of the row.
function toggle(row, query) {
	const key = row.kind === "job" || query.threads === "1" ? "closed" : "open";
	const ids = new Set((query[key] ?? "").split(" ").filter(Boolean));

	ids.has(row.id) ? ids.delete(row.id) : ids.add(row.id);
	adjust({ [key]: [...ids].join(" ") });
}

function nameCell(row, snapshot, query) {
	const subject = row.kind === "job" ? keyOf(snapshot, row.nodes[0].process) : row.kind === "process" && keyOf(snapshot, row.process);

	return h("th", { scope: "row", class: `name d${row.depth} ${row.kind}` },
		row.has ? h("button", {
			type: "button", class: "twist", "data-row": row.id, "aria-expanded": String(row.open),
			"aria-label": `${row.open ? "Close" : "Open"} ${row.title}`, onClick: () => toggle(row, query),
		}, row.open ? "−" : "+") : h("span", { class: "twist" }),
		subject ? h("a", { href: format({ page: "job", subject }) }, row.title) : row.title);
}

function cells(row) {
	if (row.kind === "thread")
		return COLUMNS.slice(1).map(({ key }) => h("td", { key }, key === "phase" ? ROLES[row.thread.role] : ""));
	return COLUMNS.slice(1).map(({ key, text, num }) => h("td", { key, class: num ? "num" : key === "phase" && row.kind === "process" ? `phase p-${row.values.phase}` : undefined },
		key === "phase" && row.kind === "job" ? `${row.nodes.length} proc` : text(row.values)));
}

export function JobsTable({ snapshot, why, query }) {
	const rows = rowsOf(snapshot, why, query);
	const sort = query.sort ?? "name";
	const tools = h("div", { class: "tools" },
		h("label", null, h("span", { class: "sr" }, "Filter by name or process ID"),
			h("input", {
				id: "filter", type: "search", placeholder: "Filter  /", value: query.filter ?? "", spellcheck: false,
				onInput: (event) => adjust({ filter: event.currentTarget.value }),
			})),
		h("label", null, "Sort ", h("select", { id: "sort", value: sort, onChange: (event) => adjust({ sort: event.currentTarget.value }) },
			COLUMNS.map(({ key, title }) => h("option", { key, value: key }, title)))),
		h("button", {
			type: "button", "aria-pressed": String(query.threads === "1"),
			onClick: () => adjust({ threads: query.threads === "1" ? "" : "1", open: "", closed: "" }),
		}, "Threads"));

	return h(Panel, { title: "Jobs", hint: "idle time and steps: as the answers; waits: last 5 to 10 s", actions: tools },
		rows.length === 0 ? h(Empty, null, query.filter ? "No job matches the filter." : "No process uses a GPU runtime that Zernel probes.")
			: h("div", { class: "scroll", role: "region", "aria-label": "Jobs", tabindex: 0 },
				h("table", { class: "jobs" },
					h("thead", null, h("tr", null, COLUMNS.map(({ key, title, num, down, help }) => h("th", {
						key, scope: "col", class: num ? "num" : undefined,
						"aria-sort": key === sort ? (down ? "descending" : "ascending") : undefined,
					}, h("button", { type: "button", title: help, onClick: () => adjust({ sort: key }) }, title))),
					h("th", { scope: "col" }, "Phases"))),
					h("tbody", null, rows.map((row) => h("tr", { key: row.id, class: row.kind },
						nameCell(row, snapshot, query), cells(row),
						h("td", null, row.kind === "process" ? strip(row.process) : "")))))));
}
