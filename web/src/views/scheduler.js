// SPDX-License-Identifier: GPL-2.0-or-later
// What the scheduler does: its classes, their waits and shares, what it refused, and how to measure its effect.

import { h } from "preact";
import { count, ns, percent, rate } from "../format.js";
import { between, quantile } from "../hist.js";
import { isRank, keyOf, nodeRates, processesOf, useStore } from "../store.js";
import { abCommand, Command, Empty, Meter, Panel, Stat, Stats, Table } from "./parts.js";

const TONES = { attached: "good", waiting: "good", ejected: "bad" };

function State({ scheduler, rates }) {
	const total = rates.classes.reduce((all, { decisions }) => all + Object.values(decisions).reduce((a, b) => a + (b ?? 0), 0), 0);

	return h(Stats, null,
		h(Stat, { label: "scheduler", value: scheduler.state, tone: TONES[scheduler.state], note: scheduler.reason || undefined }),
		h(Stat, { label: "acts with", value: scheduler.actuator }),
		h(Stat, { label: "decisions", value: `${rate(rates.seconds ? total : undefined)} /s` }),
		h(Stat, { label: "promotions", value: `${rate(rates.promoted)} /s` }),
		h(Stat, { label: "reserved for ordinary tasks", value: `${scheduler.reserved_percent} %`, note: "of each CPU" }),
		h(Stat, { label: "slice", value: ns(scheduler.slice_ns) }),
		h(Stat, { label: "overdue after", value: `${scheduler.max_wait_ms} ms` }),
		scheduler.actuator === "nice" && h(Stat, { label: "nice threads", value: count(scheduler.nice_threads), note: `${rate(rates.niceChanges)} changes/s` }));
}

function Classes({ rates }) {
	const ran = rates.classes.reduce((all, each) => all + (each.ran ?? 0), 0);
	const rows = rates.classes.map(({ name, decisions, ran: own, wait, before }) => {
		const waits = rates.seconds ? between(before, wait) : wait;
		const nr = Object.values(decisions).reduce((a, b) => a + (b ?? 0), 0);

		return [name, rate(nr), percent(own ?? 0, ran),
			h(Meter, { value: ran ? (100 * (own ?? 0)) / ran : 0, color: "busy", label: `share of CPU time ${percent(own ?? 0, ran)}` }),
			ns(quantile(waits, 0.5)), ns(quantile(waits, 0.99)), ns(waits?.count ? waits.max : undefined)];
	});

	return h(Panel, { title: "Classes", hint: "last 5 to 10 s; the longest wait is since zerneld started" },
		h(Table, {
			caption: "Classes of tasks", className: "wide-name", rows,
			columns: [["class"], ["decisions/s", "num"], ["CPU time", "num"], ["share"], ["wait p50", "num"], ["wait p99", "num"], ["longest wait", "num"]],
		}));
}

function Decisions({ rates }) {
	const kinds = Object.keys(rates.classes[0].decisions);

	return h(Panel, { title: "Decisions per second" },
		h(Table, {
			caption: "Decisions per second", columns: [["class"], ...kinds.map((kind) => [kind, "num"])],
			rows: rates.classes.map(({ name, decisions }) => [name, ...kinds.map((kind) => rate(decisions[kind]))]),
		}));
}

function Refusals({ scheduler, overQuota }) {
	const rows = [
		scheduler.limit !== "none" && ["CPU limit that the scheduler cannot keep", scheduler.limit, "-"],
		scheduler.ejections > 0 && ["ejections by the kernel", scheduler.reason || "-", scheduler.ejections],
		scheduler.groups_left_out > 0 && ["cgroups without a place in the table", "-", scheduler.groups_left_out],
		scheduler.nice_dropped > 0 && ["threads that the nice actuator left out", "-", scheduler.nice_dropped],
		scheduler.nice_lost > 0 && ["nice values that another program changed", "-", scheduler.nice_lost],
		...overQuota.map((quota) => [`user ${quota.uid} wanted more than its part of a table`, "processes, memory, scans", `${quota.processes}, ${quota.memory}, ${quota.scans}`]),
	].filter(Boolean);

	return h(Panel, { title: "Refusals and ejections" }, rows.length
		? h(Table, { caption: "Refusals and ejections", columns: [["what"], ["reason"], ["times", "num"]], rows })
		: h(Empty, null, "Nothing was refused, and the kernel ejected nothing."));
}

export function Scheduler() {
	const { snapshot } = useStore();
	const rates = nodeRates();
	const subjects = [...new Set(snapshot.processes.filter(isRank).map((process) => keyOf(snapshot, process)))];

	return h("div", { class: "page" }, h("h1", null, "Scheduler"),
		h(State, { scheduler: snapshot.scheduler, rates }),
		h(Classes, { rates }), h(Decisions, { rates }),
		h(Refusals, { scheduler: snapshot.scheduler, overQuota: snapshot.over_quota }),
		h(Panel, { title: "Measure the effect on a job", hint: "switches the scheduler on and off, and compares step times" },
			subjects.length ? subjects.map((subject) => h(Command, { key: subject, text: abCommand(subject, processesOf(snapshot, subject)) }))
				: h(Empty, null, "No job runs.")));
}
