/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The traffic source: one more controller on the bus, without an interface, from which the kernel
 * sends.
 */
#ifndef CANWIRE_SOURCE_H
#define CANWIRE_SOURCE_H

#include <linux/hrtimer.h>

#include "wire.h"

/* What to send and when; from netlink. */
struct cw_source_plan {
	struct canfd_frame frame;
	u64 period_ns;		/* 0 and load 0: always a frame ready */
	u64 jitter_ns;
	u64 seed;
	u64 start_ns;
	u32 load;		/* per mille, 0: by period */
	u32 burst;
	u32 count;		/* frames, or rounds of the schedule */
	bool endless;
	u32 flags;
	u32 bit, data_bit;	/* ticks; 0: as the nodes */
};

struct cw_source {
	struct cw_port port;
	struct cw_buffer buffer;
	struct hrtimer timer;	/* when the next frame is due and the buffer empty */
	struct cw_source_plan plan;
	bool running;
	u64 due;		/* half ns: the next frame's time, without jitter */
	u64 jitter;		/* half ns, of this start */
	u32 in_burst;		/* frames of it already offered */
	u64 offered_due;	/* of the frame in the buffer */
	u64 left;		/* frames or rounds */
	u32 number;
	u64 random;
	u64 round;		/* half ns: start of the schedule's round */
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
/* Stops it and frees the schedule. */
void cw_source_destroy(struct cw_source *source);

/* From netlink, under cw_mutex. */
int cw_source_load(struct cw_source *source, const struct canwire_schedule_entry *entries, u32 count,
		   bool reset);
int cw_source_start(struct cw_source *source, const struct cw_source_plan *plan);
void cw_source_stop(struct cw_source *source);
void cw_source_stats(struct cw_source *source, struct canwire_source_stats *stats);

/* From the wire, under its lock. @free_at: the earliest next SOF. */
void cw_source_sent(struct cw_source *source, const struct cw_attempt *attempt, u64 free_at);
void cw_source_error(struct cw_source *source);

#endif
