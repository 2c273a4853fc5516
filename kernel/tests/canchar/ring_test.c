// SPDX-License-Identifier: GPL-2.0-only
/*
 * canchar/ring.h in user space: a producer and a consumer thread, and shared words
 * that a process has overwritten. TAP on standard output.
 *
 *	cc -O1 -g -pthread -fsanitize=thread ring_test.c && ./a.out
 *
 * ThreadSanitizer knows no fences, but every access here is atomic: what it could
 * report is a plain access that the rings must not make.
 */

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t u32;
typedef uint64_t u64;

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define ____cacheline_aligned __attribute__((aligned(64)))
#define READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, value) __atomic_store_n(&(x), value, __ATOMIC_RELAXED)
#define smp_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, value) __atomic_store_n(p, value, __ATOMIC_RELEASE)
#define smp_wmb() __atomic_thread_fence(__ATOMIC_RELEASE)
#define smp_rmb() __atomic_thread_fence(__ATOMIC_ACQUIRE)

#include "../../canchar/ring.h"

/* Times that the ring runs full; where two threads share a busy processor, each is a turn of theirs. */
#define ROUNDS 3000

static struct canchar_ring shared;
static struct canchar_frame slots[64];
static struct canchar_ring_end ring;
static bool overwrite;
static u64 frames;
static unsigned long failures;

static void reset(u32 count)
{
	memset(&shared, 0, sizeof(shared));
	memset(&ring, 0, sizeof(ring));
	ring.shared = &shared;
	ring.slots = slots;
	ring.mask = count - 1;
}

static void expect(bool holds, const char *what)
{
	if (!holds && failures++ < 5)
		printf("# %s\n", what);
}

/* All three words of frame n are functions of n: a torn one shows. */
static struct canchar_frame frame(u64 n)
{
	struct canchar_frame frame = { .stamp_ns = n, .can_id = (u32)n * 3, .len = 8 };

	memcpy(frame.data, &n, sizeof(n));
	return frame;
}

static bool intact(const struct canchar_frame *seen)
{
	struct canchar_frame should = frame(seen->stamp_ns);

	return !memcmp(&should, seen, sizeof(should));
}

static void *produce(void *unused)
{
	u64 n;

	for (n = 1; n <= frames; n++) {
		struct canchar_frame next = frame(n);

		if (overwrite) {
			canchar_ring_overwrite(&ring, &next);
			if (n % 97 == 0)
				sched_yield();
			continue;
		}
		while (!canchar_ring_put(&ring, &next))
			sched_yield();
	}
	return unused;
}

static void consume(void)
{
	u64 last = 0, lost_in_all = 0, received = 0;

	while (last < frames) {
		struct canchar_frame seen;
		u32 lost = 0;
		bool there = overwrite ? canchar_ring_get_latest(&ring, &seen, &lost) :
					 canchar_ring_get(&ring, &seen);

		if (!there) {
			sched_yield();
			continue;
		}
		expect(intact(&seen), "a torn frame");
		expect(seen.stamp_ns == last + 1 + lost, "frames lost, and not counted");
		last = seen.stamp_ns;
		lost_in_all += lost;
		received++;
	}
	expect(received + lost_in_all == frames, "received and lost are not all");
	expect(overwrite || !lost_in_all, "lost without overwriting");
}

static void run(bool overwrites, u32 count)
{
	pthread_t producer;

	reset(count);
	overwrite = overwrites;
	frames = (u64)ROUNDS * count;
	pthread_create(&producer, NULL, produce, NULL);
	consume();
	pthread_join(producer, NULL);
}

/* Whatever stands in the shared words: no access outside, no waiting beyond what can be. */
static void nonsense(void)
{
	struct canchar_frame some = frame(1), seen;
	unsigned int i;
	u32 lost;

	reset(16);
	srandom(2014);
	for (i = 0; i < 200000; i++) {
		u32 before = ring.tail;

		shared.head = (u32)random() << 1;
		shared.tail = i % 3 ? (u32)random() << 1 : ring.head - (u32)random() % 20;
		canchar_ring_put(&ring, &some);
		canchar_ring_overwrite(&ring, &some);
		canchar_ring_get(&ring, &seen);
		expect(ring.tail - before <= 1, "a consumer that jumps");
		expect(canchar_ring_unread(&ring) <= 16, "more unread than slots");
		shared.head = ring.tail + (u32)random() % 40;
		expect(canchar_ring_unsent(&ring) <= 16, "more unsent than slots");
		lost = 0;
		canchar_ring_get_latest(&ring, &seen, &lost);
	}
}

static void full_and_empty(void)
{
	struct canchar_frame some = frame(7), seen;
	u32 i;

	reset(4);
	ring.head = shared.head = ring.tail = shared.tail = UINT32_MAX - 1;	/* they run over */
	expect(!canchar_ring_get(&ring, &seen), "a frame from an empty ring");
	for (i = 0; i < 4; i++)
		expect(canchar_ring_put(&ring, &some), "no room in a ring that is not full");
	expect(!canchar_ring_put(&ring, &some), "room in a full ring");
	expect(canchar_ring_unread(&ring) == 4, "four frames do not count as four");
	for (i = 0; i < 4; i++)
		expect(canchar_ring_get(&ring, &seen) && intact(&seen), "a frame has gone");
	expect(!canchar_ring_get(&ring, &seen), "a fifth frame");
}

static int number;

static void report(const char *what)
{
	printf("%sok %d - %s\n", failures ? "not " : "", ++number, what);
}

int main(void)
{
	unsigned long all = 0;

	full_and_empty();
	report("a ring is full after as many frames as it has slots, across the end of its counters");
	all += failures, failures = 0;
	run(false, 2);
	run(false, 64);
	report("every frame arrives once, in order and whole");
	all += failures, failures = 0;
	run(true, 2);
	run(true, 64);
	report("an overwritten ring loses the oldest, counts them, and tears none");
	all += failures, failures = 0;
	nonsense();
	report("nonsense in the shared words leads nowhere");
	all += failures;
	printf("1..%d\n", number);
	return all != 0;
}
