// SPDX-License-Identifier: GPL-2.0-or-later
// One cursor for all charts: the time in ms under the pointer, or null.

const followers = new Set();

export function follow(follower) {
	followers.add(follower);
	return () => followers.delete(follower);
}

// `from` is the chart that moved the cursor; it is not told again.
export function point(ms, from) {
	for (const follower of followers)
		if (follower !== from)
			follower(ms);
}
