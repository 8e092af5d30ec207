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
import { known, label as nameOf } from "../history.js";
import { color, onTheme } from "../theme.js";
import { AXIS_WIDTH, RIGHT } from "./area.js";

const TICKS_HEIGHT = 18;
const LETTER_WIDTH = 14;
const DRAG_MIN = 4;

const laneHeight = (nr) => (nr > 32 ? 9 : nr > 12 ? 13 : 20);

export const lanesHeight = (nr) => nr * (laneHeight(nr) + 2) + TICKS_HEIGHT;

// The colors of the phases as numbers, in the byte order of image data.
function colorsOf() {
	const probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });

	return PHASE_KEYS.map((key) => {
		probe.fillStyle = color(`c-${key}`);
		probe.fillRect(0, 0, 1, 1);
		return new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0];
	});
}

/*
 * Lanes are drawn pixel by pixel: a canvas call for each slot of 64 ranks would take longer than a frame. `lane` is
 * {pixels, width, y, height}.
 */
function fill(lane, left, right, top, bottom, number) {
	for (let y = lane.y + top; y < lane.y + bottom; y++)
		lane.pixels.fill(number, y * lane.width + left, y * lane.width + right);
}

function fillSlots(lane, rank, step, { from, to, x }, colors) {
	const first = Math.max(rank.first, Math.floor(from / 1000 / step));
	const last = Math.min(rank.first + rank.nr, Math.ceil(to / 1000 / step));
	const columns = PHASE_KEYS.map((key) => rank.columns[`phase_ms.${key}`]);

	for (let slot = first; slot < last; slot++) {
		const left = Math.max(0, Math.round(x(slot * step * 1000))), right = Math.min(lane.width, Math.round(x((slot + 1) * step * 1000)));
		let all = 0, sum = 0, bottom = lane.height;

		if (right <= left || !known(rank, slot))
			continue;
		for (const column of columns)
			all += column?.[slot - rank.first] ?? 0;
		columns.forEach((column, phase) => {
			sum += column?.[slot - rank.first] ?? 0;
			const top = all ? Math.round(lane.height * (1 - sum / all)) : lane.height;

			if (top < bottom)
				fill(lane, left, right, top, bottom, colors[phase]);
			bottom = top;
		});
	}
}

// Returns what canvas calls draw later: letters [text, x] and the x of steps.
function fillEvents(lane, { times, kinds, until }, { from, to, x }, colors) {
	const end = Math.min(to, until), letters = [], ticks = [];
	let phase = null, since = 0, tick = -9;
	const close = (ms) => {
		const left = Math.max(0, Math.round(x(Math.max(since, from)))), right = Math.min(lane.width, Math.round(x(ms)));

		if (phase === null || ms <= from)
			return;
		fill(lane, left, Math.max(right, Math.min(lane.width, left + 1)), 0, lane.height, colors[phase]);
		if (right - left >= LETTER_WIDTH && lane.height >= 12)
			letters.push([PHASES[PHASE_KEYS[phase]].letter, (left + right) / 2]);
	};

	for (let i = 0; i < times.length && times[i] <= to; i++) {
		if (kinds[i] >= 0) {
			close(times[i]);
			[phase, since] = [kinds[i], times[i]];
		} else if (times[i] >= from && x(times[i]) - tick >= 3) {
			ticks.push(tick = x(times[i]));
		}
	}
	close(end);
	return { letters, ticks };
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
	const width = canvas.clientWidth, lane = laneHeight(ranks.length), inner = Math.max(1, width - AXIS_WIDTH - RIGHT);
	const [from, to] = range.map((seconds) => seconds * 1000);
	const scale = { from, to, x: (ms) => ((ms - from) / (to - from)) * inner };
	const image = new ImageData(inner, Math.max(1, ranks.length * (lane + 2))), pixels = new Uint32Array(image.data.buffer);
	const colors = colorsOf(), layer = new OffscreenCanvas(image.width, image.height);
	const marks = ranks.map((rank, i) => {
		const at = { pixels, width: inner, y: i * (lane + 2), height: lane }, own = events?.get(rank.pid);

		fillSlots(at, rank, step, own ? { ...scale, to: Math.min(to, own.since) } : scale, colors);
		return own && fillEvents(at, own, { ...scale, from: Math.max(from, own.since) }, colors);
	});

	layer.getContext("2d").putImageData(image, 0, 0);
	canvas.width = width * ratio;
	canvas.height = lanesHeight(ranks.length) * ratio;
	ctx.scale(ratio, ratio);
	ctx.imageSmoothingEnabled = false;
	ctx.drawImage(layer, AXIS_WIDTH, 0);
	ctx.font = `${lane < 12 ? 9 : 11}px system-ui, sans-serif`;
	ctx.textBaseline = "middle";
	ranks.forEach((rank, i) => {
		const y = i * (lane + 2);

		drawName(ctx, nameOf(rank), y, lane);
		ctx.textAlign = "center";
		ctx.fillStyle = color("on-color");
		for (const [letter, x] of marks[i]?.letters ?? [])
			ctx.fillText(letter, AXIS_WIDTH + x, y + lane / 2 + 0.5);
		for (const x of marks[i]?.ticks ?? [])
			ctx.fillRect(AXIS_WIDTH + x, y, 1, Math.max(3, lane / 3));
		if (rank.pid === straggler) {
			ctx.strokeStyle = color("warn");
			ctx.lineWidth = 2;
			ctx.strokeRect(AXIS_WIDTH - 1, y, inner + 2, lane);
		}
	});
	ctx.font = "11px system-ui, sans-serif";
	drawAxis(ctx, { ...scale, x: (ms) => AXIS_WIDTH + scale.x(ms) }, lanesHeight(ranks.length) - TICKS_HEIGHT, width);
}

/*
 * `ranks` are those of history.js, `range` is [from, to] in seconds, `events` maps a pid to its changes, `straggler`
 * is the pid of the outlined rank. A new `stamp` means new data. `onZoom` gets the dragged range in ms.
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
	useEffect(() => draw(canvas.current, props), [props.stamp, props.range[0], props.range[1], props.straggler, props.ranks.length, Boolean(props.events)]);

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
