// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The change of a figure from A to B with its 95 % interval: the jackknife of `zernel ab` (src/core/ab.c), over blocks
 * of time instead of pairs of windows.
 */

const BLOCKS = 20;
export const BLOCKS_MIN = 4;

// Student's t for 95 %, by degrees of freedom from 1; beyond the list an approximation.
const STUDENT = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131, 2.12, 2.11, 2.101, 2.093];

// Joins sums into at most BLOCKS blocks of neighbors. Each item is {steps, stepTime, busy, span}.
export function blocks(items) {
	const size = Math.ceil(items.length / BLOCKS), ret = [];

	for (let i = 0; i < items.length; i += size)
		ret.push(items.slice(i, i + size).reduce(add));
	return ret;
}

const add = (a, b) => ({ steps: a.steps + b.steps, stepTime: a.stepTime + b.stepTime, busy: a.busy + b.busy, span: a.span + b.span });
const take = (a, b) => ({ steps: a.steps - b.steps, stepTime: a.stepTime - b.stepTime, busy: a.busy - b.busy, span: a.span - b.span });

export const stepOf = ({ steps, stepTime }) => stepTime / steps;
export const busyOf = ({ busy, span }) => busy / span;

/*
 * `a` and `b` are lists of blocks, `of` the figure. A ratio is compared as a fraction of A, else the difference
 * counts. undefined: not enough data.
 */
export function compare(a, b, of, isRatio) {
	const nr = Math.min(a.length, b.length);

	if (nr < BLOCKS_MIN)
		return undefined;
	const first = a.slice(0, nr), second = b.slice(0, nr);
	const sumA = first.reduce(add), sumB = second.reduce(add);
	const change = (x, y) => (isRatio ? Math.log(of(y) / of(x)) : of(y) - of(x));
	const value = change(sumA, sumB);
	const rest = first.map((block, i) => change(take(sumA, block), take(sumB, second[i])));
	const mean = rest.reduce((x, y) => x + y, 0) / nr;
	const error = Math.sqrt((rest.reduce((sum, each) => sum + (each - mean) ** 2, 0) * (nr - 1)) / nr);
	const t = STUDENT[nr - 2] ?? 1.96 + 2.4 / (nr - 1);
	const ends = [value, value - t * error, value + t * error].map((each) => (isRatio ? Math.expm1(each) : each));

	if (ends.some((each) => !Number.isFinite(each)))
		return undefined;
	return { value: ends[0], low: ends[1], high: ends[2], isSure: ends[1] > 0 || ends[2] < 0 };
}
