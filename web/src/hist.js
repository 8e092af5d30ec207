// SPDX-License-Identifier: GPL-2.0-or-later
// Distributions of durations, as in src/core/hist.h: slot i holds values up to 2^((i - 120) / 4) s.

const OFFSET = 120;

export const boundNs = (slot) => 1e9 * 2 ** ((slot - OFFSET) / 4);

const middleNs = (slot) => 1e9 * 2 ** ((slot - 0.5 - OFFSET) / 4);

// What was recorded between two distributions of the same values; all of `after` without `before`.
export function between(before, after) {
	if (!after || !before || before.count > after.count)
		return after;
	const old = new Map(before.buckets);
	const buckets = after.buckets
		.map(([slot, nr]) => [slot, nr - (old.get(slot) ?? 0)])
		.filter(([, nr]) => nr > 0);

	return { ...after, count: after.count - before.count, sum: after.sum - before.sum, buckets };
}

export function merge(hists) {
	const buckets = new Map();
	const ret = { count: 0, sum: 0, min: Infinity, max: 0 };

	for (const hist of hists) {
		if (!hist?.count)
			continue;
		ret.count += hist.count;
		ret.sum += hist.sum;
		ret.min = Math.min(ret.min, hist.min);
		ret.max = Math.max(ret.max, hist.max);
		for (const [slot, nr] of hist.buckets)
			buckets.set(slot, (buckets.get(slot) ?? 0) + nr);
	}
	return { ...ret, buckets: [...buckets].sort((a, b) => a[0] - b[0]) };
}

// The value at a rank, as hist_quantile(); undefined if nothing was recorded.
export function quantile(hist, q) {
	const rank = Math.min(Math.floor(q * (hist?.count ?? 0)), (hist?.count ?? 0) - 1);
	let seen = 0;

	if (!hist?.count)
		return undefined;
	for (const [slot, nr] of hist.buckets) {
		seen += nr;
		if (seen > rank)
			return Math.min(Math.max(middleNs(slot), hist.min), hist.max);
	}
	return hist.max;
}
