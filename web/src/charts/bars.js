// SPDX-License-Identifier: GPL-2.0-or-later
// Bars of 100 %: busy time and idle time by cause; and columns of a histogram.

import { h } from "preact";
import { parts, sumOf } from "../causes.js";
import { percent } from "../format.js";

// A letter needs this share of a bar to fit.
const LETTER_SHARE = 0.025;

// The parts of one account, largest rows of the page first: busy, open if any, causes.
export function segments({ busy, open = 0, causes }, expanded) {
	const idle = parts(expanded).map((part) => ({ ...part, value: sumOf(causes, part.of) }));
	const rest = open > 0 ? [{ key: "open", color: "open", letter: "?", title: "unknown: busy or idle", value: open }] : [];

	return [{ key: "busy", color: "busy", letter: "B", title: "busy", value: busy }, ...idle, ...rest];
}

export const whole = (all) => all.reduce((sum, part) => sum + part.value, 0);

const describe = (all, total) => all.filter((part) => part.value > 0)
	.map((part) => `${part.title} ${percent(part.value, total)}`).join(", ");

export function Bar({ account, expanded, label }) {
	const all = segments(account, expanded);
	const total = whole(all);

	return h("div", { class: "bar", role: "img", "aria-label": `${label}: ${describe(all, total) || "no data"}` },
		total > 0 && all.filter((part) => part.value > 0).map((part) => h("span", {
			key: part.key,
			class: `c-${part.color} k-${part.key}`,
			style: { flexGrow: String(part.value / total) },
			title: `${part.title}: ${percent(part.value, total)}`,
		}, part.value / total >= LETTER_SHARE ? part.letter : "")));
}

// One bar for each row {key, name, account, marked}. A marked row is the straggler.
export function Bars({ rows, expanded }) {
	return h("div", { class: "bars" }, rows.map(({ key, name, account, marked, note }) => {
		const all = segments(account, expanded);
		const total = whole(all);

		return h("div", { key, class: marked ? "bar-row marked" : "bar-row" },
			h("span", { class: "bar-name" }, name, marked && h("b", { class: "tag" }, " straggler")),
			h(Bar, { account, expanded, label: name }),
			h("span", { class: "bar-value" }, note ?? percent(total - all[0].value, total)));
	}));
}

// The rows of the table behind Bars.
export function barTable(rows, expanded) {
	const titles = parts(expanded).map((part) => [part.title, "num"]);

	return {
		columns: [["rank"], ["busy", "num"], ...titles, ["unknown", "num"]],
		rows: () => rows.map(({ name, account }) => {
			const all = segments(account, expanded);
			const total = whole(all);

			return [name, ...all.filter((part) => part.key !== "open").map((part) => percent(part.value, total)),
				percent(account.open ?? 0, total)];
		}),
	};
}

// A histogram: `columns` are {key, label, value}.
export function Columns({ columns, label }) {
	const most = Math.max(...columns.map((column) => column.value), 1);

	return h("div", { class: "columns", role: "img", "aria-label": label },
		columns.map(({ key, label: name, value }) => h("div", { key, class: "column", title: `${name}: ${value}` },
			h("span", { class: "c-busy", style: { height: `${(100 * value) / most}%` } }))));
}
