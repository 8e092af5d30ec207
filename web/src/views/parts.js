// SPDX-License-Identifier: GPL-2.0-or-later
// Small parts that several pages share.

import { Component, h } from "preact";
import { useState } from "preact/hooks";
import { state, changed } from "../store.js";

// A table. `columns` are [title, "num" for numbers]; a row is a list of cells.
export function Table({ caption, columns, rows, className }) {
	return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
		h("table", { class: className },
			h("caption", { class: "sr" }, caption),
			h("thead", null, h("tr", null, columns.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)))),
			h("tbody", null, rows.map((cells, i) => h("tr", { key: i },
				cells.map((cell, at) => h(at ? "td" : "th", { class: columns[at][1], scope: at ? undefined : "row" }, cell)))))));
}

// The figures of a chart as a table. Rows are made only while the table is open.
export function Behind({ caption, columns, rows }) {
	const [open, setOpen] = useState(false);

	return h("details", { class: "behind", onToggle: (event) => setOpen(event.currentTarget.open) },
		h("summary", null, `Table: ${caption}`),
		open && h(Table, { caption, columns, rows: rows() }));
}

/*
 * A part of a page that is drawn again only when one of `inputs` has changed. A node that is kept in place of this component would
 * keep its parent, and with it the tree and the data of each earlier drawing.
 */
export class Still extends Component {
	shouldComponentUpdate({ inputs }) {
		return inputs.some((each, i) => each !== this.props.inputs[i]);
	}

	render({ draw }) {
		return draw();
	}
}

export function Panel({ title, hint, children, actions, className }) {
	return h("section", { class: `panel ${className ?? ""}` },
		h("div", { class: "panel-head" }, h("h2", null, title), hint && h("p", { class: "hint" }, hint), actions),
		children);
}

export function Stat({ label, value, note, tone }) {
	return h("div", { class: `stat ${tone ?? ""}` },
		h("dt", null, label), h("dd", null, value), note && h("dd", { class: "note" }, note));
}

export const Stats = ({ children }) => h("dl", { class: "stats" }, children);

// A command to copy.
export function Command({ text }) {
	const copy = async () => {
		try {
			await navigator.clipboard.writeText(text);
			state.notice = `Copied: ${text}`;
		} catch {
			state.notice = `Select and copy: ${text}`;
		}
		changed();
	};

	return h("div", { class: "command" }, h("code", null, text),
		h("button", { type: "button", onClick: copy, "aria-label": `Copy the command ${text}` }, "Copy"));
}

// A name that a shell would not read as one word is replaced by a process ID.
export function abCommand(key, processes) {
	return `zernel ab ${/^[A-Za-z0-9_][\w.@:+/-]*$/.test(key) && !key.startsWith("pid-") ? key : processes[0]?.pid}`;
}

// A number and its unit stay on one line.
export const unbroken = (text) => text.replace(/(\d) (%|s|ms|min|h)(?=\W)/g, "$1\u00a0$2");

export const Empty = ({ children }) => h("p", { class: "empty" }, children);

export function Legend({ items }) {
	return h("ul", { class: "legend" }, items.map(({ color, letter, title }) => h("li", { key: letter + title },
		h("span", { class: `swatch c-${color}`, "aria-hidden": "true" }, letter), title)));
}

// The name of a job for people, as job_title() in src/answers.
export function jobTitle(job) {
	if (job.pod)
		return `${job.namespace}/${job.pod}`;
	return job.claimed_name ? `${job.name} "${job.claimed_name}"` : job.name;
}

export const Meter = ({ value, label, color }) => h("div", { class: "meter", role: "img", "aria-label": label },
	h("span", { class: `c-${color}`, style: { width: `${Math.min(100, Math.max(0, value))}%` } }));
