// SPDX-License-Identifier: GPL-2.0-or-later
// The frame of the page: navigation, state of the connection, keys, token.

import { h, render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { onRoute, start, stop } from "./data.js";
import { count, dateTime } from "./format.js";
import { onKey, KEYS } from "./keys.js";
import { current, format, PAGES } from "./route.js";
import { token } from "./socket.js";
import { changed, dropped, isOld, setPaused, state, useStore } from "./store.js";
import { Compare } from "./views/compare.js";
import { Health } from "./views/health.js";
import { Job } from "./views/job.js";
import { Now } from "./views/now.js";
import { Scheduler } from "./views/scheduler.js";
import { columnHelp } from "./views/table.js";

const VIEWS = { now: Now, job: Job, scheduler: Scheduler, compare: Compare, health: Health };
const TITLES = { now: "Now", job: "Job", scheduler: "Scheduler", compare: "Compare", health: "Health" };

// What the user must know about the data, worst first: [tone, text].
function condition() {
	const { link, paused, snapshot, receivedAt } = state;
	const age = Math.round((performance.now() - receivedAt) / 1000);

	if (link === "file")
		return ["muted", `Recording, ends ${dateTime(snapshot.time_ms)}`];
	if (paused)
		return ["warn", `Paused at ${dateTime(snapshot?.time_ms)}`];
	if (link === "lost")
		return ["bad", snapshot ? `Connection lost. The data is ${age} s old.` : "Connection lost."];
	if (isOld())
		return ["warn", `The data is ${age} s old.`];
	return link === "open" ? ["good", "Live"] : ["muted", "Connecting"];
}

function Losses() {
	const lost = state.snapshot ? dropped(state.snapshot).reduce((all, [, nr]) => all + nr, 0) : 0;

	return [
		lost > 0 && h("a", { class: "pill warn", href: format({ page: "health" }) }, `${count(lost)} dropped`),
		state.missed > 0 && h("span", { class: "pill warn" }, `${count(state.missed)} messages missed`),
	];
}

function Header() {
	const { route, snapshot } = state;
	const [tone, text] = condition();

	return h("header", { class: "top" },
		h("a", { class: "brand", href: "#/now" }, "zernel"),
		h("span", { class: "host" }, snapshot?.host, snapshot && h("small", null, ` Linux ${snapshot.kernel}, zerneld ${snapshot.zernel}`)),
		h("nav", { "aria-label": "Pages" }, PAGES.map((page, i) => h("a", {
			key: page, href: format({ page, subject: page === "job" && route.page === "job" ? route.subject : "" }),
			"aria-current": route.page === page ? "page" : undefined, title: `Key ${i + 1}`,
		}, TITLES[page]))),
		h("div", { class: "status" }, h(Losses), h("span", { class: `pill ${tone}`, role: "status" }, text),
			state.link !== "file" && h("button", { type: "button", "aria-pressed": String(state.paused), onClick: () => setPaused(!state.paused) }, state.paused ? "Continue" : "Pause"),
			h("button", { type: "button", "aria-label": "Help", onClick: () => document.getElementById("help").showModal() }, "?")));
}

function Help() {
	return h("dialog", { id: "help", "aria-label": "Help" },
		h("h2", null, "Keys"), h("dl", { class: "keys" }, KEYS.map(([keys, text]) => [h("dt", null, keys), h("dd", null, text)])),
		h("h2", null, "Columns"), h("dl", { class: "keys" }, columnHelp.map(([title, text]) => [h("dt", null, title), h("dd", null, text)])),
		h("form", { method: "dialog" }, h("button", null, "Close")));
}

function Token() {
	const submit = (event) => {
		event.preventDefault();
		token.set(new FormData(event.currentTarget).get("token").trim());
		start();
		changed();
	};

	return h("main", { class: "gate" }, h("h1", null, "Token"),
		h("p", null, "This server needs the token that ", h("code", null, "zernel serve"), " made. A member of group zernel reads it on the node:"),
		h("p", null, h("code", null, "cat /run/zernel-serve/token")),
		h("form", { onSubmit: submit },
			h("label", null, "Token", h("input", { name: "token", type: "password", autocomplete: "off", required: true, autofocus: true })),
			h("button", { class: "primary" }, "Open")),
		token.get() && h("p", { class: "warn-text", role: "alert" }, state.refusal || "The token is not accepted."));
}

function Waiting() {
	return h("main", { class: "gate" }, h("h1", null, "zernel"), h("p", { role: "status" },
		state.link === "lost" ? "zernel serve does not send data. This page tries again." : "Waiting for the first data."),
	state.refusal && h("p", { class: "warn-text" }, state.refusal));
}

function App() {
	const { route, snapshot, link, notice } = useStore();
	const main = useRef(), shown = useRef(route.page);

	useEffect(() => {
		document.title = `${TITLES[route.page]}${route.subject ? ` ${route.subject}` : ""} · ${snapshot?.host ?? "Zernel"}`;
	}, [route.page, route.subject, snapshot?.host]);
	// A new page begins at its top, also for the keyboard.
	useEffect(() => {
		if (shown.current !== route.page && main.current) {
			shown.current = route.page;
			main.current.focus({ preventScroll: true });
			scrollTo(0, 0);
		}
	}, [route.page]);
	if (link === "refused")
		return h(Token);
	if (!snapshot)
		return h(Waiting);
	return [
		h("a", { class: "skip", href: "#main", onClick: (event) => { event.preventDefault(); main.current.focus(); } }, "Skip to the content"),
		h(Header), h("main", { id: "main", tabindex: -1, ref: main }, h(VIEWS[route.page], { key: `${route.page} ${route.query.causes ?? ""}` })),
		h("p", { class: notice ? "notice" : "sr", role: "status" }, notice), h(Help),
	];
}

// "#token=..." gives the token to this tab. It must not stay in the address.
function takeToken() {
	const found = location.hash.match(/^#token=(.+)$/);

	if (found) {
		token.set(decodeURIComponent(found[1]));
		history.replaceState(null, "", location.pathname);
	}
}

function run() {
	takeToken();
	state.route = current();
	addEventListener("hashchange", () => {
		takeToken();
		state.route = current();
		state.notice = "";
		onRoute();
		changed();
	});
	addEventListener("keydown", onKey);
	// A browser may keep a page that the user has left, and its connection, which then reads nothing.
	addEventListener("pagehide", stop);
	addEventListener("pageshow", (event) => event.persisted && start());
	start();
	setInterval(() => (state.link === "lost" || isOld()) && changed(), 1000); // the age of the data
	document.getElementById("app").textContent = "";
	render(h(App), document.getElementById("app"));
}

if (document.readyState === "loading")
	addEventListener("DOMContentLoaded", run);
else
	run();
