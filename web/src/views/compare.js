// SPDX-License-Identifier: GPL-2.0-or-later
// Two times, two jobs or two exported recordings side by side.

import { h } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Bars, barTable } from "../charts/bars.js";
import { parts, sumOf } from "../causes.js";
import { isExport, loadHistory, now } from "../data.js";
import { change, count, dateTime, percent } from "../format.js";
import * as history from "../history.js";
import { blocks, busyOf, compare, stepOf } from "../interval.js";
import { adjust } from "../route.js";
import { state, useStore } from "../store.js";
import { Behind, Command, Empty, jobTitle, Legend, Panel, Table } from "./parts.js";

const DEFAULT_SECONDS = 300;

const two = (n) => String(n).padStart(2, "0");

function localTime(seconds) {
	const date = new Date(seconds * 1000);

	return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

const secondsOf = (text) => String(Math.floor(new Date(text).getTime() / 1000));

// The choice of one side; `side` is "a" or "b". Without a choice, B is the last 5 minutes and A those before.
function choiceOf(query, side, jobs) {
	const end = isExport() ? state.exported.until : now(), back = side === "a" ? DEFAULT_SECONDS : 0;

	return {
		job: query[side] ?? jobs[0]?.cgroup ?? "",
		since: Number(query[`${side}s`]) || Math.floor(end - back - DEFAULT_SECONDS),
		until: Number(query[`${side}u`]) || Math.floor(end - back),
	};
}

function Choice({ side, choice, jobs, onFile, file }) {
	const field = (name, key) => h("label", null, name, h("input", {
		type: "datetime-local", step: 1, value: localTime(choice[key === "s" ? "since" : "until"]), disabled: Boolean(file),
		onChange: (event) => event.currentTarget.value && adjust({ [side + key]: secondsOf(event.currentTarget.value) }),
	}));

	return h("fieldset", { class: "choice" }, h("legend", null, side.toUpperCase()),
		h("label", null, "Job", h("select", { value: choice.job, disabled: Boolean(file), onChange: (event) => adjust({ [side]: event.currentTarget.value }) },
			jobs.map((job) => h("option", { key: job.cgroup, value: job.cgroup }, `${jobTitle(job)} (${job.state})`)))),
		field("From", "s"), field("To", "u"),
		h("label", { class: "file" }, "or an exported recording", h("input", {
			type: "file", accept: ".html,text/html", onChange: (event) => onFile(event.currentTarget.files[0]),
		})));
}

// Reads the data of a file that `zernel export --html` wrote. The file is not parsed as a page: nothing of it runs.
async function readFile(file) {
	const [, text] = (await file.text()).match(/<script type="application\/json" id="zernel-data">([^]*?)<\/script>/);
	const data = JSON.parse(text);
	const kept = history.empty(null, Infinity);

	history.add(kept, data.history);
	return { title: file.name, ranks: history.sorted(kept), step: kept.step, from: data.since_ms / 1000, to: data.until_ms / 1000 };
}

async function readServer(choice, jobs) {
	const job = jobs.find((each) => each.cgroup === choice.job);
	const range = { since: String(choice.since), until: String(choice.until) };
	const kept = isExport() ? state.history : await loadHistory(null, choice.job, range);
	const ranks = history.sorted(kept).filter((rank) => rank.job === choice.job);

	return { title: job ? jobTitle(job) : choice.job, ranks, step: kept.step, from: choice.since, to: choice.until };
}

function useSide(choice, file, jobs) {
	const [side, setSide] = useState({});

	useEffect(() => {
		let current = true;

		(file ? readFile(file) : readServer(choice, jobs))
			.then((loaded) => current && setSide(loaded))
			.catch((error) => current && setSide({ error: file ? "This file is not an export of zernel." : error.message }));
		return () => { current = false; };
	}, [file, choice.job, choice.since, choice.until, jobs.length]);
	return side;
}

function measured({ ranks, step, from, to }) {
	const total = history.totalOf(ranks);
	const first = Math.floor(from / step), last = Math.ceil(to / step), slots = [];

	for (let slot = first; slot < last; slot++) {
		const one = history.sum(total, slot, slot + 1);

		if (one.span)
			slots.push(one);
	}
	return { all: history.sum(total, first, last), blocks: blocks(slots) };
}

const intervalText = (interval, text) => (interval ? `${text(interval.low)} to ${text(interval.high)}` : "not enough data");

const points = (value) => change(value).replace(" %", " points");

function Result({ a, b }) {
	const left = measured(a), right = measured(b);
	const step = compare(left.blocks, right.blocks, stepOf, true), busy = compare(left.blocks, right.blocks, busyOf, false);
	const ms = ({ all }, time) => (all.steps ? (time / all.steps).toFixed(2) : "-");
	const rows = [
		["step time, ms", ms(left, left.all.stepTime), ms(right, right.all.stepTime), step ? change(step.value) : "-", intervalText(step, change)],
		["GPU certainly busy", percent(left.all.busy, left.all.span), percent(right.all.busy, right.all.span), busy ? points(busy.value) : "-", intervalText(busy, points)],
		["steps", count(left.all.steps), count(right.all.steps), "", ""],
		...parts(true).filter((part) => sumOf(left.all.causes, part.of) + sumOf(right.all.causes, part.of) > 0)
			.map((part) => [`${part.title}, ms per step`, ms(left, sumOf(left.all.causes, part.of)), ms(right, sumOf(right.all.causes, part.of)), "", ""]),
	];
	const bars = [["A", a, left], ["B", b, right]].map(([key, side, one]) => ({ key, name: `${key}  ${side.title}`, account: one.all }));

	return h("div", null,
		h(Bars, { rows: bars, expanded: false }),
		h(Legend, { items: [{ color: "busy", letter: "B", title: "busy" }, ...parts(false), { color: "open", letter: "?", title: "unknown" }] }),
		h(Behind, { caption: "GPU time of A and B", ...barTable(bars, true) }),
		h(Table, { caption: "A and B", className: "wide-name", columns: [[""], ["A", "num"], ["B", "num"], ["change", "num"], ["95 % interval", "num"]], rows }),
		step && h("p", { class: "verdict" }, step.isSure ? "The interval of the step time does not contain 0: the times differ." : "The interval of the step time contains 0: no difference is shown."),
		h("p", { class: "hint" }, "Other things may have changed between A and B. An experiment that alternates tells causes apart:"),
		h(Command, { text: "zernel ab --help" }));
}

export function Compare() {
	const { route, jobs } = useStore();
	const [files, setFiles] = useState({});
	const list = jobs?.jobs ?? [];
	// The times of a view without a choice stay as they were when it was opened.
	const [start] = useState(() => ({ a: choiceOf({}, "a", list), b: choiceOf({}, "b", list) }));
	const choose = (side) => ({ ...start[side], ...Object.fromEntries(Object.entries(choiceOf(route.query, side, list)).filter(([key]) => key === "job" || route.query[side + key[0]])) });
	const choices = { a: choose("a"), b: choose("b") };
	const a = useSide(choices.a, files.a, list), b = useSide(choices.b, files.b, list);
	const problem = a.error ?? b.error ?? (a.ranks && b.ranks && !(a.ranks.length && b.ranks.length) ? "There is no history for one of these times." : undefined);

	return h("div", { class: "page" }, h("h1", null, "Compare"),
		h("div", { class: "pair" }, ["a", "b"].map((side) => h(Choice, {
			key: side, side, choice: choices[side], jobs: list, file: files[side], onFile: (file) => setFiles({ ...files, [side]: file }),
		}))),
		h(Panel, { title: "A and B", hint: a.from && b.from ? `A ${dateTime(a.from * 1000)}, B ${dateTime(b.from * 1000)}` : undefined },
			problem ? h(Empty, null, problem) : a.ranks && b.ranks ? h(Result, { a, b }) : h(Empty, null, "Loading.")));
}
