// SPDX-License-Identifier: GPL-2.0-or-later
// The whole state of a view is in the fragment of the address: #/job/slurm-42?span=900&rank=3

export const PAGES = ["now", "job", "scheduler", "compare", "health"];

export function parse(hash) {
	const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
	const [page, ...rest] = path.split("/");
	let subject;

	try {
		subject = decodeURIComponent(rest.join("/"));
	} catch {
		subject = "";
	}
	return {
		page: PAGES.includes(page) ? page : "now",
		subject,
		query: Object.fromEntries(new URLSearchParams(query)),
	};
}

export function format({ page, subject = "", query = {} }) {
	const kept = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
	const text = new URLSearchParams(kept).toString();

	return `#/${page}${subject ? "/" + encodeURIComponent(subject) : ""}${text ? "?" + text : ""}`;
}

export const current = () => parse(location.hash);

export function go(route) {
	location.hash = format(route);
}

// Changes the query of this view without a new entry in the browser's history. Listeners know it at once: the browser would
// tell them later, and a snapshot that is drawn before would take back what was typed meanwhile.
export function adjust(query) {
	const route = current();

	history.replaceState(null, "", format({ ...route, query: { ...route.query, ...query } }));
	dispatchEvent(new HashChangeEvent("hashchange"));
}
