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
 * The slots of the history as an image with one column of pixels for each slot, which is drawn scaled. It is kept: a slot
 * is drawn when it is new, and again as long as it may change. 64 ranks with 900 slots would take longer than a frame.
 */
const SPARE_SLOTS = 64;

function fillSlot(pixels, width, x, top, height, rank, slot, columns, colors) {
	const at = slot - rank.first;
	let all = 0, sum = 0, bottom = height;

	for (const column of columns)
		all += column?.[at] ?? 0;
	if (!all)
		return;
	for (let phase = 0; phase < columns.length; phase++) {
		sum += columns[phase]?.[at] ?? 0;
		const end = Math.round(height * (1 - sum / all));

		for (let y = end; y < bottom; y++)
			pixels[(top + y) * width + x] = colors[phase];
		bottom = end;
	}
}

// Draws the slots [first, last) of all ranks into the image.
function fillSlots(image, ranks, first, last, height) {
	if (last <= first)
		return;
	const width = last - first, data = new ImageData(width, image.canvas.height), pixels = new Uint32Array(data.data.buffer), colors = colorsOf();

	ranks.forEach((rank, i) => {
		const columns = PHASE_KEYS.map((key) => rank.columns[`phase_ms.${key}`]);

		for (let slot = Math.max(first, rank.first); slot < Math.min(last, rank.first + rank.nr); slot++)
			if (known(rank, slot))
				fillSlot(pixels, width, slot - first, i * (height + 2), height, rank, slot, columns, colors);
	});
	image.canvas.getContext("2d").putImageData(data, first - image.base, 0);
}

// The image with the slots [first, last). `settled` is the first slot that may have changed since the last call.
function imageOf(image, { ranks, step, historyKey, settled }, [first, last], height) {
	const key = `${historyKey} ${step} ${height} ${color("c-data")} ${color("c-busy")} ${ranks.map(({ id }) => id).join()}`;

	if (image?.key !== key || first < image.base || first >= image.drawn) {
		const canvas = new OffscreenCanvas(last - first + SPARE_SLOTS, Math.max(1, ranks.length * (height + 2)));

		image = { key, base: first, drawn: first, settled: first, canvas };
	} else if (last > image.base + image.canvas.width) {
		const ctx = image.canvas.getContext("2d");

		ctx.globalCompositeOperation = "copy";
		ctx.drawImage(image.canvas, image.base - first, 0);
		ctx.globalCompositeOperation = "source-over";
		image.base = first;
	}
	fillSlots(image, ranks, Math.max(image.base, Math.min(image.drawn, image.settled)), last, height);
	image.drawn = last;
	image.settled = settled;
	return image;
}

/*
 * Fills one row of pixels. Returns what canvas calls draw later: letters [text, x] and the x of steps.
 */
function fillEvents(row, { times, kinds, until }, { from, to, x }, colors, hasLetters) {
	const end = Math.min(to, until), letters = [], ticks = [];
	let phase = null, since = 0, tick = -9;
	const close = (ms) => {
		const left = Math.max(0, Math.round(x(Math.max(since, from)))), right = Math.min(row.length, Math.round(x(ms)));

		if (phase === null || ms <= from)
			return;
		row.fill(colors[phase], left, Math.max(right, Math.min(row.length, left + 1)));
		if (right - left >= LETTER_WIDTH && hasLetters)
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

// Draws the changes of phase of all ranks over their slots. Returns what fillEvents() returned for each rank.
function drawEvents(ctx, { ranks, events }, scale, inner, lane) {
	const data = new ImageData(inner, ranks.length), pixels = new Uint32Array(data.data.buffer), colors = colorsOf();
	const layer = new OffscreenCanvas(inner, ranks.length);
	const marks = ranks.map((rank, i) => {
		const own = events.get(rank.pid), row = pixels.subarray(i * inner, (i + 1) * inner);

		return own && fillEvents(row, own, { ...scale, from: Math.max(scale.from, own.since) }, colors, lane >= 12);
	});

	layer.getContext("2d").putImageData(data, 0, 0);
	ranks.forEach((_, i) => ctx.drawImage(layer, 0, i, inner, 1, AXIS_WIDTH, i * (lane + 2), inner, lane));
	return marks;
}

function drawAxis(ctx, { from, to, x }, top, width) {
	const wanted = (to - from) / Math.max(2, width / 110);
	const steps = [100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 3e4, 6e4, 12e4, 3e5, 6e5, 18e5, 36e5, 72e5];
	const step = steps.find((each) => each >= wanted) ?? Math.ceil(wanted / 144e5) * 144e5;

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

// `kept` has the image of the slots from one call to the next one.
function draw(canvas, props, kept) {
	const { ranks, step, range, events, straggler } = props;
	const ctx = canvas.getContext("2d"), ratio = devicePixelRatio;
	const width = canvas.clientWidth, lane = laneHeight(ranks.length), inner = Math.max(1, width - AXIS_WIDTH - RIGHT);
	const [from, to] = range.map((seconds) => seconds * 1000), height = ranks.length * (lane + 2);
	const scale = { from, to, x: (ms) => ((ms - from) / (to - from)) * inner };
	// Only slots that a rank has: the range of an address can be any.
	const first = Math.max(Math.floor(range[0] / step), Math.min(...ranks.map((rank) => rank.first)));
	const last = Math.min(Math.ceil(range[1] / step), Math.max(...ranks.map((rank) => rank.first + rank.nr)));

	canvas.width = width * ratio;
	canvas.height = lanesHeight(ranks.length) * ratio;
	ctx.scale(ratio, ratio);
	ctx.imageSmoothingEnabled = false;
	ctx.save();
	ctx.beginPath();
	ctx.rect(AXIS_WIDTH, 0, inner, height);
	ctx.clip();
	if (last > first) {
		const left = scale.x(first * step * 1000), right = scale.x(last * step * 1000);

		kept.image = imageOf(kept.image, props, [first, last], lane);
		ctx.drawImage(kept.image.canvas, first - kept.image.base, 0, last - first, height, AXIS_WIDTH + left, 0, right - left, height);
	}
	const marks = events ? drawEvents(ctx, props, scale, inner, lane) : [];

	ctx.restore();
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
 * is the pid of the outlined rank. A new `historyKey` means another history, a new `stamp` means new data, from the
 * slot `settled` on. `onZoom` gets the dragged range in ms.
 */
export function Lanes(props) {
	const canvas = useRef(), line = useRef(), drag = useRef(), latest = useRef(props);
	const { current: kept } = useRef({});

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
		const redraw = () => canvas.current && draw(canvas.current, latest.current, kept);
		const observer = new ResizeObserver(redraw);
		const ends = [follow(show), onTheme(redraw), () => observer.disconnect()];

		latest.follower = show;
		observer.observe(canvas.current);
		return () => ends.forEach((end) => end());
	}, []);
	useEffect(() => draw(canvas.current, props, kept), [props.stamp, props.range[0], props.range[1], props.straggler, props.ranks.length, Boolean(props.events)]);

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
