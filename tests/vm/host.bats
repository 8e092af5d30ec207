#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests tools/vm from outside: output, exit status, and cleanup.

# Guests of other tests run at the same time, so these use their own directory.
setup() {
	VM_RUNS=$(mktemp -d /var/tmp/host.XXXXXX)
	export VM_RUNS
}

# After each test, no run directory remains, and no process with its name in the command line.
teardown() {
	rmdir "$VM_RUNS"
	! grep -qsa "$VM_RUNS" /proc/[0-9]*/cmdline
}

# The command writes to memory, so that it never waits for the machine. A process that it leaves behind holds nothing up.
@test "tools/vm passes on output and exit status of the command" {
	run --separate-stderr tools/vm -- sh -c 'stat -f -L -c %T /dev/stdout; echo err >&2; seq 20000; sleep 300 & exit 7'
	[ "$status" = 7 ]
	[ "${lines[0]}" = tmpfs ]
	[ "${#lines[@]}" = 20001 ]
	[ "${lines[20000]}" = 20000 ]
	[ "$stderr" = err ]
}

@test "a kernel panic fails the run and prints the console" {
	run tools/vm -- sh -c 'echo c >/proc/sysrq-trigger'
	[ "$status" = 125 ]
	[[ "$output" == *"Kernel panic"* ]]
}

@test "a guest that exceeds the timeout is stopped" {
	run tools/vm --timeout 15 -- sleep 300
	[ "$status" = 124 ]
}

@test "Ctrl-C stops the guest and leaves no process or directory" {
	# bats ignores SIGINT in background children; env restores the default.
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
