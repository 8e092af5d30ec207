#!/usr/bin/env bats
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Tests learning end to end, in a guest: observe, report, merge, predict, save and load. Each test
# continues from the state of the previous test.

load support

show() { sed 's/^/# /' <<<"$1" >&3; }

@test "a program run 3 times is predicted the 4th time, from its first slice" {
	dmesg -C
	start_zerneld
	program "$work/a/cc1"
	watch cc1
	for _ in 1 2 3; do "$work/a/cc1" burn 15; done
	let_learn
	"$work/a/cc1" burn 15
	watched
	show "$output"
	[ "$(grep -c 'began interactive, ' <<<"$output")" = 3 ]
	[[ "${lines[3]}" == *"began batch predicted"*"interactive 0 critical 0" ]]
}

@test "two programs with the same name and different paths have separate profiles" {
	program "$work/b/cc1"
	watch cc1
	"$work/b/cc1" nap 0.5 5000
	"$work/a/cc1" burn 15
	watched
	show "$output"
	[[ "${lines[0]}" == *"began interactive, "* ]]
	[[ "${lines[1]}" == *"began batch predicted"* ]]
}

@test "a program that never sleeps is learned as batch while it runs" {
	program "$work/spin"
	watch spin
	spins=()
	for _ in 1 2 3; do
		"$work/spin" burn 60000 3>&- &
		spins+=($!)
	done
	let_learn
	"$work/spin" burn 5
	# kill fails unless all processes still run.
	kill -9 "${spins[@]}"
	watched
	show "$output"
	[[ "${lines[3]}" == *"began batch predicted"* ]]
}

@test "an interactive program is learned as interactive, although its startup uses CPU" {
	program "$work/editor"
	for _ in 1 2 3; do "$work/editor" nap 1 5000; done
	let_learn
	watch editor
	"$work/editor" nap 1 5000
	watched
	show "$output"
	[[ "${lines[0]}" == *"began interactive predicted"* ]]
}

@test "a wrong prediction is corrected, and its profile loses confidence" {
	watch editor
	# A competing task makes the slices short.
	taskset -c 1 "$work/spin" burn 60000 3>&- &
	spin=$!
	for _ in 1 2 3 4 5; do taskset -c 1 "$work/editor" burn 100; done
	kill $spin
	watched
	show "$output"
	[[ "${lines[0]}" == *"began interactive predicted"* ]]
	# The correction comes after 32 ms of its own CPU time and the rest of the current slice.
	awk '/^pid/ && $(NF - 2) > 60000 { late++ } END { exit late > 1 }' <<<"$output"
	let_learn
	watch editor
	"$work/editor" burn 5
	watched
	show "$output"
	[[ "${lines[0]}" != *"began interactive predicted"* ]]
}

@test "known jobs of a fork storm run in the correct tier" {
	run tests/learning/storm 2 50 900
	show "$output"
	[ "$status" = 0 ]
}

@test "a program known as interactive that burns CPU gains no advantage" {
	run tests/learning/adversary 3
	show "$output"
	[ "$status" = 0 ]
}

@test "after a restart of zerneld, the first run is predicted" {
	stop_zerneld TERM
	run $zernel procdb show cc1
	show "$output"
	[[ "$output" == *batch*yes ]]
	start_zerneld
	run $zernel procdb forget cc1 --file $state/procdb
	[ "$status" = 1 ]
	[[ "$output" == *"zerneld is running"* ]]
	watch cc1
	"$work/a/cc1" burn 5
	watched
	show "$output"
	[[ "${lines[0]}" == *"began batch predicted"* ]]
}

@test "after kill -9 and a power loss during a save, the first run is predicted" {
	stop_zerneld KILL
	head -c 100 $state/procdb >$state/procdb.new
	start_zerneld
	watch cc1
	"$work/a/cc1" burn 5
	watched
	show "$output"
	[[ "${lines[0]}" == *"began batch predicted"* ]]
	stop_zerneld TERM
}

@test "an invalid file is moved away and reported" {
	head -c 100 $state/procdb >$state/half
	mv $state/half $state/procdb
	# zerneld reads the file before it loads BPF programs. Without capabilities, the slow load fails early.
	setpriv --bounding-set -all "$ZERNEL_BUILD/src/daemon/zerneld" 2>"$work/aside" 3>&- &
	wait_until grep "refused .*procdb: .* bytes are missing .*; moved it to .*procdb.bad-1" "$work/aside"
	kill $!
	wait $! || true
	[ "$(stat -c %s $state/procdb.bad-1)" = 100 ]
	! dmesg | grep -E 'WARNING:|BUG:|sched_ext:.*(error|stall)'
}
