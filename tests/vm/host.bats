#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
#
# tools/vm seen from outside: what it passes on and what it leaves behind.

# Guests of other tests run meanwhile: these have a directory of their own.
setup() {
	VM_RUNS=$(mktemp -d /var/tmp/host.XXXXXX)
	export VM_RUNS
}

# Whatever happened, no run directory and no process that names it is left.
teardown() {
	rmdir "$VM_RUNS"
	! grep -qsa "$VM_RUNS" /proc/[0-9]*/cmdline
}

@test "output and exit status of the command come through" {
	run --separate-stderr tools/vm -- sh -c 'echo out; echo err >&2; exit 7'
	[ "$status" = 7 ]
	[ "$output" = out ]
	[ "$stderr" = err ]
}

@test "a kernel panic is a failure and shows the console" {
	run tools/vm -- sh -c 'echo c >/proc/sysrq-trigger'
	[ "$status" = 125 ]
	[[ "$output" == *"Kernel panic"* ]]
}

@test "a guest that does not finish is ended in time" {
	run tools/vm --timeout 15 -- sleep 300
	[ "$status" = 124 ]
}

@test "Ctrl-C ends the guest and leaves nothing" {
	# bats ignores SIGINT in background children; env gives it its default back.
	setsid env --default-signal=INT tools/vm -- sleep 300 3>&- &
	pid=$!
	for _ in {1..3000}; do
		compgen -G "$VM_RUNS/vm.*/booted" >/dev/null && break
		sleep 0.1
	done
	compgen -G "$VM_RUNS/vm.*/booted"
	kill -INT -- "-$pid"
	wait "$pid" || status=$?
	[ "$status" = 130 ]
}
