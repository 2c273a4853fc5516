/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The traffic source: one more controller on the bus, without an interface, from which the kernel
 * sends.
 */
#ifndef CANWIRE_SOURCE_H
#define CANWIRE_SOURCE_H

#include <linux/hrtimer.h>

#include "wire.h"

/**
 * struct cw_source_plan - what to send and when
 * @frame: the frame
 * @period_ns: 0 and load 0: always a frame ready
 * @jitter_ns: each start is later by up to this
 * @seed: of random numbers
 * @start_ns: first start
 * @load: per mille, 0: by period
 * @burst: frames at each start
 * @count: frames, or rounds of the schedule
 * @endless: count does not apply
 * @flags: CANWIRE_SOURCE_...
 * @bit: ticks; 0: as the nodes
 * @data_bit: ticks; 0: as the nodes
 *
 * What to send and when; from netlink.
 */
struct cw_source_plan {
	struct canfd_frame frame;
	u64 period_ns;
	u64 jitter_ns;
	u64 seed;
	u64 start_ns;
	u32 load;
	u32 burst;
	u32 count;
	bool endless;
	u32 flags;
	u32 bit, data_bit;
};

/**
 * struct cw_source - the traffic source of a bus
 * @port: the wire's view of it
 * @buffer: the next frame
 * @timer: when the next frame is due and the buffer empty
 * @plan: what to send and when
 * @running: it was started
 * @due: half ns: the next frame's time, without jitter
 * @jitter: half ns, of this start
 * @in_burst: frames of it already offered
 * @offered_due: of the frame in the buffer
 * @left: frames or rounds
 * @number: of the next frame
 * @random: state of the random numbers
 * @round: half ns: start of the schedule's round
 * @position: in the schedule
 * @schedule: the loaded frames
 * @entries: of the schedule
 * @capacity: entries that its memory holds
 * @stats: counters
 */
struct cw_source {
	struct cw_port port;
	struct cw_buffer buffer;
	struct hrtimer timer;
	struct cw_source_plan plan;
	bool running;
	u64 due;
	u64 jitter;
	u32 in_burst;
	u64 offered_due;
	u64 left;
	u32 number;
	u64 random;
	u64 round;
	u32 position;
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

/**
 * cw_source_init() - makes a bus's source, stopped
 * @source: the source
 * @wire: the wire
 */
void cw_source_init(struct cw_source *source, struct cw_wire *wire);

/**
 * cw_source_destroy() - stops the source and frees its schedule
 * @source: the source
 */
void cw_source_destroy(struct cw_source *source);

/**
 * cw_source_load() - appends to the schedule; under cw_mutex
 * @source: the source
 * @entries: the entries
 * @count: how many
 * @reset: whether they replace the loaded ones
 *
 * Return: 0, -EBUSY while it runs, -E2BIG, -EINVAL, or -ENOMEM
 */
int cw_source_load(struct cw_source *source, const struct canwire_schedule_entry *entries,
		   u32 count, bool reset);

/**
 * cw_source_start() - starts the source; under cw_mutex
 * @source: the source
 * @plan: what to send and when
 *
 * Return: 0, -EBUSY, or -ENETDOWN
 */
int cw_source_start(struct cw_source *source, const struct cw_source_plan *plan);

/**
 * cw_source_stop() - stops the source; under cw_mutex
 * @source: the source
 */
void cw_source_stop(struct cw_source *source);

/**
 * cw_source_stats() - the source's counters; under cw_mutex
 * @source: the source
 * @stats: filled in
 */
void cw_source_stats(struct cw_source *source, struct canwire_source_stats *stats);

/**
 * cw_source_sent() - the source's frame was on the wire; under the wire's lock
 * @source: the source
 * @attempt: the attempt
 * @free_at: the earliest next start of frame, in half ns
 */
void cw_source_sent(struct cw_source *source, const struct cw_attempt *attempt, u64 free_at);

/**
 * cw_source_error() - the source's frame was destroyed; under the wire's lock
 * @source: the source
 */
void cw_source_error(struct cw_source *source);

#endif
