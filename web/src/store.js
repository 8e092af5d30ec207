// SPDX-License-Identifier: GPL-2.0-or-later
// The state of the page. Data arrives by feed*(), views read `state`, and every change draws the page at most once a
// frame. Values over the last 5 to 10 s are differences of snapshots, as in `zernel top`.

import { useEffect, useReducer } from "preact/hooks";
import { current } from "./route.js";

export const WINDOW_NS = 5e9;
export const OLD_MS = 5000;

export const state = {
	route: current(),
	link: "connecting", // connecting, open, lost, refused, file
	refusal: "", // why the server refused
	paused: false,
	receivedAt: 0, // performance.now() of the latest snapshot
	snapshot: null, // the latest one
	older: null, // the one that values are compared with
	newer: null,
	why: null,
	whyError: "",
	jobs: null,
	life: null, // {cgroup, why}: the answer of the ended job that is shown
	history: null, // of the shown job, see history.js
	lines: null, // {pid, answer}: the process whose stacks are sampled, and the latest answer
	linesError: "",
	health: null,
	strips: null, // the latest phases of each process
	missed: 0, // messages that this page was too slow for
	notice: "", // what the page says after an action
};

const listeners = new Set();
let drawing = false;

export function changed() {
	if (drawing)
		return;
	drawing = true;
	requestAnimationFrame(() => {
		drawing = false;
		for (const listener of listeners)
			listener();
	});
}

export function useStore() {
	const [, draw] = useReducer((n) => n + 1, 0);

	useEffect(() => {
		listeners.add(draw);
		return () => listeners.delete(draw);
	}, []);
	return state;
}

// A restarted zerneld counts from zero.
function wentBack(before, after) {
	return after.monotonic_ns < before.monotonic_ns || after.cost.cpu_ns < before.cost.cpu_ns;
}

export function feedSnapshot(snapshot) {
	if (state.paused || snapshot.monotonic_ns === state.snapshot?.monotonic_ns)
		return;
	if (!state.snapshot || wentBack(state.snapshot, snapshot)) {
		state.older = state.newer = snapshot;
	} else if (snapshot.monotonic_ns - state.newer.monotonic_ns >= WINDOW_NS) {
		state.older = state.newer;
		state.newer = snapshot;
	}
	state.snapshot = snapshot;
	state.receivedAt = performance.now();
	changed();
}

// Time passed without snapshots: the next one is not compared with earlier ones.
export function gap() {
	if (state.snapshot)
		state.older = state.newer = state.snapshot;
}

export function setPaused(paused) {
	state.paused = paused;
	if (!paused)
		gap();
	changed();
}

export const isOld = () => state.snapshot && state.link !== "file" && !state.paused &&
	performance.now() - state.receivedAt > OLD_MS;

// The job of a snapshot that a process belongs to; undefined if it has none.
export const jobOf = (snapshot, process) => snapshot.jobs[process.job - 1];

// The word in the address that selects a job or, without a job, a process.
export function keyOf(snapshot, process) {
	const job = jobOf(snapshot, process);

	if (!job)
		return `pid-${process.pid}`;
	return snapshot.jobs.filter((each) => each.name === job.name).length > 1 ? job.cgroup : job.name;
}

// The processes that launch work themselves; the others load data for them.
export const isRank = (process) => !process.consumer_pid;

export function processesOf(snapshot, key) {
	return snapshot.processes.filter((process) => keyOf(snapshot, process) === key);
}

// Who belongs together in an answer of `why`, by process ID.
export function whyOf(why, processes) {
	const pids = new Set(processes.map((process) => process.pid));

	return why?.jobs.find((job) => job.processes.some((process) => pids.has(process.pid)));
}

// The same process in an older snapshot; a pid alone can be reused.
export function inOlder(process) {
	// A recording has one snapshot: its values cover the life of a process.
	if (state.link === "file")
		return undefined;
	return state.older?.processes.find((each) => each.pid === process.pid && each.start_ns === process.start_ns);
}

const decisionsOf = (snapshot, name) => snapshot.scheduler.classes[name].decisions;

// Rates per second of the whole node.
export function nodeRates() {
	const { older, snapshot } = state;
	const seconds = (snapshot.monotonic_ns - older.monotonic_ns) / 1e9;
	const per = (now, then) => (seconds > 0 ? Math.max(0, now - then) / seconds : undefined);
	const classes = Object.entries(snapshot.scheduler.classes).map(([name, now]) => {
		const before = older.scheduler.classes[name];
		const decisions = {};

		for (const [kind, nr] of Object.entries(now.decisions))
			decisions[kind] = per(nr, decisionsOf(older, name)[kind]);
		return { name, decisions, ran: per(now.ran_ns, before.ran_ns), wait: now.runqueue_wait, before: before.runqueue_wait };
	});
	const sum = (kind) => classes.reduce((all, each) => all + (each.decisions[kind] ?? 0), 0);

	return {
		seconds,
		classes,
		promoted: seconds > 0 ? sum("promoted") : undefined,
		cpu: per(snapshot.cost.cpu_ns, older.cost.cpu_ns),
		bpf: per(snapshot.cost.bpf_run_ns, older.cost.bpf_run_ns),
		niceChanges: per(snapshot.scheduler.nice_changes, older.scheduler.nice_changes),
	};
}

export const dropped = (snapshot) => Object.entries(snapshot.dropped).filter(([, nr]) => nr > 0);
