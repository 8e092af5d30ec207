// SPDX-License-Identifier: GPL-2.0-or-later
// One job: its answer, the time of each rank and of each source line, its history, its steps, its memory and its threads.

import { h } from "preact";
import { useEffect } from "preact/hooks";
import { Bars, barTable } from "../charts/bars.js";
import { parts } from "../causes.js";
import { cgroupOf, endedOf, isExport, isZoomed, rangeOf, spanOf, watchEvents, windowOf } from "../data.js";
import { bytes, count, dateTime, ns, percent } from "../format.js";
import { label, sorted, sum, totalOf } from "../history.js";
import { adjust, format } from "../route.js";
import { isRank, processesOf, state, useStore, whyOf } from "../store.js";
import { Culprits, Memory, Steps, Threads } from "./details.js";
import { abCommand, Behind, Command, Empty, jobTitle, Legend, Panel, Stat, Stats, Still, unbroken } from "./parts.js";
import { Lines } from "./lines.js";
import { History } from "./timeline.js";

const WINDOWS = [[5, "5 s"], [30, "30 s"], [300, "5 min"], [900, "15 min"]];

export const rankName = (process) => (process.nr_ranks ? `rank ${process.rank}` : `${process.comm} ${process.pid}`);

const byRank = (a, b) => (a.nr_ranks ? a.rank : Infinity) - (b.nr_ranks ? b.rank : Infinity) || a.pid - b.pid;

// The rows of the bars: as the answer says, or, for a zoomed range, as the history says.
function barRows(answer, history, query) {
	if (isZoomed(query) && history) {
		const [from, to] = rangeOf(query).map((seconds) => Math.round(seconds / history.step));

		return sorted(history).map((rank) => ({ key: rank.id, name: label(rank), account: sum(rank, from, to), marked: rank.pid === answer?.straggler?.pid }));
	}
	return (answer ? answer.processes : []).toSorted(byRank).map((process) => ({
		key: process.pid, name: rankName(process), account: { busy: process.busy_ns, causes: process.causes },
		marked: process.pid === answer.straggler?.pid,
	}));
}

function Ranks({ answer, history, query, ended }) {
	const expanded = query.causes === "all";
	const rows = barRows(answer, history, query);
	const choose = !isExport() && !ended && h("label", null, "Time ", h("select", {
		value: String(windowOf(query)), onChange: (event) => adjust({ window: event.currentTarget.value, since: "", until: "" }),
	}, WINDOWS.map(([seconds, title]) => h("option", { key: seconds, value: String(seconds) }, title))));
	const actions = h("div", { class: "tools" }, choose,
		h("button", { type: "button", "aria-pressed": String(expanded), onClick: () => adjust({ causes: expanded ? "" : "all" }) }, "All causes"));

	return h(Panel, { title: "GPU time of each rank", hint: isZoomed(query) ? "of the chosen range" : ended ? "of the whole life of the job" : "of the time of the answer", actions },
		rows.length ? h(Bars, { key: `bars-${expanded}`, rows, expanded }) : h(Empty, null, "No rank has an answer for this time."),
		h(Legend, { items: [{ color: "busy", letter: "B", title: "busy" }, ...parts(expanded), ...(isZoomed(query) ? [{ color: "open", letter: "?", title: "unknown" }] : [])] }),
		h(Behind, { caption: "GPU time of each rank", ...barTable(rows, expanded) }));
}

function Answer({ answer }) {
	if (!answer)
		return h(Empty, null, state.whyError || "There is no answer for this job yet.");
	return h("div", { class: "answer flat" },
		h("p", { class: "sentence" }, unbroken(answer.answer)),
		answer.advice.length > 0 && h("ul", { class: "advice" }, answer.advice.map((text) => h("li", { key: text }, text))));
}

// The whole life of a job, from the list of jobs.
function Life({ job }) {
	const idle = Object.values(job.idle_ns).reduce((all, each) => all + each, 0);
	const end = job.ended_ms ?? state.snapshot.time_ms;

	return h(Stats, null,
		h(Stat, { label: "state", value: job.state, tone: job.ended_ms ? "muted" : "good" }),
		h(Stat, { label: "started", value: dateTime(job.started_ms) }),
		job.ended_ms && h(Stat, { label: "ended", value: dateTime(job.ended_ms) }),
		h(Stat, { label: "lasted", value: job.started_ms ? ns((end - job.started_ms) * 1e6) : "-" }),
		h(Stat, { label: "steps", value: count(job.steps) }),
		h(Stat, { label: "certainly idle", value: percent(idle, idle + job.busy_ns + job.open_ns) }),
		h(Stat, { label: "largest memory", value: job.peak_bytes ? bytes(job.peak_bytes) : "-", note: "of one process" }));
}

function names(job) {
	return [job.uid !== undefined && job.uid !== null && `user ${job.uid}`, job.container_name && `container ${job.container_name}`,
		job.claimed_account && `account ${job.claimed_account}`, job.claimed_array && `array ${job.claimed_array}`, job.cgroup].filter(Boolean).join(" · ");
}

// The part of the history that belongs to this job. The server sends only this part if the job has a cgroup.
function ownHistory(history, cgroup, processes) {
	const all = history ? [...history.ranks] : [];
	const own = all.filter(([, rank]) => (cgroup ? rank.job === cgroup : processes.some(({ pid }) => pid === rank.pid)));

	if (!history || own.length === all.length)
		return history;
	return { ...history, ranks: new Map(own), total: totalOf(own.map(([, rank]) => rank)) };
}

function List() {
	const { jobs } = state;

	return h("div", { class: "page" }, h("h1", null, "Jobs"),
		h(Panel, { title: "Choose a job" }, jobs?.jobs.length
			? h("ul", { class: "list" }, jobs.jobs.map((job) => h("li", { key: job.cgroup + job.ended_ms },
				h("a", { href: format({ page: "job", subject: job.cgroup || job.name }) }, jobTitle(job)),
				h("span", { class: "hint" }, `${job.state}, ${count(job.steps)} steps, since ${dateTime(job.started_ms)}`))))
			: h(Empty, null, "No job has used a GPU since zerneld started.")));
}

export function Job() {
	const { snapshot, why, history, route, jobs } = useStore();
	const { subject, query } = route;
	const live = !isExport() && !isZoomed(query) && spanOf(query) === 60;

	useEffect(() => {
		watchEvents(Boolean(subject) && live);
		return () => watchEvents(false);
	}, [subject, live]);
	const cgroup = cgroupOf(subject);
	const all = processesOf(snapshot, subject);
	const processes = all.length ? all : snapshot.processes.filter((process) => snapshot.jobs[process.job - 1]?.cgroup === cgroup);
	const ranks = processes.filter(isRank);
	const job = jobs?.jobs.find((each) => (cgroup ? each.cgroup === cgroup : each.name === subject));
	const ended = endedOf(subject);
	const answer = ended ? state.life?.cgroup === ended.cgroup && state.life.why.jobs[0] : whyOf(why, processes);
	const title = job ? jobTitle(job) : processes[0] ? `${processes[0].comm} (${processes[0].pid})` : subject;
	const own = ownHistory(history, cgroup, processes);
	const still = (inputs, draw) => h(Still, { inputs, draw });
	const onSnapshot = (draw) => still([snapshot, subject, cgroup], draw);

	if (!subject)
		return h(List);
	if (!job && !processes.length)
		return h("div", { class: "page" }, h("h1", null, subject), h(Empty, null, "This job is not known. It may have ended before zerneld started."));
	return h("div", { class: "page" },
		h("h1", null, title), job && h("p", { class: "hint names" }, names(job)),
		h(Answer, { answer }),
		job && h(Life, { job }),
		still([answer, ended, query, isZoomed(query) && history?.until], () => h(Ranks, { answer, history: own, query, ended })),
		!ended && !isExport() && still([state.lines, state.linesError, query.lines, ranks.map(({ pid }) => pid).join()],
			() => h(Lines, { processes: ranks, nameOf: rankName, query })),
		h(History, { history: own, answer, query }),
		h("div", { class: "pair" }, still([answer], () => h(Culprits, { answer })),
			onSnapshot(() => h(Steps, { processes, job: snapshot.jobs.find((each) => each.cgroup === cgroup) }))),
		h("div", { class: "pair" }, onSnapshot(() => h(Memory, { processes: ranks })),
			onSnapshot(() => h(Threads, { snapshot, processes }))),
		processes.length > 0 && h(Panel, { title: "Is the scheduler worth it for this job?" }, h(Command, { text: abCommand(subject, processes) })));
}
