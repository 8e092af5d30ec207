// SPDX-License-Identifier: GPL-2.0-or-later
// The causes of idle time in five families, and the phases: names, letters and colors. A letter is always
// shown beside a color. The titles are those of `zernel why`; tests/web compares them with src/answers.

export const CAUSES = [
	{ key: "cpu", family: "launcher", letter: "L", title: "launcher computed", word: "own cpu" },
	{ key: "runqueue", family: "runqueue", letter: "Q", title: "launcher waited for a CPU", word: "runqueue" },
	{ key: "loader_runqueue", family: "runqueue", letter: "Ql", title: "loaders waited for a CPU", word: "load runq" },
	{ key: "loader_cpu", family: "data", letter: "Dc", title: "loaders computed", word: "load cpu" },
	{ key: "loader_disk", family: "data", letter: "Dd", title: "loaders waited for a disk", word: "load disk" },
	{ key: "loader_other", family: "data", letter: "De", title: "loaders waited, other reason", word: "load else" },
	{ key: "collective", family: "ranks", letter: "R", title: "launcher waited for ranks", word: "ranks" },
	{ key: "disk", family: "waits", letter: "Wd", title: "launcher waited for a disk", word: "disk" },
	{ key: "memory", family: "waits", letter: "Wm", title: "launcher waited for memory", word: "memory" },
	{ key: "lock", family: "waits", letter: "Wl", title: "launcher waited for a thread", word: "lock" },
	{ key: "other", family: "waits", letter: "Ws", title: "launcher slept", word: "other" },
];

export const FAMILIES = [
	{ key: "launcher", letter: "L", title: "launcher computed" },
	{ key: "runqueue", letter: "Q", title: "waited for a CPU" },
	{ key: "data", letter: "D", title: "waited for data" },
	{ key: "ranks", letter: "R", title: "waited for ranks" },
	{ key: "waits", letter: "W", title: "other waits" },
];

export const PHASES = {
	unknown: { letter: "·", word: "-" },
	data_loading: { letter: "D", word: "data" },
	gpu_compute: { letter: "G", word: "gpu" },
	nccl_collective: { letter: "C", word: "collect" },
	optimizer_step: { letter: "O", word: "optim" },
};
export const PHASE_KEYS = Object.keys(PHASES);

export const ROLES = {
	other: "other",
	launcher: "launch",
	sync_waiter: "waiter",
	loader: "loader",
	collective_helper: "helper",
};

// `no_requests` is an answer of `why`, not a cause that is counted.
const WORDS = new Map([...CAUSES.map((cause) => [cause.key, cause.word]), ["no_requests", "no requests"]]);

export const causeWord = (key) => WORDS.get(key) ?? key;

// The parts of a bar in order: the causes, or their families. Each has the key of its color.
export function parts(expanded) {
	return expanded ? CAUSES.map((cause) => ({ ...cause, color: cause.family, of: [cause.key] }))
		: FAMILIES.map((family) => ({
			...family,
			color: family.key,
			of: CAUSES.filter((cause) => cause.family === family.key).map((cause) => cause.key),
		}));
}

export const sumOf = (values, keys) => keys.reduce((sum, key) => sum + (values[key] ?? 0), 0);
