// SPDX-License-Identifier: GPL-2.0-or-later
// Areas over time, one on top of the other, with uPlot.

import { h } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { follow, point } from "../cursor.js";
import { time } from "../format.js";
import { color, onTheme } from "../theme.js";

export const AXIS_WIDTH = 64;
const LETTER_HEIGHT = 13; // a thinner area shows no letter
export const RIGHT = 28;

// Sums of the layers from below. The topmost area is drawn first, so each one covers what is below it.
function stack(x, layers) {
	const sums = layers.map(() => []);

	for (let i = 0; i < x.length; i++) {
		let sum = 0;

		for (let layer = 0; layer < layers.length; layer++) {
			const value = layers[layer].values[i];

			sum = value === null || sum === null ? null : sum + value;
			sums[layer][i] = sum;
		}
	}
	return [x, ...sums.reverse()];
}

// The letter of each area, where its newest part has room for it.
function drawLetters(plot, layers) {
	const ctx = plot.ctx, ratio = devicePixelRatio;

	ctx.save();
	ctx.font = `600 ${11 * ratio}px system-ui, sans-serif`;
	ctx.textAlign = "right";
	ctx.textBaseline = "middle";
	ctx.fillStyle = color("on-color");
	layers.forEach((layer, i) => {
		const data = plot.data[layers.length - i], below = i ? plot.data[layers.length - i + 1] : null;
		let at = data.length - 1;

		while (at >= 0 && data[at] === null)
			at--;
		if (at < 1)
			return;
		const top = plot.valToPos(data[at - 1], "y", true), bottom = plot.valToPos(below ? below[at - 1] : 0, "y", true);

		if (bottom - top >= LETTER_HEIGHT * ratio)
			ctx.fillText(layer.letter, plot.valToPos(plot.data[0][at], "x", true) - 4 * ratio, (top + bottom) / 2);
	});
	ctx.restore();
}

function optionsFor({ layers, unit, onZoom }, width, height, range) {
	const axis = (extra) => ({
		stroke: color("muted"), font: "11px system-ui, sans-serif", ticks: { stroke: color("line") },
		grid: { stroke: color("line"), width: 1 }, ...extra,
	});
	const options = {
		width, height, padding: [8, RIGHT, 0, 0],
		legend: { show: false },
		cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
		scales: { x: { time: true, range: () => range() }, y: { range: (u, low, high) => [0, high > 0 ? high * 1.05 : 1] } },
		axes: [axis({ space: 80, size: 28, values: (u, splits) => splits.map((each) => time(each * 1000)) }), axis({ size: AXIS_WIDTH, values: (u, splits) => splits.map((each) => `${each} ${unit}`) })],
		series: [{}, ...layers.map((layer) => ({
			fill: color(`c-${layer.color}`), stroke: color("panel"), width: 1, points: { show: false }, spanGaps: false,
		})).reverse()],
		hooks: {
			draw: [(plot) => drawLetters(plot, layers)],
			setCursor: [(plot) => {
				if (!plot.isFollowing)
					point(plot.cursor.left >= 0 ? plot.posToVal(plot.cursor.left, "x") * 1000 : null, plot.follower);
			}],
			setSelect: [(plot) => {
				const { left, width: wide } = plot.select;

				if (wide > 4)
					onZoom(plot.posToVal(left, "x") * 1000, plot.posToVal(left + wide, "x") * 1000);
				plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
			}],
		},
	};

	return options;
}

/*
 * `x` are seconds; `layers` are {color, letter, values}, from below; `range` is [from, to] in seconds. `onZoom` gets
 * the dragged range in ms.
 */
export function Area(props) {
	const { x, layers, range, height = 210, label } = props;
	const holder = useRef(), plot = useRef(), latest = useRef(props);
	const shape = layers.map((layer) => layer.letter).join();

	latest.current = props;
	useEffect(() => {
		let stopped = () => {};
		const make = () => {
			stopped();
			const { layers: now, onZoom } = latest.current;
			const made = new uPlot(
				optionsFor({ layers: now, unit: latest.current.unit, onZoom: (from, to) => latest.current.onZoom(from, to) },
					holder.current.clientWidth, height, () => latest.current.range),
				stack(latest.current.x, now), holder.current);
			const follower = (ms) => {
				made.isFollowing = true;
				made.setCursor({ left: ms === null ? -10 : made.valToPos(ms / 1000, "x"), top: 0 });
				made.isFollowing = false;
			};

			made.follower = follower;
			plot.current = made;
			const unfollow = follow(follower);
			stopped = () => {
				unfollow();
				made.destroy();
				plot.current = null;
			};
		};
		const observer = new ResizeObserver(() => {
			const width = holder.current?.clientWidth;

			if (plot.current && width && width !== plot.current.width)
				plot.current.setSize({ width, height });
		});

		make();
		observer.observe(holder.current);
		const offTheme = onTheme(make);
		return () => {
			observer.disconnect();
			offTheme();
			stopped();
		};
	}, [shape, height, props.unit]);
	useEffect(() => {
		plot.current?.setData(stack(x, layers));
	}, [x, layers, range[0], range[1]]);
	return h("div", { class: "area", style: { minHeight: `${height}px` }, ref: holder, role: "img", "aria-label": label });
}
