// SPDX-License-Identifier: GPL-2.0-or-later
// The code in which the GPU was idle: idle time of one process by line, and its call paths. zerneld reads stacks only while this
// panel shows a process.

import { h } from "preact";
import { CAUSES } from "../causes.js";
import { LINES_SECONDS } from "../data.js";
import { count } from "../format.js";
import { adjust } from "../route.js";
import { state } from "../store.js";
import { Behind, Empty, Meter, Panel, Table, unbroken } from "./parts.js";

// A box needs this share of the width for its text.
const LABEL_SHARE = 0.04;

// With less open time, points are no range: WHY_RANGE_PERMILLE in src/answers.
const RANGE_POINTS = 3;

const FAMILY_OF = new Map(CAUSES.map(({ key, family }) => [key, family]));
const TITLE_OF = new Map(CAUSES.map(({ key, title }) => [key, title]));

// The name of a frame or a cause, as lines_label() in src/answers.
function labelOf(node) {
	if (node.cause)
		return TITLE_OF.get(node.cause) ?? "unknown cause";
	if (node.kind === "cut" || node.kind === "unknown")
		return `[${node.kind}]`;
	if (node.kind === "call")
		return `${node.function} (library call)`;
	const file = node.file.split("/").at(-1);

	return `${node.function}${node.function.startsWith("<") ? "" : "()"}${file ? ` ${file}` : ""}${node.line ? `:${node.line}` : ""}`;
}

const Name = ({ node }) => h("bdi", { class: "where", title: node.file ? `${node.file}:${node.line ?? "?"}` : undefined }, labelOf(node));

function Places({ places, whole }) {
	const rows = places.map((place) => [h(Name, { node: place }), h(Meter, { value: 100 * place.points / (whole || 1), label: `${place.points.toFixed(1)} points`, color: "launcher" }),
		place.points.toFixed(1), count(place.samples)]);

	return h(Table, { caption: "Idle time by source line", columns: [["line"], ["share"], ["points", "num"], ["samples", "num"]], rows, className: "places" });
}

// One box for each call, as wide as its time, below its caller.
function Box({ node, whole, color }) {
	const own = node.cause ? FAMILY_OF.get(node.cause) ?? "unknown" : color;
	const rest = node.points - node.children.reduce((sum, child) => sum + child.points, 0);

	return h("div", { class: "flame-box", style: { flexGrow: String(node.points) } },
		h("span", { class: `c-${own}`, title: `${labelOf(node)}: ${node.points.toFixed(1)} points` }, node.points / whole >= LABEL_SHARE ? labelOf(node) : ""),
		node.children.length > 0 && h("div", { class: "flame-row" }, node.children.map((child, i) => h(Box, { key: i, node: child, whole, color: own })),
			rest > 0 && h("div", { class: "flame-box", style: { flexGrow: String(rest) } })));
}

function Flame({ tree, label }) {
	const whole = tree.reduce((sum, node) => sum + node.points, 0);

	return h("div", { class: "flame", tabindex: 0, role: "region", "aria-label": "Call paths" },
		h("div", { class: "flame-row", role: "img", "aria-label": label }, tree.map((node, i) => h(Box, { key: i, node, whole }))));
}

// The same as rows: each call below its caller.
function pathRows(nodes, depth = 0) {
	return nodes.flatMap((node) => [
		[h("span", { style: { paddingLeft: `${Math.min(depth, 40)}em` } }, h(Name, { node })), node.points.toFixed(1), count(node.samples)],
		...pathRows(node.children, depth + 1)]);
}

// What the figures do not contain.
function notes({ open_points, missed_points, unreadable, dropped }) {
	return [
		open_points > RANGE_POINTS && `The GPU may have worked for ${open_points.toFixed(1)} points of this time: all points are upper bounds.`,
		missed_points >= 0.5 && `No stack was sampled in ${missed_points.toFixed(1)} points.`,
		unreadable > 0 && `Stacks that cannot be read: ${count(unreadable)} samples.`,
		dropped > 0 && `Dropped, because there were too many stacks: ${count(dropped)} samples.`,
	].filter(Boolean);
}

function Answer({ answer }) {
	return [
		h("p", { class: "lines-answer" }, unbroken(answer.answer)),
		answer.places.length > 0 && h(Places, { places: answer.places, whole: answer.idle_points }),
		answer.tree.length > 0 && h(Flame, { tree: answer.tree, label: `Call paths: ${answer.answer}` }),
		answer.tree.length > 0 && h(Behind, { caption: "call paths", columns: [["call"], ["points", "num"], ["samples", "num"]], rows: () => pathRows(answer.tree) }),
		h("ul", { class: "hint" }, notes(answer).map((text) => h("li", { key: text }, text))),
	];
}

function content(pid) {
	if (!pid)
		return h(Empty, null, "Choose a process. zerneld reads its stacks only while this panel shows them.");
	if (state.linesError)
		return h(Empty, null, state.linesError);
	return state.lines?.pid === pid && state.lines.answer ? h(Answer, state.lines) : h(Empty, null, `Sampling. The first answer takes ${LINES_SECONDS} s.`);
}

// `processes` are those that launch work.
export function Lines({ processes, nameOf, query }) {
	const choose = h("label", null, "Process ", h("select", {
		value: query.lines ?? "", onChange: (event) => adjust({ lines: event.currentTarget.value }),
	}, h("option", { value: "" }, "none"), processes.map((process) => h("option", { key: process.pid, value: String(process.pid) }, nameOf(process)))));

	return h(Panel, { title: "Idle time by source line", hint: `points: percent of the last ${LINES_SECONDS} s`, actions: h("div", { class: "tools" }, choose), className: "lines" },
		content(Number(query.lines) || 0));
}
