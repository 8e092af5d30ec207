/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "work/burn.h"

#include <time.h>

#define CALIBRATION_ROUNDS 200000
#define CALIBRATION_TRIES  5

u64 thread_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (u64)ts.tv_sec * NSEC_PER_SEC + (u64)ts.tv_nsec;
}

static u64 mix(u64 x)
{
	x ^= x >> 31;
	x *= 0x9e3779b97f4a7c15ULL;
	x ^= x >> 29;
	x *= 0xd6e8feb86659fd93ULL;
	return x ^ (x >> 32);
}

u64 random_at(u64 seed, u64 index)
{
	return mix(mix(seed + 0x632be59bd9b4e019ULL) ^ mix(index + 1));
}

u64 random_around(u64 mean, u64 seed, u64 index)
{
	return mean * (800 + random_at(seed, index) % 401) / 1000;
}

static void spin(u64 rounds)
{
	u64 x = rounds;

	for (u64 i = 0; i < rounds; i++) {
		x = mix(x);
		/* Prevents the compiler from removing the loop. */
		__asm__ volatile("" : "+r"(x));
	}
}

struct burn burn_calibrate(void)
{
	struct burn burn = { .rounds_per_ms = 1 };

	/* The fastest attempt was interrupted least. */
	for (int i = 0; i < CALIBRATION_TRIES; i++) {
		u64 start = thread_cpu_ns();
		u64 ns, rounds;

		spin(CALIBRATION_ROUNDS);
		ns = thread_cpu_ns() - start;
		rounds = CALIBRATION_ROUNDS * NSEC_PER_MSEC / (ns ? ns : 1);
		if (rounds > burn.rounds_per_ms)
			burn.rounds_per_ms = rounds;
	}
	return burn;
}

/*
 * Reading the CPU time is a system call, so the loop spends most of the remaining time
 * before it reads again: only a few calls for any amount of work.
 */
void burn_ns(const struct burn *burn, u64 ns)
{
	u64 end, now;

	if (ns == 0)
		return;
	now = thread_cpu_ns();
	end = now + ns;
	while (now < end) {
		u64 chunk = (end - now) * 9 / 10 + 200;

		spin(burn->rounds_per_ms * chunk / NSEC_PER_MSEC + 1);
		now = thread_cpu_ns();
	}
}
