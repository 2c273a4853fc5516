// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wire: one frame at a time, the lowest identifier first, each as long as its bits.
 *
 * One timer and one expiry per frame. At the end of a frame it is recorded, handed to all receivers
 * at once and taken off its sender; then arbitration runs for the earliest next start, three bits
 * later. A node that gets a frame ready before that start triggers arbitration again. Times are
 * computed from times, never from when the timer ran, so delays of the machine do not add up. When
 * the timer is late by more than a few frames, the wire waits (slips) and counts that: a burst of
 * frames to catch up would overrun receivers as no real wire can.
 */
#include "../compat.h"
#include "node.h"
#include "source.h"
#include "tap.h"
#include "wire.h"

static enum hrtimer_restart cw_wire_timer(struct hrtimer *timer);

void cw_wire_init(struct cw_wire *wire, struct cw_source *source, struct cw_tap *tap)
{
	raw_spin_lock_init(&wire->lock);
	hrtimer_setup(&wire->timer, cw_wire_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	wire->source = source;
	wire->tap = tap;
	wire->fault.slot = -1;
	wire->random = 1;
	wire->uniform = true;
}

void cw_wire_stop(struct cw_wire *wire)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&wire->lock, flags);
	wire->now.buffer = NULL;
	raw_spin_unlock_irqrestore(&wire->lock, flags);
	hrtimer_cancel(&wire->timer);
}

/* xorshift64*: small, and repeats for a seed. */
u64 cw_random(u64 *state)
{
	u64 x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1dULL;
}

struct cw_port *cw_wire_reference(struct cw_wire *wire)
{
	u64 slots = wire->active | wire->joining;

	return slots ? cw_port_of(wire, slots) : NULL;
}

static bool cw_alike(const struct cw_port *a, const struct cw_port *b)
{
	return a->bit == b->bit && a->data_bit == b->data_bit &&
	       (a->mode & CW_MODE_FD) == (b->mode & CW_MODE_FD);
}

void cw_wire_refresh(struct cw_wire *wire)
{
	struct cw_port *one = cw_wire_reference(wire);
	u64 slots;

	wire->uniform = true;
	wire->silent = 0;
	for (slots = wire->active | wire->joining; slots; slots &= slots - 1) {
		struct cw_port *port = cw_port_of(wire, slots);

		if (port->mode & CW_MODE_LISTEN_ONLY)
			wire->silent |= BIT_ULL(port->slot);
		if (!cw_alike(port, one))
			wire->uniform = false;
	}
	if (one && wire->source && cw_source_runs(wire->source) &&
	    !cw_alike(cw_source_port(wire->source), one))
		wire->uniform = false;
}

/* When the controller takes part at the earliest, if the wire stays idle. */
static void cw_port_expect(struct cw_port *port)
{
	port->not_before = port->idle_from == U64_MAX ? U64_MAX :
		port->idle_from + cw_halves(port, port->sequences * CW_INTEGRATION_BITS, 0);
}

/* Counts off recessive time up to @until. */
static void cw_port_count_idle(struct cw_port *port, u64 until)
{
	u64 sequence = cw_halves(port, CW_INTEGRATION_BITS, 0);
	u64 seen;

	if (port->idle_from >= until)
		return;
	seen = div64_u64(until - port->idle_from, sequence);
	port->sequences -= min_t(u64, seen, port->sequences);
	port->idle_from += seen * sequence;
}

static void cw_wire_admit(struct cw_wire *wire, u64 slot)
{
	wire->joining &= ~slot;
	wire->active |= slot;
}

/* At a SOF: controllers that have waited long enough take part in this frame. */
static void cw_wire_admit_until(struct cw_wire *wire, u64 sof)
{
	u64 slots;

	for (slots = wire->joining; slots; slots &= slots - 1) {
		struct cw_port *port = cw_port_of(wire, slots);

		cw_port_count_idle(port, sof);
		if (!port->sequences)
			cw_wire_admit(wire, BIT_ULL(port->slot));
		else
			cw_port_expect(port);
	}
}

/* At the end of a frame or an error frame, which is a sequence of 11 recessive bits. */
static void cw_wire_admit_after(struct cw_wire *wire)
{
	u64 slots;

	for (slots = wire->joining; slots; slots &= slots - 1) {
		struct cw_port *port = cw_port_of(wire, slots);

		if (!--port->sequences) {
			port->not_before = 0;
			cw_wire_admit(wire, BIT_ULL(port->slot));
			continue;
		}
		port->idle_from = wire->free_at;
		cw_port_expect(port);
	}
}

/* An error-passive node sends ESI recessive, whatever its frame asks for (ISO 11898-1). */
static void cw_attempt_set_esi(struct cw_attempt *a)
{
	struct canfd_frame *frame = &a->buffer->frame;
	u8 flags = frame->flags & ~CANFD_ESI;

	if (a->buffer->esi || cw_is_passive(a->port))
		flags |= CANFD_ESI;
	if (flags == frame->flags)
		return;
	frame->flags = flags;
	cw_measure(frame, &a->buffer->length);
}

/* Decides how the attempt ends, and sets the timer to it. */
static void cw_attempt_start(struct cw_wire *wire, struct cw_attempt *a)
{
	const struct cw_length *length = &a->buffer->length;

	if (unlikely(a->port->node && a->buffer->frame.flags & CANFD_FDF && !a->buffer->babble))
		cw_attempt_set_esi(a);
	if (unlikely(wire->joining))
		cw_wire_admit_until(wire, a->sof);
	a->takers = wire->active & ~cw_bit_of(a->port);
	a->losers = a->pending & ~cw_bit_of(a->port);
	a->confused = 0;
	a->first = 0;
	a->error = CANWIRE_ERROR_NONE;
	a->error_bit = 0;
	a->injected = false;
	a->source_reads = a->port->node && wire->source && cw_source_runs(wire->source);
	a->nominal = length->nominal;
	a->data = length->data;
	a->end = a->sof + cw_halves(a->port, a->nominal, a->data);
	cw_faults_foresee(wire, a);
	cw_wire_set_timer(wire, cw_to_ns(a->end));
}

/* Arbitration: the first controller that is ready from @earliest on; among several the lowest
 * key.
 */
static void cw_arbitrate(struct cw_wire *wire, u64 earliest)
{
	struct cw_attempt *a = &wire->now;
	struct cw_port *best = NULL;
	u64 slots, sof = U64_MAX;

	a->pending = 0;
	a->marks = 0;
	if (wire->source && cw_source_port(wire->source)->next) {
		best = cw_source_port(wire->source);
		sof = max(earliest, best->not_before);
		a->marks = CANWIRE_MARK_SOURCE;
	}
	for (slots = wire->pending; slots; slots &= slots - 1) {
		struct cw_port *port = cw_port_of(wire, slots);
		u64 ready = max(earliest, port->not_before);

		if (ready > sof || ready == U64_MAX)
			continue;
		/* At this earlier time the others still wait: suspended, or not yet on the bus. */
		if (ready < sof) {
			a->pending = 0;
			a->marks = 0;
			best = NULL;
			sof = ready;
		}
		a->pending |= BIT_ULL(port->slot);
		if (!best || port->next->key < best->next->key)
			best = port;
	}
	if (!best) {
		a->buffer = NULL;
		return;
	}
	a->port = best;
	a->buffer = best->next;
	a->slot = best->slot;
	a->ifindex = best->node ? cw_node_ifindex(best->node) : 0;
	a->sof = sof;
	cw_attempt_start(wire, a);
}

void cw_wire_send(struct cw_wire *wire, struct cw_port *port, u64 since_ns)
{
	u64 since = since_ns * 2;

	wire->pending |= cw_bit_of(port);
	if (!wire->now.buffer || since < wire->now.sof)
		cw_arbitrate(wire, max(since, wire->free_at));
}

void cw_wire_withdraw(struct cw_wire *wire, struct cw_port *port, u64 now_ns)
{
	struct cw_attempt *a = &wire->now;
	u64 now = now_ns * 2;

	if (!port->next) {
		wire->pending &= ~cw_bit_of(port);
		a->losers &= ~cw_bit_of(port);
	}
	if (a->buffer && a->port == port && a->buffer != port->next && now < a->sof)
		cw_arbitrate(wire, max(now, wire->free_at));
}

void cw_wire_join(struct cw_wire *wire, struct cw_port *port, u64 now_ns, u32 sequences)
{
	struct cw_attempt *a = &wire->now;
	u64 now = now_ns * 2;

	port->wire = wire;
	port->sequences = sequences;
	port->idle_from = a->buffer && a->sof <= now ? U64_MAX : max(now, wire->free_at);
	cw_port_expect(port);
	wire->ports[port->slot] = port;
	wire->joining |= BIT_ULL(port->slot);
	cw_wire_refresh(wire);
	if (port->next)
		cw_wire_send(wire, port, now_ns);
}

/* The bits of an attempt that were on the wire after this time, in half ns. */
static u32 cw_bits_after(const struct cw_attempt *a, u64 halves)
{
	u64 bit = cw_halves(a->port, 1, 0), data_bit = cw_halves(a->port, 0, 1);
	const struct cw_length *length = &a->buffer->length;
	/* The data phase lies before the last nominal bits. */
	u32 head = length->data ? length->nominal - (CW_END_BITS - 1) : length->nominal;
	u64 head_time = head * bit, data_time = length->data * data_bit;

	if (halves <= head_time)
		return div64_u64(halves, bit);
	halves -= head_time;
	if (halves <= data_time)
		return head + div64_u64(halves, data_bit);
	return head + length->data + div64_u64(halves - data_time, bit);
}

/* The sender was removed: six bits later the others detect a stuff error and send error flags. */
static void cw_attempt_break_off(struct cw_wire *wire, struct cw_attempt *a, u64 now)
{
	u32 bits = min_t(u32, cw_bits_after(a, now - a->sof), a->nominal + a->data);

	wire->orphan = *a->buffer;
	a->buffer = &wire->orphan;
	cw_faults_cut(a, a->port, CANWIRE_ERROR_ABORTED, bits + CW_ERROR_FLAG_BITS, 0);
	a->first = 0;
	a->injected = false;
	a->port = NULL;
	cw_wire_set_timer(wire, cw_to_ns(a->end));
}

void cw_wire_leave(struct cw_wire *wire, struct cw_port *port, u64 now_ns)
{
	u64 slot = BIT_ULL(port->slot), now = now_ns * 2;
	struct cw_attempt *a = &wire->now;

	wire->active &= ~slot;
	wire->joining &= ~slot;
	wire->pending &= ~slot;
	wire->ports[port->slot] = NULL;
	cw_wire_refresh(wire);
	if (!a->buffer)
		return;
	if (now < a->sof) {
		cw_arbitrate(wire, max(now, wire->free_at));
		return;
	}
	a->takers &= ~slot;
	a->losers &= ~slot;	/* what it sends next has not contended */
	a->confused &= ~slot;
	a->first &= ~slot;
	if (a->port == port) {
		cw_attempt_break_off(wire, a, now);
	} else if (a->port && !a->error && !cw_faults_acknowledged(wire, a)) {
		/* The controller that leaves was the last one to acknowledge. */
		cw_faults_cut(a, a->port, CANWIRE_ERROR_ACK,
			      a->nominal + a->data - (CW_END_BITS - 2), 0);
		cw_wire_set_timer(wire, cw_to_ns(a->end));
	}
}

/* The frame succeeded: delivers it to all receivers at the same time. */
static void cw_attempt_deliver(struct cw_wire *wire, struct cw_attempt *a,
			       struct cw_tap_masks *masks)
{
	u64 slots;

	for (slots = a->takers; slots; slots &= slots - 1) {
		struct cw_port *port = cw_port_of(wire, slots);

		/* From above 127 to where one more error makes the node passive again. */
		if (unlikely(port->rx_errors) && !(port->mode & CW_MODE_LISTEN_ONLY))
			port->rx_errors = port->rx_errors > 127 ? 119 : port->rx_errors - 1;
		if (likely(cw_node_receive(port->node, &a->buffer->frame, a->end)))
			masks->received |= BIT_ULL(port->slot);
		else
			masks->overrun |= BIT_ULL(port->slot);
	}
}

/* The frame was delivered: removes it from its sender, which may fill the buffer again. */
static void cw_attempt_complete(struct cw_wire *wire, struct cw_attempt *a,
				struct cw_tap_masks *masks)
{
	struct cw_port *sender = a->port;

	if (sender->tx_errors)
		sender->tx_errors--;
	if (!sender->node) {
		cw_source_sent(wire->source, a, wire->free_at);
		return;
	}
	if (unlikely(sender->mode & CW_MODE_LOOPBACK)) {
		if (cw_node_receive(sender->node, &a->buffer->frame, a->end))
			masks->received |= BIT_ULL(sender->slot);
		else
			masks->overrun |= BIT_ULL(sender->slot);
	}
	cw_node_sent(sender->node, a->buffer, a->end);
	if (!sender->next)
		wire->pending &= ~BIT_ULL(sender->slot);
}

/* The other controllers that wanted to send at SOF have lost the arbitration. */
static void cw_attempt_losers(struct cw_wire *wire, const struct cw_attempt *a)
{
	u64 slots;

	for (slots = a->losers & wire->pending; slots; slots &= slots - 1) {
		struct cw_port *port = cw_port_of(wire, slots);

		if (!port->next)
			continue;
		cw_node_lost_arbitration(port->node, a->buffer->key);
		if (!port->next)	/* one-shot */
			wire->pending &= ~BIT_ULL(port->slot);
	}
}

/* Whether the timer was so late that the wire has to wait instead of catching up. */
static bool cw_wire_slips(const struct cw_wire *wire, const struct cw_attempt *a, u64 now)
{
	u64 limit = wire->slip ? wire->slip : CW_SLIP_FRAMES * (a->end - a->sof);

	return now - a->end > limit;
}

/*
 * Waits for the time that it was late, so that a machine which is always late can do other work,
 * above all deliver frames.
 */
static u64 cw_slip_of(const struct cw_attempt *a, u64 now)
{
	u64 late = now - a->end;

	return late + min_t(u64, late, CW_SLIP_REST_HALVES);
}

static void cw_attempt_end(struct cw_wire *wire, struct cw_attempt *a, u64 now_ns)
{
	struct cw_port *sender = a->port;
	struct cw_tap_masks masks = {};
	u64 now = now_ns * 2, interframe;
	bool slips;

	/* Delivery comes first, because receivers have waited for the machine. */
	if (likely(!a->error))
		cw_attempt_deliver(wire, a, &masks);

	/* At the sender's rate; for a removed sender the wire has only the length of its bits. */
	if (sender)
		interframe = cw_halves(sender, CW_INTERFRAME_BITS, 0);
	else
		interframe = CW_INTERFRAME_BITS *
			     div64_u64(a->end - a->sof, max_t(u32, a->nominal + a->data, 1));
	slips = unlikely(cw_wire_slips(wire, a, now));
	wire->free_at = a->end + interframe;
	if (slips)
		wire->free_at += cw_slip_of(a, now);

	if (sender && cw_is_passive(sender))
		a->marks |= CANWIRE_MARK_PASSIVE;
	if (a->buffer->babble)
		a->marks |= CANWIRE_MARK_BABBLE;
	if (unlikely(wire->slipped))
		a->marks |= CANWIRE_MARK_SLIPPED;
	if (unlikely(a->losers))
		cw_attempt_losers(wire, a);

	if (wire->tap)
		cw_tap_begin(wire->tap, a, now_ns);
	if (likely(!a->error))
		cw_attempt_complete(wire, a, &masks);
	if (unlikely(a->error || a->confused))
		cw_faults_account(wire, a);
	if (wire->tap)
		cw_tap_end(wire->tap, a, &masks, slips ? cw_slip_of(a, now) >> 1 : 0);

	/* Suspend transmission: after its own frames a passive node lets others go first. */
	if (sender && unlikely(cw_is_passive(sender)))
		sender->not_before = wire->free_at + cw_halves(sender, CW_SUSPEND_BITS, 0);
	wire->slipped = slips;
	if (unlikely(wire->joining))
		cw_wire_admit_after(wire);
	a->buffer = NULL;
}

static enum hrtimer_restart cw_wire_timer(struct hrtimer *timer)
{
	struct cw_wire *wire = container_of(timer, struct cw_wire, timer);
	u64 now_ns = ktime_get_ns();

	raw_spin_lock(&wire->lock);
	/*
	 * It may have been set anew between its expiry and the lock, and then expires again. It is
	 * always set by cw_wire_set_timer() under the lock and never restarted by its answer,
	 * because the two together would corrupt it.
	 */
	if (wire->now.buffer && now_ns >= cw_to_ns(wire->now.end) && !cw_rests(wire, now_ns)) {
		cw_attempt_end(wire, &wire->now, now_ns);
		cw_arbitrate(wire, wire->free_at);
		cw_rest_after(wire, now_ns);
		if (wire->tap)
			cw_tap_account(wire->tap, ktime_get_ns() - now_ns);
	}
	raw_spin_unlock(&wire->lock);
	return HRTIMER_NORESTART;
}
