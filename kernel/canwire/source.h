/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The traffic source: one more controller on the bus, without an interface, from which the kernel
 * sends.
 */
#ifndef CANWIRE_SOURCE_H
#define CANWIRE_SOURCE_H

#include <linux/hrtimer.h>

#include "wire.h"

/* What to send and when, as requested by netlink. */
struct cw_source_plan {
	struct canfd_frame frame;
	u64 period_ns;		/* 0 and load 0: always a frame ready */
	u64 jitter_ns;		/* each start is later by 0 to this */
	u64 seed;
	u64 start_ns;
	u32 load;		/* per mille; 0: by period */
	u32 burst;
	u32 count;		/* frames, or rounds of the schedule */
	bool endless;		/* count does not apply */
	u32 flags;		/* CANWIRE_SOURCE_... */
	u32 bit, data_bit;	/* ticks; 0: as the nodes */
};

struct cw_source {
	struct cw_port port;
	struct cw_buffer buffer;
	struct hrtimer timer;	/* runs when the next frame is due and the buffer empty */
	struct cw_source_plan plan;
	bool running;
	u64 due;		/* half ns, without jitter */
	u64 jitter;		/* half ns, of this start */
	u32 in_burst;		/* frames of the burst offered so far */
	u64 offered_due;	/* half ns: due time of the frame in the buffer */
	u64 left;		/* frames, or rounds of the schedule */
	u32 number;		/* of the next frame */
	u64 random;
	u64 round;		/* half ns: start of this round of the schedule */
	u32 position;		/* in the schedule */
	struct canwire_schedule_entry *schedule;
	u32 entries, capacity;
	struct canwire_source_stats stats;
};

static inline bool cw_source_runs(const struct cw_source *source)
{
	return source->running;
}

static inline struct cw_port *cw_source_port(struct cw_source *source)
{
	return &source->port;
}

void cw_source_init(struct cw_source *source, struct cw_wire *wire);
void cw_source_destroy(struct cw_source *source);

/* Under cw_mutex, down to cw_source_stats(): */

/* Appends to the schedule: 0, -EBUSY while it runs, -E2BIG, -EINVAL or -ENOMEM. */
int cw_source_load(struct cw_source *source, const struct canwire_schedule_entry *entries,
		   u32 count, bool reset);

/* 0, -EBUSY or -ENETDOWN. */
int cw_source_start(struct cw_source *source, const struct cw_source_plan *plan);

void cw_source_stop(struct cw_source *source);
void cw_source_stats(struct cw_source *source, struct canwire_source_stats *stats);

/* Under the wire's lock. */

/* The source's frame was on the wire; the next one starts at @free_at (half ns) or later. */
void cw_source_sent(struct cw_source *source, const struct cw_attempt *attempt, u64 free_at);

/* The source's frame was destroyed. */
void cw_source_error(struct cw_source *source);

#endif
