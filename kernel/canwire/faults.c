// SPDX-License-Identifier: GPL-2.0-only
/*
 * Errors: how a frame is destroyed, how long that takes, and the error counters of all nodes that
 * saw it (ISO 11898-1, fault confinement).
 *
 * Simplified where a counter or a frame would not differ: every error flag on the wire is one of
 * six bits, and the flags of the others lengthen it by a fixed number of bits. If they detect the
 * error only by the sender's flag, which violates the stuffing, they add six bits; if they detect
 * the error directly, the last of them is one bit later.
 */
#include "node.h"
#include "source.h"
#include "wire.h"

/* Bits by which the others' error flags outlast the first. */
#define ECHO_BY_STUFFING	6
#define ECHO_NEXT_BIT		1

/* Bits of a frame at another rate after which a receiver has seen six equal bits for sure. */
#define RATE_NOTICED_BITS	12

/* An error counter of a receiver stops here: above it nothing changes. */
#define RX_ERRORS_MAX		135
#define TX_ERRORS_MAX		255

void cw_wire_forget_fault(struct cw_wire *wire, u8 slot)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&wire->lock, flags);
	if (wire->fault.slot == slot)
		wire->fault = (struct cw_fault){ .slot = -1 };
	raw_spin_unlock_irqrestore(&wire->lock, flags);
}

void cw_faults_cut(struct cw_attempt *a, struct cw_port *sender, u8 error, u32 bit, u32 echo)
{
	cw_split(&a->buffer->length, bit, &a->nominal, &a->data);
	a->nominal += CW_ERROR_FLAG_BITS + echo + CW_ERROR_DELIMITER_BITS;
	a->error = error;
	a->error_bit = bit;
	a->end = a->sof + cw_halves(sender, a->nominal, a->data);
}

bool cw_faults_acknowledged(const struct cw_wire *wire, const struct cw_attempt *a)
{
	return a->takers & ~wire->silent || a->source_reads ||
	       a->port->mode & (CW_MODE_LOOPBACK | CW_MODE_SELF_ACK);
}

/* Oscillators may be off by half a percent each; further apart two rates cannot talk. */
static bool cw_rates_differ(u32 a, u32 b)
{
	return 100ULL * (max(a, b) - min(a, b)) > max(a, b);
}

static bool cw_port_reads(const struct cw_port *port, const struct cw_port *sender,
			  const struct canfd_frame *frame)
{
	if (cw_rates_differ(port->bit, sender->bit))
		return false;
	if (!(frame->flags & CANFD_FDF))
		return true;
	return port->mode & CW_MODE_FD &&
	       !(frame->flags & CANFD_BRS && cw_rates_differ(port->data_bit, sender->data_bit));
}

/* An FD frame at a classic node that ignores FD frames. */
static bool cw_port_looks_away(const struct cw_port *port, const struct cw_port *sender)
{
	return !cw_rates_differ(port->bit, sender->bit) &&
	       (port->mode & (CW_MODE_FD | CW_MODE_FD_TOLERANT)) == CW_MODE_FD_TOLERANT;
}

/* The bit at which the first node that cannot read the frame detects that. */
static u32 cw_noticed_at(const struct cw_attempt *a, const struct cw_port *port)
{
	const struct cw_length *length = &a->buffer->length;

	if (cw_rates_differ(port->bit, a->port->bit))
		return RATE_NOTICED_BITS;
	if (!(port->mode & CW_MODE_FD))
		return length->head;
	/* The data phase begins behind all but the last nine nominal bits. */
	return min_t(u32, length->nominal - (CW_END_BITS - 1) + RATE_NOTICED_BITS,
		     length->nominal + length->data - CW_END_BITS);
}

/*
 * Nodes at other rates, or without FD. Passive and listen-only nodes cannot read it either, but do
 * not disturb it.
 */
static void cw_foresee_rates(struct cw_wire *wire, struct cw_attempt *a)
{
	const struct canfd_frame *frame = &a->buffer->frame;
	u32 bit = U32_MAX;
	u64 slots;

	for (slots = a->takers; slots; slots &= slots - 1) {
		struct cw_port *port = cw_port_of(wire, slots);
		u64 slot = BIT_ULL(port->slot);

		if (cw_port_reads(port, a->port, frame))
			continue;
		a->takers &= ~slot;
		if (cw_port_looks_away(port, a->port))
			continue;
		a->confused |= slot;
		if (wire->silent & slot || cw_is_passive(port))
			continue;
		a->first |= slot;
		bit = min(bit, cw_noticed_at(a, port));
	}
	if (a->source_reads)
		a->source_reads = cw_port_reads(cw_source_port(wire->source), a->port, frame);
	if (a->first)
		cw_faults_cut(a, a->port, CANWIRE_ERROR_RATE, bit, ECHO_BY_STUFFING);
}

/* Somewhere behind arbitration and before the CRC delimiter. */
static u32 cw_random_bit(struct cw_wire *wire, const struct cw_length *length)
{
	u32 span = length->nominal + length->data - CW_END_BITS - length->head;

	return length->head + 1 + ((cw_random(&wire->random) >> 32) * span >> 32);
}

static bool cw_is_hit(struct cw_wire *wire, const struct cw_attempt *a, bool at_sender)
{
	const struct cw_fault *fault = &wire->fault;

	if (!at_sender && !(a->takers & ~wire->silent) && fault->slot < 0)
		return false;
	if (fault->slot >= 0 && at_sender && (!a->port->node || a->slot != fault->slot))
		return false;
	if (fault->slot >= 0 && !at_sender && !(a->takers & BIT_ULL(fault->slot)))
		return false;
	return !fault->probability || cw_random(&wire->random) >> 32 < fault->probability;
}

static void cw_foresee_injected(struct cw_wire *wire, struct cw_attempt *a)
{
	const struct cw_length *length = &a->buffer->length;
	const struct cw_fault *fault = &wire->fault;
	u32 total = length->nominal + length->data;
	bool at_sender = fault->kind == CANWIRE_ERROR_BIT || fault->kind == CANWIRE_ERROR_ACK;

	if (!cw_is_hit(wire, a, at_sender))
		return;
	a->injected = true;
	if (!at_sender && fault->slot >= 0) {
		u64 slot = BIT_ULL(fault->slot);

		if (wire->silent & slot || cw_is_passive(wire->ports[fault->slot])) {
			/* Its error flag is invisible: only this node loses the frame. */
			a->takers &= ~slot;
			a->confused |= slot;
			return;
		}
		a->first = slot;
	}
	a->marks |= CANWIRE_MARK_INJECTED;
	switch (fault->kind) {
	case CANWIRE_ERROR_BIT:
		cw_faults_cut(a, a->port, CANWIRE_ERROR_BIT, cw_random_bit(wire, length),
			      a->takers & ~wire->silent ? ECHO_BY_STUFFING : 0);
		break;
	case CANWIRE_ERROR_STUFF:
		cw_faults_cut(a, a->port, CANWIRE_ERROR_STUFF, cw_random_bit(wire, length),
			      ECHO_NEXT_BIT);
		break;
	case CANWIRE_ERROR_FORM:	/* the flag follows the CRC delimiter */
		cw_faults_cut(a, a->port, CANWIRE_ERROR_FORM, total - (CW_END_BITS - 1),
			      ECHO_NEXT_BIT);
		break;
	case CANWIRE_ERROR_CRC:		/* the flag follows the ACK delimiter */
		cw_faults_cut(a, a->port, CANWIRE_ERROR_CRC, total - (CW_END_BITS - 3),
			      ECHO_NEXT_BIT);
		break;
	case CANWIRE_ERROR_ACK:		/* the flag follows the ACK slot */
		cw_faults_cut(a, a->port, CANWIRE_ERROR_ACK, total - (CW_END_BITS - 2),
			      a->takers & ~wire->silent ? ECHO_NEXT_BIT : 0);
		break;
	}
}

void cw_faults_foresee(struct cw_wire *wire, struct cw_attempt *a)
{
	if (unlikely(!wire->uniform))
		cw_foresee_rates(wire, a);
	if (unlikely(wire->fault.kind) && !a->error)
		cw_foresee_injected(wire, a);
	if (unlikely(!cw_faults_acknowledged(wire, a)) && !a->error) {
		const struct cw_length *length = &a->buffer->length;

		cw_faults_cut(a, a->port, CANWIRE_ERROR_ACK,
			      length->nominal + length->data - (CW_END_BITS - 2), 0);
	}
}

/*
 * A node goes bus-off: off the wire until it is restarted. Its waiting frames are lost.
 */
static void cw_bus_off(struct cw_wire *wire, struct cw_port *port)
{
	u64 slot = BIT_ULL(port->slot);

	wire->active &= ~slot;
	wire->pending &= ~slot;
	wire->ports[port->slot] = NULL;
	cw_wire_refresh(wire);
	cw_node_bus_off(port->node);
}

static void cw_account_sender(struct cw_wire *wire, const struct cw_attempt *a)
{
	struct cw_port *port = a->port;

	/* Alone on the wire, a passive node cannot go bus-off by missing acknowledgements. */
	if (a->error != CANWIRE_ERROR_ACK || !cw_is_passive(port))
		port->tx_errors += 8;
	if (!port->node) {
		cw_source_error(wire->source);
		if (port->tx_errors > TX_ERRORS_MAX) {
			port->tx_errors = 0;
			port->not_before = wire->free_at +
				cw_halves(port, CW_SEQUENCES_BUS_OFF * CW_INTEGRATION_BITS, 0);
		}
		return;
	}
	cw_node_error(port->node, a, true);
	if (port->tx_errors > TX_ERRORS_MAX)
		cw_bus_off(wire, port);
	else if (!port->next)		/* one-shot */
		wire->pending &= ~BIT_ULL(port->slot);
}

static void cw_account_receiver(struct cw_port *port, const struct cw_attempt *a)
{
	u32 more = a->error && a->first & BIT_ULL(port->slot) ? 9 : 1;

	if (!(port->mode & CW_MODE_LISTEN_ONLY))
		port->rx_errors = min_t(u32, port->rx_errors + more, RX_ERRORS_MAX);
	cw_node_error(port->node, a, false);
}

void cw_faults_account(struct cw_wire *wire, struct cw_attempt *a)
{
	u64 slots = a->error ? wire->active : a->confused & wire->active;

	if (a->injected && wire->fault.kind && wire->fault.count != U32_MAX && !--wire->fault.count)
		wire->fault.kind = CANWIRE_ERROR_NONE;
	if (a->port)
		slots &= ~cw_bit_of(a->port);
	for (; slots; slots &= slots - 1)
		cw_account_receiver(cw_port_of(wire, slots), a);
	if (a->error && a->port)
		cw_account_sender(wire, a);
}
