# SPDX-License-Identifier: GPL-2.0-or-later
#
# Helpers for the learning tests in the guest. ZERNEL_BUILD is the build tree.
# shellcheck shell=bash
# The tests that source this file use the variables that this file does not use.
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
	echo "timeout: $*"
	return 1
}

# Starts no process, because this check runs often and the guest is slow.
state_is() {
	read -r is <$scx/state
	[ "$is" = "$1" ]
}

start_zerneld() {
	"$ZERNEL_BUILD/src/daemon/zerneld" --attach yes 2>>"$work/log" 3>&- 9>&- &
	echo $! >"$work/pid"
	wait_until state_is enabled || { cat "$work/log" && return 1; }
}

stop_zerneld() { # SIGNAL
	kill "-$1" "$(cat "$work/pid")"
	wait "$(cat "$work/pid")" 2>/dev/null || true
	rm "$work/pid"
	wait_until state_is disabled
}

# Starts zerneld for the command, unless it already runs.
with_zerneld() { # COMMAND...
	if [ -e "$work/pid" ]; then
		"$@"
	else
		start_zerneld
		"$@"
		stop_zerneld TERM
	fi
}

# Watches processes whose names begin with NAME until watched(), which stores the result in `output`
# and `lines`.
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

# Creates a new program: a copy of the same file under another name is another program.
program() { # NAME
	mkdir -p "$(dirname "$1")"
	cp "$behave" "$1"
}

# Predictions are updated once a second.
let_learn() { sleep 1.3; }
