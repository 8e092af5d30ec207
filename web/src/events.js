// SPDX-License-Identifier: GPL-2.0-or-later
// Changes of phase and steps of the shown processes during the last minute. Times are ms since the epoch.

import { PHASE_KEYS } from "./causes.js";

const KEEP_MS = 65000;
const KEEP_EVENTS = 20000; // of one process

export const STEP = -1;

const processes = new Map(); // pid -> {since, until, times, kinds}: a kind is a phase, or STEP
let lost = 0;

export const all = () => processes;
export const nrLost = () => lost;

export function clear() {
	processes.clear();
	lost = 0;
}

function trim(kept, least) {
	let first = Math.max(0, kept.times.length - KEEP_EVENTS);

	while (first < kept.times.length && kept.times[first] < least)
		first++;
	// Copies are rare: a quarter may be too old.
	if (first < kept.times.length / 4)
		return;
	kept.times = kept.times.slice(first);
	kept.kinds = kept.kinds.slice(first);
	kept.since = kept.times[0] ?? kept.until;
}

// `data` is the member `events` of a message, `wanted` the process IDs to keep.
export function add(snapshot, data, wanted, keepMs = KEEP_MS) {
	const offset = snapshot.time_ms - snapshot.monotonic_ns / 1e6;
	const isExport = !Number.isFinite(keepMs);

	lost += data.lost;
	for (const [ns, kind, pid, , value] of [...data.events].sort((a, b) => a[0] - b[0])) {
		if (!wanted.has(pid) || (kind !== "phase" && kind !== "step"))
			continue;
		const ms = ns / 1e6 + offset;
		let kept = processes.get(pid);

		if (!kept)
			processes.set(pid, kept = { since: ms, until: ms, times: [], kinds: [] });
		kept.times.push(ms);
		kept.kinds.push(kind === "step" ? STEP : Math.max(0, PHASE_KEYS.indexOf(value)));
	}
	for (const [pid, kept] of processes) {
		if (!wanted.has(pid)) {
			processes.delete(pid);
			continue;
		}
		kept.until = snapshot.time_ms;
		if (!isExport)
			trim(kept, snapshot.time_ms - keepMs);
	}
}
