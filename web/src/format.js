// SPDX-License-Identifier: GPL-2.0-or-later
// Numbers with units, as src/base/units.c writes them.

const UNKNOWN = "-";

function inUnits(value, units) {
	if (value === undefined || value === null || Number.isNaN(value))
		return UNKNOWN;
	const [size, name] = units.find(([least], i) => value >= least || i === units.length - 1);
	const digits = size > 1 && value > 0 ? 1 : 0;

	return (value / size).toFixed(digits) + (name ? " " + name : "");
}

const BYTES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [1024, "KiB"], [1, "B"]];
const NS = [[3600e9, "h"], [60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const COUNT = [[1e9, "G"], [1e6, "M"], [1, ""]];

export const bytes = (value) => inUnits(value, BYTES);
export const ns = (value) => inUnits(value, NS);
export const count = (value) => inUnits(value, COUNT);

// A share of `whole` in percent, with `digits` decimals.
export function percent(part, whole, digits = 1) {
	return whole > 0 && Number.isFinite(part) ? ((100 * part) / whole).toFixed(digits) + " %" : UNKNOWN;
}

// A change as a fraction, with its sign: "+3.1 %".
export function change(fraction) {
	return (fraction < 0 ? "−" : "+") + Math.abs(100 * fraction).toFixed(1) + " %";
}

export function rate(value) {
	if (value === undefined || value === null)
		return UNKNOWN;
	return value >= 100 || value === 0 ? value.toFixed(0) : value.toFixed(1);
}

const two = (n) => String(n).padStart(2, "0");

export function time(ms) {
	const date = new Date(ms);

	return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export function dateTime(ms) {
	const date = new Date(ms);

	return ms ? `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time(ms)}` : UNKNOWN;
}
