// SPDX-License-Identifier: GPL-2.0-or-later
// Whether Zernel works as it should: doctor, drops, probes, features of the kernel, own cost.

import { h } from "preact";
import { useState } from "preact/hooks";
import { isExport } from "../data.js";
import { bytes, count, ns, percent } from "../format.js";
import { getBlob } from "../socket.js";
import { changed, dropped, nodeRates, state, useStore } from "../store.js";
import { Command, Empty, Panel, Stat, Stats, Table } from "./parts.js";

function Cost({ snapshot }) {
	const rates = nodeRates();

	return h(Stats, null,
		h(Stat, { label: "CPU of zerneld", value: percent(rates.cpu, 1e9), note: "of one CPU, last 5 to 10 s" }),
		h(Stat, { label: "BPF programs", value: percent(rates.bpf, 1e9), note: "of one CPU" }),
		h(Stat, { label: "memory of zerneld", value: bytes(snapshot.cost.rss_bytes) }),
		h(Stat, { label: "longest iteration", value: ns(snapshot.cost.loop_longest_ns), note: "of the loop of zerneld" }),
		h(Stat, { label: "restarts", value: count(snapshot.restarts), tone: snapshot.restarts ? "warn" : "" }),
		h(Stat, { label: "learned profiles", value: count(snapshot.learning.profiles), note: `${count(snapshot.learning.confident)} confident` }));
}

function Drops({ snapshot }) {
	const rows = dropped(snapshot).map(([kind, nr]) => [kind, count(nr)]);

	return h(Panel, { title: "Dropped data", hint: "since zerneld started" }, rows.length
		? h(Table, { caption: "Dropped data", columns: [["kind"], ["number", "num"]], rows })
		: h(Empty, null, "Nothing was dropped."));
}

function Probes({ probes }) {
	const names = probes.single_stepped_names;
	const single = probes.single_stepped > 0;

	return h(Panel, { title: "Probes" }, h(Stats, null,
		h(Stat, { label: "libraries", value: count(probes.libraries), note: probes.libraries_left_out ? `${probes.libraries_left_out} left out` : undefined, tone: probes.libraries_left_out ? "warn" : "" }),
		h(Stat, { label: "probes", value: count(probes.probes) }),
		h(Stat, { label: "processes", value: count(probes.processes), note: probes.processes_left_out ? `${probes.processes_left_out} left out` : undefined, tone: probes.processes_left_out ? "warn" : "" }),
		h(Stat, { label: "failed", value: count(probes.failed), tone: probes.failed ? "warn" : "" }),
		h(Stat, { label: "single-stepped", value: count(probes.single_stepped), tone: single ? "warn" : "" })),
	single && h("p", { class: "warn-text" }, "The kernel executes the first instruction of these functions alone, which costs a few microseconds per call: ", names));
}

function Features({ snapshot, health }) {
	const known = health?.lacks?.map(({ feature, since, loss, refused }) => [feature, loss, refused ? "refused by this kernel" : since]);
	const rows = known ?? snapshot.lacks.map((feature) => [feature, "", snapshot.refused.includes(feature) ? "refused by this kernel" : ""]);

	return h(Panel, { title: "Features of the kernel", hint: `Linux ${snapshot.kernel}` }, rows.length
		? h(Table, { caption: "Features that are left out", columns: [["feature"], ["what is missing"], ["needs"]], rows })
		: h(Empty, null, "The kernel has all that zerneld uses."));
}

function Serve({ health }) {
	const { history, serve } = health;

	return h(Panel, { title: "This gateway" }, h(Stats, null,
		h(Stat, { label: "connections", value: count(serve.connections), note: `live pages: ${count(serve.websockets)}` }),
		h(Stat, { label: "refused", value: count(serve.refused), tone: serve.refused ? "warn" : "" }),
		h(Stat, { label: "skipped messages", value: count(serve.skipped), tone: serve.skipped ? "warn" : "", note: "to slow clients" }),
		h(Stat, { label: "closed clients", value: count(serve.cut), tone: serve.cut ? "warn" : "", note: "too slow" }),
		history.enabled ? h(Stat, { label: "history", value: bytes(history.bytes), note: `${count(history.ranks)} ranks, at most ${bytes(history.bytes_max)}` })
			: h(Stat, { label: "history", value: "off" }),
		history.thinned > 0 && h(Stat, { label: "thinned values", value: count(history.thinned), tone: "warn" })));
}

function Recording() {
	const [seconds, setSeconds] = useState("60");
	const save = async () => {
		try {
			const blob = await getBlob(`/api/v1/recording?seconds=${seconds}`);
			const link = document.createElement("a");

			link.href = URL.createObjectURL(blob);
			link.download = `zernel-${state.snapshot.host}.zr`;
			link.click();
			setTimeout(() => URL.revokeObjectURL(link.href), 60000);
			state.notice = `Saved ${bytes(blob.size)}.`;
		} catch (error) {
			state.notice = error.message;
		}
		changed();
	};

	return h(Panel, { title: "Recording", hint: "for zernel replay, zernel export --perfetto and zernel export --html" },
		h("div", { class: "tools" },
			h("label", null, "Last ", h("select", { value: seconds, onChange: (event) => setSeconds(event.currentTarget.value) },
				[["60", "1 min"], ["300", "5 min"], ["900", "15 min"]].map(([value, title]) => h("option", { key: value, value }, title)))),
			h("button", { type: "button", onClick: save }, "Save a recording")));
}

export function Health() {
	const { snapshot, health } = useStore();

	return h("div", { class: "page" }, h("h1", null, "Health"),
		snapshot.own ? h(Empty, null, "zernel serve sees only its own processes. Add its user to group zernel.") : h(Cost, { snapshot }),
		h("div", { class: "pair" }, h(Drops, { snapshot }), h(Features, { snapshot, health })),
		h(Probes, { probes: snapshot.probes }),
		health?.serve && h(Serve, { health }),
		!isExport() && h(Recording),
		h(Panel, { title: "Doctor", hint: "checks the kernel, limits, libraries and GPUs of the node itself" }, h(Command, { text: "zernel doctor" })));
}
