/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rings of frames with one producer and one consumer, one of which may be a process that maps them
 * and writes invalid values. Each side works with a private index (head or tail below) and
 * publishes it; from the other side's published index it accepts only a possible distance.
 *
 * Also compiled in user space for its tests.
 *
 * Barriers: A publishes a slot and pairs with B, which must not read it before.
 * C hands a slot back and pairs with D, which must not fill it before. When the oldest frame is
 * overwritten, no slot is handed back; then E orders the slot's new content after the head
 * published before it, and pairs with F.
 */
#ifndef CANCHAR_RING_H
#define CANCHAR_RING_H

#include "../uapi/canchar.h"

/* One side of a ring, or in the kernel both: head is the producer's, tail the consumer's. */
struct canchar_ring_end {
	struct canchar_ring *shared;	/* the words that both sides see */
	struct canchar_frame *slots;
	u32 mask;			/* slots less one */
	u32 head ____cacheline_aligned;
	u32 tail ____cacheline_aligned;
};

/* Word by word, because the other side may be looking. */
static __always_inline void canchar_copy(struct canchar_frame *to,
					 const struct canchar_frame *from)
{
	const u64 *source = (const u64 *)from;
	u64 *target = (u64 *)to;

	WRITE_ONCE(target[0], READ_ONCE(source[0]));
	WRITE_ONCE(target[1], READ_ONCE(source[1]));
	WRITE_ONCE(target[2], READ_ONCE(source[2]));
}

/* First the field where the consumer checks for frames, then the one for their number. */
static __always_inline void canchar_ring_publish(struct canchar_ring_end *ring)
{
	u32 head = ring->head + 1;

	smp_store_release(&ring->shared->head, head);	/* A */
	smp_store_release(&ring->head, head);		/* A, too */
}

/* False: the ring is full, or the consumer's tail is invalid. */
static __always_inline bool canchar_ring_put(struct canchar_ring_end *ring,
					     const struct canchar_frame *frame)
{
	u32 tail = smp_load_acquire(&ring->shared->tail);	/* D */

	if (ring->head - tail > ring->mask)
		return false;
	canchar_copy(&ring->slots[ring->head & ring->mask], frame);
	canchar_ring_publish(ring);
	return true;
}

/* Never waits and never fails: when the ring is full, overwrites the oldest frame. */
static __always_inline void canchar_ring_overwrite(struct canchar_ring_end *ring,
						   const struct canchar_frame *frame)
{
	smp_wmb();	/* E */
	canchar_copy(&ring->slots[ring->head & ring->mask], frame);
	canchar_ring_publish(ring);
}

/* False: the ring is empty, or the producer's head is invalid. */
static __always_inline bool canchar_ring_get(struct canchar_ring_end *ring,
					     struct canchar_frame *frame)
{
	u32 waiting = smp_load_acquire(&ring->shared->head) - ring->tail;	/* B */

	if (waiting == 0 || waiting > ring->mask + 1)
		return false;
	canchar_copy(frame, &ring->slots[ring->tail & ring->mask]);
	ring->tail++;
	smp_store_release(&ring->shared->tail, ring->tail);	/* C */
	return true;
}

/*
 * As canchar_ring_get(), of a producer that overwrites; adds the overwritten frames to *lost.
 * The slot that the producer may be filling is not read: slots less one count.
 */
static __always_inline bool canchar_ring_get_latest(struct canchar_ring_end *ring,
						    struct canchar_frame *frame,
						    u32 *lost)
{
	u32 head = smp_load_acquire(&ring->shared->head);	/* B */

	while (head != ring->tail) {
		if (head - ring->tail > ring->mask) {
			*lost += head - ring->tail - ring->mask;
			ring->tail = head - ring->mask;
		}
		canchar_copy(frame, &ring->slots[ring->tail & ring->mask]);
		smp_rmb();					/* F */
		head = smp_load_acquire(&ring->shared->head);	/* B */
		if (head - ring->tail <= ring->mask) {
			ring->tail++;
			smp_store_release(&ring->shared->tail, ring->tail);	/* C */
			return true;
		}
	}
	return false;
}

/* Waiting frames; the consumer's tail may be invalid. */
static __always_inline u32 canchar_ring_unread(const struct canchar_ring_end *ring)
{
	u32 waiting = smp_load_acquire(&ring->head) - READ_ONCE(ring->shared->tail);	/* B */

	return waiting > ring->mask + 1 ? ring->mask + 1 : waiting;
}

/* Waiting frames; the producer's head may be invalid. */
static __always_inline u32 canchar_ring_unsent(const struct canchar_ring_end *ring)
{
	u32 waiting = READ_ONCE(ring->shared->head) - ring->tail;

	return waiting > ring->mask + 1 ? 0 : waiting;
}

#endif
