// SPDX-License-Identifier: GPL-2.0-or-later
// Colors of style.css for canvases. They change with the preference of the user.

let cache = new Map();
const listeners = new Set();

for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"])
	matchMedia(query).addEventListener("change", () => {
		cache = new Map();
		for (const listener of listeners)
			listener();
	});

export function color(name) {
	if (!cache.has(name))
		cache.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
	return cache.get(name);
}

export function onTheme(listener) {
	listeners.add(listener);
	return () => listeners.delete(listener);
}
