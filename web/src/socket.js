// SPDX-License-Identifier: GPL-2.0-or-later
// The connection to `zernel serve`: GET requests and one WebSocket, with the token of the user. The token stays
// in the memory of this tab (sessionStorage); it is in no address and in no cookie.

const TOKEN_KEY = "zernel-token";
const RETRY_MS = [500, 1000, 2000, 5000];

export const token = {
	get: () => sessionStorage.getItem(TOKEN_KEY) ?? "",
	set: (text) => sessionStorage.setItem(TOKEN_KEY, text),
};

export class HttpError extends Error {
	constructor(status, text) {
		super(text || `HTTP ${status}`);
		this.status = status;
	}
}

function request(path) {
	const headers = token.get() ? { Authorization: `Bearer ${token.get()}` } : {};

	return fetch(path, { headers, cache: "no-store", credentials: "omit", redirect: "error" });
}

export async function get(path) {
	const response = await request(path);

	if (!response.ok)
		throw new HttpError(response.status, (await response.text()).trim());
	return response.json();
}

export async function getBlob(path) {
	const response = await request(path);

	if (!response.ok)
		throw new HttpError(response.status, (await response.text()).trim());
	return response.blob();
}

// A token can contain characters that a subprotocol cannot, so it is sent in base64url.
function protocols() {
	const encoded = btoa(token.get()).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

	return token.get() ? ["zernel", `bearer.${encoded}`] : ["zernel"];
}

/*
 * Opens a WebSocket and opens it again when it ends, until close(). `on` has message(object), open() and lost().
 */
export function connect(path, on) {
	const url = new URL(path, location.href);
	let socket, timer, failures = 0, closed = false;

	url.protocol = url.protocol.replace("http", "ws");
	url.hash = "";

	function open() {
		socket = new WebSocket(url, protocols());
		socket.onopen = () => on.open?.();
		socket.onmessage = (event) => {
			failures = 0;
			on.message(JSON.parse(event.data));
		};
		socket.onclose = () => {
			if (closed)
				return;
			on.lost?.();
			timer = setTimeout(open, RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]);
		};
	}

	open();
	return {
		close() {
			closed = true;
			clearTimeout(timer);
			socket.close();
		},
	};
}
