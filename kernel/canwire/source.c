// SPDX-License-Identifier: GPL-2.0-only
/*
 * When the source sends: a fixed period with bursts and jitter, a share of the wire's time, without
 * a pause, or a recorded schedule.
 *
 * The source has one transmit buffer. While it is full, no timer runs. When its frame was sent, the
 * next frame enters the buffer if it is due; otherwise the timer is set to its due time. So a wire
 * that is too busy for the schedule causes no additional work, and times are computed from times:
 * the schedule does not drift. On an idle wire a frame's SOF is its due time to the nanosecond,
 * although the timer runs a little later: that delay is the machine's and not the schedule's.
 */
#include <linux/slab.h>

#include "../compat.h"
#include "source.h"

/*
 * Above this delay the wire cannot keep the schedule's time: the frame starts when the timer ran.
 */
#define CW_SOURCE_LATE_HALVES	(2 * 100000ULL)

#define CW_FIRST_START_NS	1000000

static bool cw_source_has_schedule(const struct cw_source *source)
{
	return source->plan.flags & CANWIRE_SOURCE_SCHEDULE;
}

static bool cw_source_is_always_ready(const struct cw_source *source)
{
	return !cw_source_has_schedule(source) && !source->plan.period_ns &&
	       (!source->plan.load || source->plan.load == 1000);
}

/* ---- what it sends ---- */

static void cw_randomize_format(struct cw_source *source, struct canfd_frame *frame)
{
	u64 r = cw_random(&source->random) >> 32;

	frame->can_id = r & 1 ? frame->can_id | CAN_EFF_FLAG : frame->can_id & CAN_SFF_MASK;
	frame->can_id &= ~CAN_RTR_FLAG;
	if (frame->flags & CANFD_FDF)
		frame->flags = CANFD_FDF | (r >> 1 & 1 ? CANFD_BRS : 0) |
			       (r >> 2 & 1 ? CANFD_ESI : 0);
	else if (!(r >> 3 & 7))
		frame->can_id |= CAN_RTR_FLAG;
}

static void cw_randomize_data(struct cw_source *source, struct canfd_frame *frame)
{
	u64 r = 0;
	u32 i;

	for (i = 0; i < frame->len; i++) {
		if (!(i & 3))
			r = cw_random(&source->random) >> 16;
		/* Every second byte is all zeros or all ones: runs, which need stuff bits. */
		frame->data[i] = r & 1 ? r >> 2 : r & 2 ? 0xff : 0;
		r >>= 10;
	}
}

static void cw_randomize(struct cw_source *source, struct canfd_frame *frame)
{
	u32 flags = source->plan.flags;

	if (flags & CANWIRE_SOURCE_RANDOM_FORMAT)
		cw_randomize_format(source, frame);
	if (flags & CANWIRE_SOURCE_RANDOM_ID) {
		u32 mask = frame->can_id & CAN_EFF_FLAG ? CAN_EFF_MASK : CAN_SFF_MASK;

		frame->can_id &= ~CAN_EFF_MASK;
		frame->can_id |= cw_random(&source->random) >> 32 & mask;
	}
	if (flags & CANWIRE_SOURCE_RANDOM_LEN) {
		u64 r = cw_random(&source->random) >> 32;

		frame->len = frame->flags & CANFD_FDF ? can_fd_dlc2len(r & 15) : (u32)r % 9;
		memset(frame->data + frame->len, 0, sizeof(frame->data) - frame->len);
	}
	if (flags & CANWIRE_SOURCE_RANDOM_DATA)
		cw_randomize_data(source, frame);
}

/* Puts the next frame into the buffer. */
static void cw_source_compose(struct cw_source *source)
{
	struct canfd_frame *frame = &source->buffer.frame;

	if (cw_source_has_schedule(source)) {
		*frame = source->schedule[source->position].frame;
	} else {
		*frame = source->plan.frame;
		cw_randomize(source, frame);
		if (source->plan.flags & CANWIRE_SOURCE_NUMBER && frame->len >= 2) {
			frame->data[0] = source->number;
			frame->data[1] = source->number >> 8;
		}
	}
	source->number++;
	source->buffer.key = cw_arbitration_key(frame);
	cw_measure(frame, &source->buffer.length);
}

/* ---- when ---- */

static u64 cw_draw_jitter(struct cw_source *source)
{
	u64 most = 2 * source->plan.jitter_ns;

	return most ? mul_u64_u64_shr(cw_random(&source->random), most + 1, 64) : 0;
}

static void cw_schedule_due(struct cw_source *source)
{
	source->due = source->round + 2 * source->schedule[source->position].at_ns;
	source->jitter = cw_draw_jitter(source);
}

static void cw_schedule_advance(struct cw_source *source)
{
	if (++source->position == source->entries) {
		u64 length = source->plan.period_ns;

		source->position = 0;
		source->round += 2 * (length ?: source->schedule[source->entries - 1].at_ns);
		if (!source->plan.endless)
			source->left--;
	}
	cw_schedule_due(source);
}

/* A frame was offered: computes when the next one is due. */
static void cw_source_advance(struct cw_source *source)
{
	if (cw_source_has_schedule(source)) {
		cw_schedule_advance(source);
		return;
	}
	if (!source->plan.endless)
		source->left--;
	if (source->plan.load) {
		const struct cw_length *length = &source->buffer.length;
		u64 taken = cw_halves(&source->port, length->nominal + CW_INTERFRAME_BITS,
				      length->data);

		source->due += div_u64(taken * 1000, source->plan.load);
		source->jitter = cw_draw_jitter(source);
	} else if (++source->in_burst >= source->plan.burst) {
		source->in_burst = 0;
		source->due += 2 * source->plan.period_ns;
		source->jitter = cw_draw_jitter(source);
	}
}

/* Puts the next frame into the empty buffer, or sets the timer. Under the wire's lock. */
static void cw_source_offer(struct cw_source *source, u64 until)
{
	u64 due = source->due + source->jitter;

	source->port.next = NULL;
	if (!source->running)
		return;
	if (!source->left) {
		source->running = false;
		cw_wire_refresh(source->port.wire);
		return;
	}
	if (due > until) {
		hrtimer_start(&source->timer, ns_to_ktime(cw_to_ns(due)), HRTIMER_MODE_ABS_HARD);
		return;
	}
	cw_source_compose(source);
	source->offered_due = cw_source_is_always_ready(source) ? U64_MAX : due;
	source->stats.due++;
	source->port.next = &source->buffer;
	cw_source_advance(source);
}

static enum hrtimer_restart cw_source_timer(struct hrtimer *timer)
{
	struct cw_source *source = container_of(timer, struct cw_source, timer);
	struct cw_wire *wire = source->port.wire;
	u64 now_ns = ktime_get_ns(), now = 2 * now_ns;

	raw_spin_lock(&wire->lock);
	if (source->running && !source->port.next) {
		u64 due = source->due + source->jitter;

		if (now >= due && (now - due) >> 1 > source->stats.late_ns_max)
			source->stats.late_ns_max = (now - due) >> 1;
		cw_source_offer(source, now);
		if (source->port.next)
			cw_wire_send(wire, &source->port,
				     now - due > CW_SOURCE_LATE_HALVES ? now_ns : cw_to_ns(due));
	}
	raw_spin_unlock(&wire->lock);
	return HRTIMER_NORESTART;
}

void cw_source_sent(struct cw_source *source, const struct cw_attempt *a, u64 free_at)
{
	source->stats.sent++;
	if (source->offered_due != U64_MAX && a->sof > source->offered_due) {
		u64 waited = (a->sof - source->offered_due) >> 1;

		source->stats.waited++;
		if (waited > source->stats.waited_ns_max)
			source->stats.waited_ns_max = waited;
	}
	cw_source_offer(source, free_at);
}

void cw_source_error(struct cw_source *source)
{
	source->stats.errors++;
	if (!source->running)
		source->port.next = NULL;
}

/* ---- from netlink ---- */

void cw_source_init(struct cw_source *source, struct cw_wire *wire)
{
	hrtimer_setup(&source->timer, cw_source_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	source->port.wire = wire;
	source->port.slot = CANWIRE_SLOT_SOURCE;
}

void cw_source_destroy(struct cw_source *source)
{
	cw_source_stop(source);
	kvfree(source->schedule);
}

/* The wire ends it; after that it reads neither plan nor schedule, which change under cw_mutex. */
static bool cw_source_is_running(struct cw_source *source)
{
	struct cw_wire *wire = source->port.wire;
	unsigned long flags;
	bool running;

	raw_spin_lock_irqsave(&wire->lock, flags);
	running = source->running;
	raw_spin_unlock_irqrestore(&wire->lock, flags);
	return running;
}

int cw_source_load(struct cw_source *source, const struct canwire_schedule_entry *entries,
		   u32 count, bool reset)
{
	u32 have = reset ? 0 : source->entries, capacity, i;
	u64 before = have ? source->schedule[have - 1].at_ns : 0;
	struct canwire_schedule_entry *grown;

	if (cw_source_is_running(source))
		return -EBUSY;
	if (count > CANWIRE_SCHEDULE_MAX - have)
		return -E2BIG;
	for (i = 0; i < count; before = entries[i++].at_ns)
		if (entries[i].at_ns < before)
			return -EINVAL;
	for (i = 0; i < count; i++)
		if (entries[i].at_ns > S64_MAX / 4)
			return -ERANGE;
	if (have + count > source->capacity) {
		capacity = roundup_pow_of_two(have + count);
		grown = kvmalloc_array(capacity, sizeof(*grown), GFP_KERNEL);
		if (!grown)
			return -ENOMEM;
		if (have)
			memcpy(grown, source->schedule, have * sizeof(*grown));
		kvfree(source->schedule);
		source->schedule = grown;
		source->capacity = capacity;
	}
	memcpy(source->schedule + have, entries, count * sizeof(*entries));
	source->entries = have + count;
	return 0;
}

/* Whether any of its frames is an FD frame: then it takes part like a node with FD. */
static bool cw_source_has_fd(const struct cw_source *source)
{
	u32 i;

	if (!cw_source_has_schedule(source))
		return source->plan.frame.flags & CANFD_FDF;
	for (i = 0; i < source->entries; i++)
		if (source->schedule[i].frame.flags & CANFD_FDF)
			return true;
	return false;
}

static int cw_source_take_rates(struct cw_source *source, struct cw_wire *wire, bool fd)
{
	const struct cw_port *node = cw_wire_reference(wire);
	struct cw_port *port = &source->port;

	if (!node && !source->plan.bit)
		return -ENETDOWN;
	port->bit = source->plan.bit ? source->plan.bit : node->bit;
	port->data_bit = source->plan.data_bit ? source->plan.data_bit :
			 node && !source->plan.bit ? node->data_bit : port->bit;
	/* If nodes use FD, the source accepts FD frames, even if it sends none. */
	port->mode = fd || (node && node->mode & CW_MODE_FD) ? CW_MODE_FD : 0;
	return 0;
}

int cw_source_start(struct cw_source *source, const struct cw_source_plan *plan)
{
	struct cw_wire *wire = source->port.wire;
	u64 now_ns = ktime_get_ns();
	unsigned long flags;
	bool fd;
	int err;

	if (cw_source_is_running(source))
		return -EBUSY;
	if (plan->flags & CANWIRE_SOURCE_SCHEDULE && !source->entries)
		return -ENODATA;
	hrtimer_cancel(&source->timer);
	source->plan = *plan;
	fd = cw_source_has_fd(source);

	raw_spin_lock_irqsave(&wire->lock, flags);
	err = source->port.next ? -EBUSY : cw_source_take_rates(source, wire, fd);
	if (err)
		goto unlock;
	memset(&source->stats, 0, sizeof(source->stats));
	source->random = plan->seed ? plan->seed : 1;
	source->left = plan->endless ? 1 : plan->count;
	source->number = 0;
	source->in_burst = 0;
	source->position = 0;
	source->port.tx_errors = 0;
	source->port.not_before = 0;
	source->due = 2 * (plan->start_ns > now_ns ? plan->start_ns : now_ns + CW_FIRST_START_NS);
	source->round = source->due;
	source->jitter = 0;
	if (cw_source_has_schedule(source))
		cw_schedule_due(source);
	source->running = true;
	cw_wire_refresh(wire);
	cw_source_offer(source, 0);
unlock:
	raw_spin_unlock_irqrestore(&wire->lock, flags);
	return err;
}

void cw_source_stop(struct cw_source *source)
{
	struct cw_wire *wire = source->port.wire;
	unsigned long flags;

	raw_spin_lock_irqsave(&wire->lock, flags);
	if (source->running) {
		bool sending = wire->now.buffer == &source->buffer &&
			       wire->now.sof <= 2 * ktime_get_ns();

		source->running = false;
		if (!sending)
			source->port.next = NULL;
		cw_wire_withdraw(wire, &source->port, ktime_get_ns());
		cw_wire_refresh(wire);
	}
	raw_spin_unlock_irqrestore(&wire->lock, flags);
	hrtimer_cancel(&source->timer);
}

void cw_source_stats(struct cw_source *source, struct canwire_source_stats *stats)
{
	struct cw_wire *wire = source->port.wire;
	unsigned long flags;

	raw_spin_lock_irqsave(&wire->lock, flags);
	*stats = source->stats;
	stats->running = source->running;
	stats->flags = source->plan.flags;
	stats->schedule_entries = source->entries;
	raw_spin_unlock_irqrestore(&wire->lock, flags);
}
