// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The phases of each rank over time, one lane per rank, on a canvas. Where every change of phase is known (events), a
 * lane shows the changes and the steps. Elsewhere each slot of the history is divided by the share of each phase.
 */

import { h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { PHASE_KEYS, PHASES } from "../causes.js";
import { follow, point } from "../cursor.js";
import { time } from "../format.js";
import { known, label as nameOf, value } from "../history.js";
import { color, onTheme } from "../theme.js";
import { AXIS_WIDTH } from "./area.js";

const RIGHT = 12;
const TICKS_HEIGHT = 18;
const LETTER_WIDTH = 14;
const DRAG_MIN = 4;

const laneHeight = (nr) => (nr > 32 ? 9 : nr > 12 ? 13 : 20);

export const lanesHeight = (nr) => nr * (laneHeight(nr) + 2) + TICKS_HEIGHT;

function drawSlots(ctx, rank, step, { from, to, x }, y, height) {
	const first = Math.max(rank.first, Math.floor(from / 1000 / step));
	const last = Math.min(rank.first + rank.nr, Math.ceil(to / 1000 / step));
	// Several slots share a pixel when the time is long.
	const stride = Math.max(1, Math.floor((last - first) / Math.max(1, x(to) - x(from))));

	for (let slot = first; slot < last; slot += stride) {
		if (!known(rank, slot))
			continue;
		const left = Math.round(x(slot * step * 1000)), right = Math.round(x((slot + stride) * step * 1000));
		const all = PHASE_KEYS.reduce((sum, key) => sum + value(rank, `phase_ms.${key}`, slot), 0);
		let bottom = y + height;

		for (const key of PHASE_KEYS) {
			const part = all ? (height * value(rank, `phase_ms.${key}`, slot)) / all : 0;

			if (part > 0.2) {
				ctx.fillStyle = color(`c-${key}`);
				ctx.fillRect(left, bottom - part, Math.max(1, right - left), part);
			}
			bottom -= part;
		}
	}
}

// One rectangle for all changes that fall on the same half pixel.
function drawEvents(ctx, events, { from, to, x }, y, height) {
	const { times, kinds } = events;
	const end = Math.min(to, events.until);
	let phase = 0, since = null;
	const rect = (left, right) => {
		ctx.fillStyle = color(`c-${PHASE_KEYS[phase]}`);
		ctx.fillRect(left, y, Math.max(0.5, right - left), height);
		if (right - left >= LETTER_WIDTH && height >= 12) {
			ctx.fillStyle = color("on-color");
			ctx.fillText(PHASES[PHASE_KEYS[phase]].letter, (left + right) / 2, y + height / 2 + 0.5);
		}
	};
	const ticks = [];

	for (let i = 0; i < times.length && times[i] <= to; i++) {
		if (kinds[i] < 0) {
			ticks.push(times[i]);
			continue;
		}
		if (since !== null && times[i] > from && x(times[i]) - x(since) >= 0.5) {
			rect(x(Math.max(since, from)), x(times[i]));
			since = times[i];
		}
		if (since === null)
			since = Math.max(times[i], from);
		phase = kinds[i];
	}
	if (since !== null && end > since)
		rect(x(Math.max(since, from)), x(end));
	ctx.fillStyle = color("ink");
	let last = -9;
	for (const at of ticks)
		if (at >= from && x(at) - last >= 3) {
			last = x(at);
			ctx.fillRect(last, y, 1, Math.max(3, height / 3));
		}
}

function drawAxis(ctx, { from, to, x }, top, width) {
	const wanted = (to - from) / Math.max(2, width / 110);
	const steps = [100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5];
	const step = steps.find((each) => each >= wanted) ?? 144e5;

	ctx.fillStyle = color("muted");
	ctx.textAlign = "center";
	for (let at = Math.ceil(from / step) * step; at <= to; at += step)
		ctx.fillText(time(at) + (step < 1000 ? `.${(at % 1000) / 100}` : ""), x(at), top + TICKS_HEIGHT / 2 + 2);
}

function drawName(ctx, text, y, height) {
	ctx.fillStyle = color("muted");
	ctx.textAlign = "right";
	ctx.fillText(text, AXIS_WIDTH - 6, y + height / 2 + 0.5, AXIS_WIDTH - 8);
}

function draw(canvas, { ranks, step, range, events, straggler }) {
	const ctx = canvas.getContext("2d"), ratio = devicePixelRatio;
	const width = canvas.clientWidth, lane = laneHeight(ranks.length);
	const [from, to] = range.map((seconds) => seconds * 1000);
	const scale = { from, to, x: (ms) => AXIS_WIDTH + ((ms - from) / (to - from)) * (width - AXIS_WIDTH - RIGHT) };

	canvas.width = width * ratio;
	canvas.height = lanesHeight(ranks.length) * ratio;
	ctx.scale(ratio, ratio);
	ctx.font = `${lane < 12 ? 9 : 11}px system-ui, sans-serif`;
	ctx.textBaseline = "middle";
	ranks.forEach((rank, i) => {
		const y = i * (lane + 2), own = events?.get(rank.pid);

		drawName(ctx, nameOf(rank), y, lane);
		ctx.save();
		ctx.beginPath();
		ctx.rect(AXIS_WIDTH, y, width - AXIS_WIDTH - RIGHT, lane);
		ctx.clip();
		ctx.textAlign = "center";
		drawSlots(ctx, rank, step, own ? { ...scale, to: Math.min(to, own.since) } : scale, y, lane);
		if (own)
			drawEvents(ctx, own, { ...scale, from: Math.max(from, own.since) }, y, lane);
		ctx.restore();
		if (rank.pid === straggler) {
			ctx.strokeStyle = color("warn");
			ctx.lineWidth = 2;
			ctx.strokeRect(AXIS_WIDTH - 1, y, width - AXIS_WIDTH - RIGHT + 2, lane);
		}
	});
	ctx.font = "11px system-ui, sans-serif";
	drawAxis(ctx, scale, lanesHeight(ranks.length) - TICKS_HEIGHT, width);
}

/*
 * `ranks` are those of history.js, `range` is [from, to] in seconds, `events` maps a pid to its changes, `straggler`
 * is the pid of the outlined rank. `onZoom` gets the dragged range in ms.
 */
export function Lanes(props) {
	const canvas = useRef(), line = useRef(), drag = useRef(), latest = useRef(props);

	latest.current = props;
	const timeAt = (event) => {
		const box = canvas.current.getBoundingClientRect(), [from, to] = latest.current.range;
		const share = (event.clientX - box.left - AXIS_WIDTH) / (box.width - AXIS_WIDTH - RIGHT);

		return 1000 * (from + Math.min(1, Math.max(0, share)) * (to - from));
	};
	const place = (element, ms, until) => {
		const [from, to] = latest.current.range, width = canvas.current.clientWidth - AXIS_WIDTH - RIGHT;
		const left = (at) => AXIS_WIDTH + ((at / 1000 - from) / (to - from)) * width;

		element.hidden = ms === null || left(ms) < AXIS_WIDTH || left(ms) > AXIS_WIDTH + width;
		element.style.left = `${left(Math.min(ms, until ?? ms))}px`;
		element.style.width = until === undefined ? "1px" : `${Math.abs(left(until) - left(ms))}px`;
	};

	useEffect(() => {
		const show = (ms) => place(line.current, ms);
		const redraw = () => canvas.current && draw(canvas.current, latest.current);
		const observer = new ResizeObserver(redraw);
		const ends = [follow(show), onTheme(redraw), () => observer.disconnect()];

		latest.follower = show;
		observer.observe(canvas.current);
		return () => ends.forEach((end) => end());
	}, []);
	useEffect(() => draw(canvas.current, props));

	const move = (event) => {
		const ms = timeAt(event);

		place(line.current, ms);
		point(ms);
		if (drag.current)
			place(drag.current.box, drag.current.from, ms);
	};
	const down = (event) => {
		const box = canvas.current.parentNode.querySelector(".dragged");

		canvas.current.setPointerCapture(event.pointerId);
		drag.current = { from: timeAt(event), x: event.clientX, box };
	};
	const up = (event) => {
		const { from, x, box } = drag.current ?? {};

		drag.current = null;
		if (box)
			box.hidden = true;
		if (box && Math.abs(event.clientX - x) >= DRAG_MIN) {
			const to = timeAt(event);

			latest.current.onZoom(Math.min(from, to), Math.max(from, to));
		}
	};

	return h("div", { class: "lanes" },
		h("canvas", {
			ref: canvas, role: "img", "aria-label": props.label, style: { height: `${lanesHeight(props.ranks.length)}px` },
			onPointerMove: move, onPointerDown: down, onPointerUp: up,
			onPointerLeave: () => { place(line.current, null); point(null); },
		}),
		h("div", { class: "cursor", ref: line, hidden: true }),
		h("div", { class: "dragged", hidden: true }));
}
