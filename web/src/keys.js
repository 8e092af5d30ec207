// SPDX-License-Identifier: GPL-2.0-or-later
// The keys of `zernel top`, and a digit for each page.

import { adjust, go, PAGES } from "./route.js";
import { setPaused, state } from "./store.js";

export const KEYS = [
	["arrows", "move between the rows of the table"],
	["Enter", "open or close a row"],
	["t", "show or hide threads"],
	["s", "sort by a column"],
	["/", "filter by name or process ID"],
	["Esc", "clear the filter, close the help"],
	["p", "pause or continue"],
	["h, ?", "show this help"],
	["q", "back to the page Now"],
	["1 to 5", "Now, Job, Scheduler, Compare, Health"],
];

function move(by) {
	const rows = [...document.querySelectorAll("button.twist")];
	const at = rows.indexOf(document.activeElement);
	const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : at + by];

	next?.focus();
	return Boolean(next);
}

function focus(id) {
	const element = document.getElementById(id);

	if (!element && state.route.page !== "now")
		go({ page: "now" });
	element?.focus();
	return Boolean(element);
}

function clearFilter() {
	if (!state.route.query.filter)
		return false;
	adjust({ filter: "" });
	document.getElementById("filter")?.blur();
	return true;
}

const ACTIONS = {
	ArrowDown: () => move(1),
	ArrowUp: () => move(-1),
	t: () => {
		adjust({ threads: state.route.query.threads === "1" ? "" : "1", open: "", closed: "" });
		return true;
	},
	s: () => focus("sort"),
	"/": () => focus("filter"),
	Escape: clearFilter,
	p: () => {
		if (state.link !== "file")
			setPaused(!state.paused);
		return true;
	},
	h: () => document.getElementById("help")?.showModal() ?? true,
	"?": () => document.getElementById("help")?.showModal() ?? true,
	q: () => go({ page: "now" }) ?? true,
};

export function onKey(event) {
	const isTyping = event.target.closest?.("input, select, textarea, dialog");
	const digit = PAGES[Number(event.key) - 1];

	if (event.ctrlKey || event.altKey || event.metaKey || !state.snapshot || (isTyping && event.key !== "Escape"))
		return;
	if (isTyping?.tagName === "DIALOG")
		return;
	// Arrows scroll the page unless a row of the table has the focus, or nothing has.
	if (event.key.startsWith("Arrow") && document.activeElement !== document.body && !document.activeElement?.matches(".twist, main"))
		return;
	if (digit ? go({ page: digit }) ?? true : ACTIONS[event.key]?.())
		event.preventDefault();
}
