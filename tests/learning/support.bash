# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the guest's tests of learning share. ZERNEL_BUILD is the build tree.
# shellcheck shell=bash
# Not all that is set here is used here, but in the tests that source this file.
# shellcheck disable=SC2034

scx=/sys/kernel/sched_ext
state=/var/lib/zernel
work=/run/learning
behave=$ZERNEL_BUILD/tests/learning/behave
zernel=$ZERNEL_BUILD/src/cli/zernel
mkdir -p "$work"

wait_until() {
	for _ in {1..300}; do
		"$@" && return
		sleep 0.3
	done
	echo "waited in vain: $*"
	return 1
}

# Without a process of its own: there are many looks, and the machine is slow.
state_is() {
	read -r is <$scx/state
	[ "$is" = "$1" ]
}

start_zerneld() {
	"$ZERNEL_BUILD/src/daemon/zerneld" 2>>"$work/log" 3>&- 9>&- &
	echo $! >"$work/pid"
	wait_until state_is enabled || { cat "$work/log" && return 1; }
}

stop_zerneld() { # SIGNAL
	kill "-$1" "$(cat "$work/pid")"
	wait "$(cat "$work/pid")" 2>/dev/null || true
	rm "$work/pid"
	wait_until state_is disabled
}

# For who runs on its own, and beside others who have started it already.
with_zerneld() { # COMMAND...
	if [ -e "$work/pid" ]; then
		"$@"
	else
		start_zerneld
		"$@"
		stop_zerneld TERM
	fi
}

# From here on what is started under a name is watched, until watched() leaves it in
# `output` and `lines`.
watch() { # NAME
	rm -f "$work/end" "$work/watched"
	mkfifo "$work/end"
	"$ZERNEL_BUILD/tests/learning/watch" "$1" <"$work/end" >"$work/watched" 2>&1 3>&- 9>&- &
	watcher=$!
	exec 9>"$work/end"
	wait_until grep -q watching "$work/watched"
}

watched() {
	exec 9>&-
	wait "$watcher"
	output=$(sed 1d "$work/watched")
	mapfile -t lines <<<"$output"
}

# A program of its own: the same file under another name is another program.
program() { # NAME
	mkdir -p "$(dirname "$1")"
	cp "$behave" "$1"
}

# The tick that brings predictions up to date comes once a second.
let_learn() { sleep 1.3; }
