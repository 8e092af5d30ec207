// SPDX-License-Identifier: GPL-2.0-or-later
// Brings data into the store: from the server, or from the element #zernel-data of an exported file.

import { PHASE_KEYS } from "./causes.js";
import * as events from "./events.js";
import * as history from "./history.js";
import { connect, get, HttpError } from "./socket.js";
import { changed, feedSnapshot, gap, processesOf, state } from "./store.js";

const SPANS = { "": 900, 60: 60, 900: 900, 3600: 3600, 43200: 43200 };
const STRIP_LENGTH = 40;

export const DEFAULT_WINDOW = 5;
export const LINES_SECONDS = 10; // of stacks in one answer
export const spanOf = (query) => SPANS[query.span ?? ""] ?? 900;
export const windowOf = (query) => Math.min(900, Math.max(1, Number(query.window) || DEFAULT_WINDOW));
export const isExport = () => state.link === "file";

// The end of the history: the clock of the server, not that of the browser.
export const now = () => (state.snapshot?.time_ms ?? Date.now()) / 1000;

// The server accepts times up to this one, in seconds since the epoch.
const TIME_MAX = 2 ** 32;

export const isZoomed = ({ since, until }) => Number(since) > 0 && Number(until) > Number(since) && Number(until) <= TIME_MAX;

// The range that the charts of a job show, in seconds.
export function rangeOf(query) {
	if (isZoomed(query))
		return [Number(query.since), Number(query.until)];
	if (isExport())
		return [state.exported.since, state.exported.until];
	return [now() - spanOf(query), now()];
}

// The phase with most of the time between two snapshots.
function addStrips(snapshot, before) {
	const then = new Map((before?.processes ?? []).map((process) => [process.pid, process]));
	const next = new Map();

	for (const process of snapshot.processes) {
		const key = `${process.pid}.${process.start_ns}`;
		const old = then.get(process.pid)?.start_ns === process.start_ns ? then.get(process.pid).phase_ns : process.phase_ns;
		let most = PHASE_KEYS.indexOf(process.phase), mostNs = 0;

		PHASE_KEYS.forEach((phase, i) => {
			const ns = process.phase_ns[phase] - old[phase];

			if (ns > mostNs)
				[most, mostNs] = [i, ns];
		});
		next.set(key, [...(state.strips?.get(key) ?? []), Math.max(0, most)].slice(-STRIP_LENGTH));
	}
	state.strips = next;
}

function onMessage(message) {
	const { snapshot } = message;

	if (state.link !== "open") {
		state.link = "open";
		gap();
	}
	if (message.sequence !== undefined) {
		if (state.sequence !== undefined && message.sequence > state.sequence + 1)
			state.missed += message.sequence - state.sequence - 1;
		state.sequence = message.sequence;
	}
	if (state.paused || snapshot.monotonic_ns === state.snapshot?.monotonic_ns)
		return;
	addStrips(snapshot, state.snapshot);
	if (message.events)
		events.add(snapshot, message.events, new Set(processesOf(snapshot, state.route.subject).map((process) => process.pid)));
	feedSnapshot(snapshot);
}

function fail(error) {
	if (error instanceof HttpError && error.status === 401) {
		state.link = "refused";
		stop();
	}
	state.refusal = error.message;
	changed();
}

let socket, wantsEvents = false, timers = [];

function open() {
	socket?.close();
	state.sequence = undefined;
	socket = connect(`/ws?interval_ms=1000${wantsEvents ? "&events=1" : ""}`, {
		message: onMessage,
		lost() {
			if (state.link !== "refused")
				state.link = "lost";
			changed();
		},
	});
}

// Every change of phase costs the node CPU time, so it is asked for only while lanes show it.
export function watchEvents(wanted) {
	if (isExport() || wanted === wantsEvents || !socket)
		return;
	wantsEvents = wanted;
	if (!wanted)
		events.clear();
	open();
}

export function stop() {
	socket?.close();
	socket = null;
	timers.forEach(clearInterval);
	timers = [];
}

// Calls `load` at once and then every `ms`; a slow response delays only the next one.
function repeat(ms, load) {
	let busy = false;
	const run = async () => {
		if (busy || state.paused || document.hidden)
			return;
		busy = true;
		try {
			await load();
		} catch (error) {
			fail(error);
		}
		busy = false;
	};

	run();
	timers.push(setInterval(run, ms));
	return run;
}

async function loadWhy() {
	try {
		state.why = await get(`/api/v1/why?seconds=${windowOf(state.route.query)}`);
		state.whyError = "";
	} catch (error) {
		if (error.status === 401)
			throw error;
		state.whyError = error.message;
	}
	changed();
}

async function loadJobs() {
	state.jobs = await get("/api/v1/jobs");
	changed();
}

// The answer of an ended job covers its whole life and does not change. The server may have to ask for it first.
async function loadLife() {
	const { page, subject } = state.route;
	const job = page === "job" && endedOf(subject);

	if (!job || state.life?.cgroup === job.cgroup)
		return;
	const why = await get(`/api/v1/why?ended=${encodeURIComponent(job.cgroup || job.name)}`).catch((error) => {
		if (error.status !== 404) // zerneld has forgotten the job
			throw error;
		return { jobs: [] };
	});

	if (!why.pending) {
		state.life = { cgroup: job.cgroup, why };
		changed();
	}
}

// zerneld samples the process as long as this is asked for.
async function loadLines() {
	const { page, query } = state.route;
	const pid = page === "job" ? Number(query.lines) || 0 : 0;

	if (state.lines?.pid !== pid)
		Object.assign(state, { lines: pid ? { pid } : null, linesError: "" });
	if (!pid)
		return;
	try {
		const answer = await get(`/api/v1/lines?pid=${pid}&seconds=${LINES_SECONDS}`);

		if (!answer.pending && state.lines?.pid === pid)
			state.lines = { pid, answer };
		state.linesError = "";
	} catch (error) {
		if (error.status === 401)
			throw error;
		state.linesError = error.message;
	}
	changed();
}

async function loadHealth() {
	if (state.route.page !== "health")
		return;
	state.health = await get("/api/v1/health");
	changed();
}

// The cgroup of the job in the address; null if it has no job, undefined if it is not known.
export function cgroupOf(subject) {
	const running = state.snapshot?.jobs.find((job) => job.name === subject || job.cgroup === subject);
	const job = running ?? state.jobs?.jobs.find((each) => each.name === subject || each.cgroup === subject);

	return job ? job.cgroup : subject.startsWith("pid-") ? null : undefined;
}

// The ended job in the address; undefined while a job of this name runs.
export function endedOf(subject) {
	const isIt = (job) => job.name === subject || job.cgroup === subject;

	return state.snapshot?.jobs.some(isIt) ? undefined : state.jobs?.jobs.find((job) => isIt(job) && job.ended_ms);
}

const queryFor = (cgroup, since, until) =>
	`/api/v1/history?since=${Math.floor(since)}${until ? `&until=${Math.ceil(until)}` : ""}${cgroup ? `&job=${encodeURIComponent(cgroup)}` : ""}`;

// The history of one job for a range. A zoomed range is loaded once, a live one continues where it ended.
export async function loadHistory(kept, cgroup, query) {
	const key = [cgroup, query.span, query.since, query.until].join("|");
	const zoomed = isZoomed(query), [since, until] = rangeOf(query);

	if (kept?.key === key && zoomed)
		return kept;
	if (kept?.key === key && history.add(kept, await get(queryFor(cgroup, kept.until - kept.step))))
		return kept;
	const fresh = { ...history.empty(cgroup, until - since), key };

	history.add(fresh, await get(queryFor(cgroup, since, zoomed ? until : 0)));
	return fresh;
}

let historyTurn = 0;

async function loadJobHistory() {
	const { page, subject, query } = state.route;
	const cgroup = page === "job" && state.snapshot ? cgroupOf(subject) : undefined;
	const long = spanOf(query) > 900;

	if (cgroup === undefined || (long && historyTurn++ % 5 && state.history?.job === cgroup))
		return;
	const loaded = await loadHistory(state.history, cgroup, query);

	// The user may have gone to another job meanwhile.
	if (cgroupOf(state.route.subject) === cgroup)
		state.history = loaded;
	changed();
}

let refresh = [];

// The address changed: do not wait for the next turn.
export function onRoute() {
	if (!isExport())
		refresh.forEach((run) => run());
}

function readExport(element) {
	const data = JSON.parse(element.textContent);
	const kept = { ...history.empty(null, Infinity), key: "export" };

	Object.assign(state, { link: "file", why: data.why, jobs: data.jobs, health: data.health,
		exported: { since: data.since_ms / 1000, until: data.until_ms / 1000 } });
	history.add(kept, data.history);
	state.history = kept;
	feedSnapshot(data.snapshot);
	if (data.events)
		events.add(data.snapshot, data.events, new Set(data.snapshot.processes.map((process) => process.pid)), Infinity);
}

export function start() {
	const element = document.getElementById("zernel-data");

	if (element) {
		readExport(element);
		return;
	}
	stop();
	state.link = "connecting";
	state.missed = 0;
	open();
	refresh = [repeat(2000, loadWhy), repeat(10000, loadJobs), repeat(2000, loadJobHistory), repeat(1000, loadLife), repeat(1000, loadLines), repeat(5000, loadHealth)];
}
