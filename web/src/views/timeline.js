// SPDX-License-Identifier: GPL-2.0-or-later
// The history of a job: time per step by cause, and the lanes of the phases, with one range and one cursor.

import { h } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { Area } from "../charts/area.js";
import { Lanes } from "../charts/lanes.js";
import { PHASES, PHASE_KEYS, parts, sumOf } from "../causes.js";
import { follow } from "../cursor.js";
import { isExport, isZoomed, rangeOf, spanOf } from "../data.js";
import * as events from "../events.js";
import { count, dateTime, time } from "../format.js";
import { known, label, sorted, sum, value } from "../history.js";
import { adjust } from "../route.js";
import { Behind, Empty, Legend, Panel } from "./parts.js";

const SPANS = [[60, "1 min"], [900, "15 min"], [3600, "1 h"], [43200, "12 h"]];
const POINTS = 300;
const MIN_RANGE = 2; // seconds

// The sums of all ranks in at most POINTS bins, each with the time of at least two steps.
function binsOf(total, step, [from, to], until) {
	const whole = sum(total, Math.floor(from / step), Math.ceil(to / step));
	const meanStep = whole.steps ? whole.stepTime / whole.steps / 1000 : 0;
	const size = Math.max(1, Math.ceil((to - from) / step / POINTS), Math.ceil((2 * meanStep) / step));
	const first = Math.floor(Math.floor(from / step) / size) * size, bins = [];

	// The last slot is not complete.
	for (let slot = first; slot * step < to && (slot + size) * step < until; slot += size)
		bins.push({ at: (slot + size / 2) * step, sums: sum(total, slot, slot + size) });
	return { bins, size, hasSteps: whole.steps > 0 };
}

/*
 * Milliseconds per step, or percent of the time where a job has no steps. The share of a cause times the mean step, and
 * not its time divided by the steps: these end at any moment of a bin.
 */
function layersOf({ bins, hasSteps }, expanded) {
	const scale = ({ span, steps, stepTime }) => (!span || (hasSteps && !steps) ? null : hasSteps ? stepTime / steps / span : 100 / span);
	const layer = (part, valueOf) => ({ ...part, values: bins.map(({ sums }) => (scale(sums) === null ? null : valueOf(sums) * scale(sums))) });

	return [layer({ color: "busy", letter: "B", title: "busy" }, (sums) => sums.busy),
		...parts(expanded).map((part) => layer(part, (sums) => sumOf(sums.causes, part.of))),
		layer({ color: "open", letter: "?", title: "unknown" }, (sums) => sums.open)]
		.filter(({ values }, i) => i === 0 || values.some((each) => each > 0));
}

// GPU memory of all ranks at the end of each bin, in GiB; undefined if none is known.
function memoryOf(total, step, { bins }, size) {
	const values = bins.map(({ at }) => {
		const slot = Math.ceil(at / step + size / 2) - 1;

		return known(total, slot) ? value(total, "memory_mib", slot) / 1024 : null;
	});

	return values.some((each) => each > 0) ? [{ color: "data", letter: "M", title: "GPU memory", values }] : undefined;
}

function zoom(from, to) {
	if (to - from >= 1000 * MIN_RANGE)
		adjust({ since: (from / 1000).toFixed(0), until: (to / 1000).toFixed(0) });
	else
		adjust({ since: ((from + to) / 2000 - MIN_RANGE / 2).toFixed(0), until: ((from + to) / 2000 + MIN_RANGE / 2).toFixed(0) });
}

function Tools({ query }) {
	const [from, to] = rangeOf(query), width = to - from;
	const move = (a, b) => () => zoom(1000 * (from + a * width), 1000 * (to + b * width));
	const button = (text, name, onClick) => h("button", { type: "button", "aria-label": name, title: name, onClick }, text);

	return h("div", { class: "tools" },
		!isExport() && SPANS.map(([seconds, title]) => h("button", {
			key: seconds, type: "button", "aria-pressed": String(!isZoomed(query) && spanOf(query) === seconds),
			onClick: () => adjust({ span: String(seconds), since: "", until: "" }),
		}, title)),
		button("+", "Zoom in", move(0.25, -0.25)), button("−", "Zoom out", move(-0.5, 0.5)),
		button("‹", "Earlier", move(-0.5, -0.5)), button("›", "Later", move(0.5, 0.5)),
		isZoomed(query) && h("button", { type: "button", onClick: () => adjust({ since: "", until: "" }) }, isExport() ? "Whole recording" : "Live"));
}

// The values at the cursor. It is drawn without a new page.
function Reading({ bins, layers, unit }) {
	const text = useRef(), latest = useRef();

	latest.current = { bins, layers, unit };
	useEffect(() => follow((ms) => {
		const now = latest.current;
		const at = ms === null ? -1 : now.bins.findLastIndex((bin) => bin.at * 1000 <= ms + 1);

		text.current.textContent = at < 0 ? "" : `${time(ms)}   ` + now.layers
			.filter(({ values }) => values[at] > 0)
			.map(({ letter, values }) => `${letter} ${values[at].toFixed(1)} ${now.unit}`).join("   ");
	}), []);
	return h("p", { class: "reading", ref: text, "aria-hidden": "true" });
}

function areaTable({ bins }, layers, unit) {
	return {
		columns: [["time"], ...layers.map(({ title }) => [`${title}, ${unit}`, "num"]), ["steps", "num"]],
		rows: () => bins.map(({ at, sums }, i) => [dateTime(at * 1000), ...layers.map(({ values }) => (values[i] === null ? "-" : values[i].toFixed(2))), sums.steps]),
	};
}

function laneTable(ranks, step, [from, to]) {
	return {
		columns: [["rank"], ...PHASE_KEYS.map((key) => [key, "num"]), ["steps", "num"]],
		rows: () => ranks.map((rank) => {
			const first = Math.max(rank.first, Math.floor(from / step)), last = Math.min(rank.first + rank.nr, Math.ceil(to / step));
			const times = PHASE_KEYS.map((key) => {
				let ms = 0;

				for (let slot = first; slot < last; slot++)
					ms += value(rank, `phase_ms.${key}`, slot);
				return ms;
			});
			const all = times.reduce((a, b) => a + b, 0);

			return [label(rank), ...times.map((each) => (all ? `${((100 * each) / all).toFixed(1)} %` : "-")), sum(rank, first, last).steps];
		}),
	};
}

export function History({ history, answer, query }) {
	const range = rangeOf(query), expanded = query.causes === "all";
	const ranks = history ? sorted(history) : [];
	const made = useMemo(() => ranks.length && binsOf(history.total, history.step, range, history.until),
		[history?.until, history?.key, history?.step, ranks.length, Math.floor(range[0]), Math.floor(range[1])]);
	const layers = useMemo(() => (made ? layersOf(made, expanded) : []), [made, expanded]);
	const memory = useMemo(() => made && memoryOf(history.total, history.step, made, made.size), [made]);
	const x = useMemo(() => (made ? made.bins.map(({ at }) => at) : []), [made]);

	if (history && !history.enabled)
		return h(Panel, { title: "History" }, h(Empty, null, "The history is switched off in the configuration of zernel serve."));
	if (!made)
		return h(Panel, { title: "History", actions: h(Tools, { query }) }, h(Empty, null, "There is no history for this time."));

	const unit = made.hasSteps ? "ms" : "%", titleOf = made.hasSteps ? "Time per step" : "GPU time";
	const shown = events.all().size ? events.all() : null;

	return h(Panel, { title: "History", hint: `${dateTime(range[0] * 1000)} to ${time(range[1] * 1000)}`, actions: h(Tools, { query }), className: "history" },
		h("h3", null, titleOf, h("small", null, made.hasSteps ? " mean of the ranks, ms" : " mean of the ranks, percent")),
		h(Area, { key: layers.map(({ letter }) => letter).join(), x, layers, range, unit, onZoom: zoom, label: `${titleOf} by cause over time; the table below has the figures` }),
		h(Reading, { bins: made.bins, layers, unit }),
		h("h3", null, "Phases", h("small", null, shown ? " every change, ticks are steps" : ` share of each phase in ${history.step} s`)),
		h(Lanes, { ranks, step: history.step, historyKey: history.key, settled: Math.floor(history.until / history.step) - 2, stamp: `${history.key} ${history.until}`, range, events: shown, straggler: answer?.straggler?.pid, onZoom: zoom, label: `Phases of ${ranks.length} ranks over time; the table below has the figures` }),
		h(Legend, { items: PHASE_KEYS.map((key) => ({ color: key, letter: PHASES[key].letter, title: key })) }),
		memory && [h("h3", null, "GPU memory", h("small", null, " sum of the ranks, GiB")),
			h(Area, { x, layers: memory, range, unit: "GiB", height: 120, onZoom: zoom, label: "GPU memory over time; the table below has the figures" })],
		history.thinned > 0 && h("p", { class: "warn-text" }, `${count(history.thinned)} values of the history were removed to save memory.`),
		events.nrLost() > 0 && h("p", { class: "warn-text" }, `${count(events.nrLost())} changes of phase were dropped.`),
		h(Behind, { caption: `${titleOf} over time`, ...areaTable(made, layers, unit) }),
		memory && h(Behind, { caption: "GPU memory over time", ...areaTable(made, memory, "GiB") }),
		h(Behind, { caption: "phases of each rank", ...laneTable(ranks, history.step, range) }));
}
