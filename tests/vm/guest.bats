#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests that need a kernel with sched_ext. Runs as the only command of a guest.

scx=/sys/kernel/sched_ext
cpu1=/sys/devices/system/cpu/cpu1/online

setup() {
	dmesg -C
}

start_zerneld() {
	"$ZERNEL_BUILD/src/daemon/zerneld" --attach yes 2>"$BATS_TEST_TMPDIR/log" 3>&- &
	zerneld=$!
	wait_for_state enabled
}

wait_for_state() {
	for _ in {1..600}; do
		[ "$(cat $scx/state)" = "$1" ] && return
		sleep 0.1
	done
	cat "$BATS_TEST_TMPDIR/log"
	return 1
}

# A CPU that comes online for the first time detaches the scheduler; zerneld attaches it again.
attached_times() {
	for _ in {1..600}; do
		[ "$(grep -c 'scheduler attached' "$BATS_TEST_TMPDIR/log")" = "$1" ] && return
		sleep 0.1
	done
	cat "$BATS_TEST_TMPDIR/log"
	return 1
}

teardown() {
	echo 1 >$cpu1 || true
	[ -z "${zerneld-}" ] || kill -9 "$zerneld" 2>/dev/null || true
	wait_for_state disabled
	# The kernel log must not report a problem.
	! dmesg | grep -E 'WARNING:|BUG:|sched_ext:.*(error|stall)'
}

@test "$(uname -r): BPF and user space agree on 10,000 parity vectors" {
	# The suite `parity` runs 100,000 on the kernel of the machine. Here 100,000 take 37 s of virtual time, 10,000 take 9 s.
	run env PARITY_VECTORS=10000 "$ZERNEL_BUILD/tests/parity/test_parity"
	echo "$output" | sed 's/^/# /' >&3
	[ "$status" = 0 ]
	[[ "$output" != *SKIP* ]]
}

# One zerneld serves all of these cases, because an emulated CPU spends most of the time on loading it.
@test "$(uname -r): zernel handles a CPU that was offline at the start, a second zerneld, 20 s of stress with hotplug, and kill -9" {
	echo 0 >$cpu1
	start_zerneld
	echo 1 >$cpu1
	attached_times 2

	run "$ZERNEL_BUILD/src/daemon/zerneld"
	[ "$status" = 1 ]
	[[ "$output" == *"another zerneld answers"* ]]
	[ "$(cat $scx/root/ops)" = zernel ]

	rejected=$(cat $scx/nr_rejected)
	stress-ng --quiet --timeout 20 --cpu 2 --affinity 1 --fork 1 --switch 1 --yield 1 3>&- &
	stress=$!
	# Tasks with the smallest weight: strictly fair scheduling would delay them until the kernel ejects the scheduler.
	for _ in {1..3}; do
		nice -n 19 timeout 18 sh -c 'while :; do :; done' 3>&- &
	done
	sleep 6
	echo 0 >$cpu1
	sleep 4
	echo 1 >$cpu1
	wait "$stress"
	# From a dump, show the reason of the exit and the queue of each runnable task.
	grep -E '^[^ ]+Z zerneld |^CPU|^ [ *]R|cpus=' "$BATS_TEST_TMPDIR/log"
	[ "$(cat $scx/state)" = enabled ]
	[ "$(cat $scx/root/ops)" = zernel ]
	[ "$(cat $scx/nr_rejected)" = "$rejected" ]
	attached_times 2

	kill -9 "$zerneld"
	wait_for_state disabled
}
