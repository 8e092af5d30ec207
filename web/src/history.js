// SPDX-License-Identifier: GPL-2.0-or-later
// The history of the ranks of one job, in columns by slot. Slot n begins n * step seconds after the epoch. Newer
// data replaces the slots from its beginning on, so that the last, unfinished slot is never kept.

import { CAUSES, PHASE_KEYS } from "./causes.js";

// Slots that may be kept beyond the wanted span before the oldest ones are removed.
const SLACK = 64;

const SINGLE = ["span_ms", "busy_ms", "open_ms", "steps", "step_us", "memory_mib"];
const NAMES = [...SINGLE, ...CAUSES.map(({ key }) => `idle_ms.${key}`), ...PHASE_KEYS.map((key) => `phase_ms.${key}`)];

const CAUSE_COLUMNS = CAUSES.map(({ key }) => [key, `idle_ms.${key}`]);

const identity = (rank) => `${rank.pid}.${rank.start_ns}`;

function columnOf(rank, name) {
	const [group, key] = name.split(".");

	return key ? rank[group]?.[key] : rank[group];
}

function append(to, rank, first, nr) {
	const keep = Math.max(0, first - to.first);

	for (const name of NAMES) {
		const from = columnOf(rank, name), column = (to.columns[name] ??= []);

		// A cause that did not occur before has no column yet.
		if (!from && !column.length)
			continue;
		column.length = Math.min(column.length, keep);
		while (column.length < keep)
			column.push(null);
		for (let i = 0; i < nr; i++)
			column.push(from?.[i] ?? null);
	}
	to.nr = keep + nr;
}

function trim(rank, least) {
	const extra = least - rank.first;

	if (extra < SLACK)
		return;
	for (const column of Object.values(rank.columns))
		column.splice(0, extra);
	rank.first += extra;
	rank.nr = Math.max(0, rank.nr - extra);
}

/*
 * Adds up the slots [from, to) of ranks into `total`, which is like a rank. A slot is known if a rank knows it. The
 * sums are kept, because the charts need those of all slots every second.
 */
export function addUp(total, ranks, from, to) {
	if (!total.nr)
		total.first = from;
	for (let slot = Math.max(from, total.first); slot < to; slot++) {
		const at = slot - total.first, present = ranks.filter((rank) => known(rank, slot));

		total.nr = at + 1;
		for (const name of NAMES) {
			const column = (total.columns[name] ??= []);

			column[at] = name === "step_us" || !present.length ? null : present.reduce((all, rank) => all + value(rank, name, slot), 0);
		}
		// The mean of the steps of all ranks.
		const steps = total.columns.steps[at];

		total.columns.step_us[at] = steps ? present.reduce((all, rank) => all + value(rank, "steps", slot) * value(rank, "step_us", slot), 0) / steps : 0;
	}
	return total;
}

export const nothing = () => ({ first: 0, nr: 0, columns: {} });

// The sums of all slots of ranks.
export function totalOf(ranks) {
	const from = Math.min(...ranks.map((rank) => rank.first)), to = Math.max(...ranks.map((rank) => rank.first + rank.nr));

	return ranks.length ? addUp(nothing(), ranks, from, to) : nothing();
}

// A new history without data. `span` is in seconds.
export const empty = (job, span) => ({ job, span, step: 0, ranks: new Map(), total: nothing(), until: 0, enabled: true, keptSince: 0, thinned: 0 });

/*
 * Adds a response of /api/v1/history. Returns false if its step is another one: the caller loads everything again.
 */
export function add(history, data) {
	if (history.step && history.step !== data.step)
		return false;
	Object.assign(history, { step: data.step, until: data.until, enabled: data.enabled, keptSince: data.kept_since, thinned: data.thinned });
	for (const rank of data.ranks) {
		const first = Math.floor(data.since / data.step) + rank.from;
		const id = identity(rank);
		const kept = history.ranks.get(id) ?? { first, nr: 0, columns: {} };

		Object.assign(kept, { id, job: rank.job, name: rank.name, pid: rank.pid, comm: rank.comm, rank: rank.rank, nrRanks: rank.nr_ranks, gpu: rank.gpu, present: rank.present });
		if (first < kept.first)
			Object.assign(kept, { first, nr: 0, columns: {} });
		append(kept, rank, first, rank.span_ms.length);
		trim(kept, Math.floor((history.until - history.span) / history.step));
		history.ranks.set(id, kept);
		if (!kept.nr)
			history.ranks.delete(id);
	}
	const since = Math.floor(data.since / data.step), least = Math.floor((history.until - history.span) / history.step);

	trim(history.total, least);
	addUp(history.total, [...history.ranks.values()], since, Math.ceil(data.until / data.step));
	return true;
}

export const label = (rank) => (rank.rank === null ? `${rank.comm} ${rank.pid}` : `rank ${rank.rank}`);

// Sorted by rank; processes without a rank come last, by process ID.
export function sorted(history) {
	return [...history.ranks.values()].sort((a, b) =>
		(a.rank ?? Infinity) - (b.rank ?? Infinity) || a.pid - b.pid);
}

export const value = (rank, name, slot) => rank.columns[name]?.[slot - rank.first] ?? 0;

export const known = (rank, slot) => (rank.columns.span_ms?.[slot - rank.first] ?? null) !== null;

// The sums of a rank over slots [from, to): account for a bar, steps, and time of the steps.
export function sum(rank, from, to) {
	const ret = { busy: 0, open: 0, causes: {}, span: 0, steps: 0, stepTime: 0 };

	for (const { key } of CAUSES)
		ret.causes[key] = 0;
	for (let slot = Math.max(from, rank.first); slot < Math.min(to, rank.first + rank.nr); slot++) {
		if (!known(rank, slot))
			continue;
		ret.span += value(rank, "span_ms", slot);
		ret.busy += value(rank, "busy_ms", slot);
		ret.open += value(rank, "open_ms", slot);
		ret.steps += value(rank, "steps", slot);
		ret.stepTime += (value(rank, "steps", slot) * value(rank, "step_us", slot)) / 1000;
		for (const [key, name] of CAUSE_COLUMNS)
			ret.causes[key] += value(rank, name, slot);
	}
	return ret;
}
