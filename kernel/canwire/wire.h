/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The wire: the shared state of all controllers on one bus, and the wire's view of each.
 *
 * Locking: struct cw_wire.lock (raw, interrupts off) guards everything here. It is taken inside of
 * nothing but a transmit queue's lock, never two of them at once, and nothing that sleeps on
 * PREEMPT_RT is called under it. The list of buses and nodes is guarded by cw_mutex (main.c), which
 * is taken outside of RTNL and never in a net device's operations.
 */
#ifndef CANWIRE_WIRE_H
#define CANWIRE_WIRE_H

#include <linux/bits.h>
#include <linux/hrtimer.h>
#include <linux/math64.h>
#include <linux/spinlock.h>

#include "../uapi/canwire.h"
#include "bits.h"
#include "driver.h"

/*
 * Times on the wire are u64 in half nanoseconds, because a tick of CANWIRE_CLOCK_HZ is 12.5 ns. So
 * all sums are exact, and a bus that runs for years does not drift.
 */
#define CW_HALVES_PER_TICK	25

/* Sequences of 11 recessive bits that a controller waits for: after a start, and after bus-off. */
#define CW_SEQUENCES_START	1
#define CW_SEQUENCES_BUS_OFF	128

/* Bits that a passive sender waits in addition to the interframe space. */
#define CW_SUSPEND_BITS		8

#define CW_TX_BUFFERS_MAX	3

/* Frame times that the timer may be late before the wire slips. */
#define CW_SLIP_FRAMES		3
/* Then it pauses for the time that it was late, up to 2 ms. */
#define CW_SLIP_REST_HALVES	(2 * 2000000ULL)

struct cw_tap;
struct cw_node;
struct cw_source;

/* A frame that waits for the wire; @esi: its sender asked for CANFD_ESI. */
struct cw_buffer {
	u32 key;	/* cw_arbitration_key() */
	struct cw_length length;
	bool babble;
	bool esi;
	struct canfd_frame frame;
};

/* Ways of taking part, from the interface's control modes. */
#define CW_MODE_FD		0x01
#define CW_MODE_FD_TOLERANT	0x02
#define CW_MODE_LISTEN_ONLY	0x04
#define CW_MODE_LOOPBACK	0x08	/* receives its own frames, and acknowledges them */
#define CW_MODE_SELF_ACK	0x10	/* counts its frames as acknowledged */

/* The wire's view of a controller: a node, or the source. */
struct cw_port {
	struct cw_wire *wire;
	struct cw_node *node;	/* NULL: the source */
	struct cw_buffer *next;	/* the frame to send, NULL for none */
	u64 not_before;		/* the earliest start of its next frame */
	u64 idle_from;		/* recessive since then; ~0 while a frame is on the wire */
	u32 sequences;		/* of recessive bits, to wait for */
	u32 bit, data_bit;	/* ticks */
	u16 tx_errors, rx_errors;
	u8 slot;		/* place on the bus */
	u8 mode;		/* CW_MODE_... */
};

/* The frame that is on the wire, or will be at @sof. */
struct cw_attempt {
	struct cw_buffer *buffer;	/* NULL: the wire is idle */
	struct cw_port *port;		/* NULL: it was removed during the frame */
	u64 sof, end;			/* half ns */
	u64 pending;			/* slots that contended */
	u64 losers;			/* that lost, and still have the same frame */
	u64 takers;			/* slots that will take it */
	u64 confused;			/* slots that cannot read it: other bit rates */
	u64 first;			/* slots that saw the error before the others */
	u32 ifindex;			/* of the sender */
	u16 nominal, data;		/* bits up to @end */
	u16 error_bit;			/* where the error flag starts */
	u8 error;			/* enum canwire_error */
	u8 slot;			/* of the sender */
	u8 marks;			/* CANWIRE_MARK_... */
	bool injected;
	bool source_reads;		/* the source acknowledges it */
};

/* Errors to inject. */
struct cw_fault {
	u32 kind;		/* CANWIRE_ERROR_NONE: none */
	u32 count;		/* still to come; U32_MAX: no end */
	u32 probability;	/* of 2^32, 0 means each frame */
	int slot;		/* the affected slot; -1: any */
};

/* Rests that began after a frame of this wire. Times in ns. */
struct cw_rest {
	u32 left;	/* rests that may pass without a frame handed over; 0: the last one */
	u32 owed;	/* frames that were to be handed over when this rest began */
	u64 length;	/* of this rest; 0: there is none */
	u64 taken;	/* by the late frames and by rests until this one */
	u64 until;
};

struct cw_wire {
	raw_spinlock_t lock;	/* of everything here */
	struct hrtimer timer;	/* end of the attempt */
	struct cw_attempt now;
	u64 free_at;	/* earliest SOF after the last attempt */
	u64 pending;	/* slots with a frame to send */
	u64 active;	/* slots that take part */
	u64 joining;	/* slots that wait for recessive bits first */
	u64 silent;	/* slots that do not acknowledge: listen-only */
	bool uniform;	/* all take part in the same way, at the same rates */
	bool slipped;	/* before this attempt */
	u64 slip;	/* half ns; 0: CW_SLIP_FRAMES of the late frame */
	struct cw_rest rest;
	u64 random;	/* state of cw_random() */
	struct cw_fault fault;
	struct cw_port *ports[CANWIRE_NODES_MAX];	/* by slot */
	struct cw_source *source;	/* NULL: the private wire of a disconnected node */
	struct cw_tap *tap;	/* NULL: likewise */
	struct cw_buffer orphan;	/* the frame of a removed sender */
};

void cw_wire_init(struct cw_wire *wire, struct cw_source *source, struct cw_tap *tap);

/* All ports must have been removed. */
void cw_wire_stop(struct cw_wire *wire);

/* All functions below are called under the lock; now_ns is on CLOCK_MONOTONIC. */

/* The controller takes part after @sequences of 11 recessive bits. */
void cw_wire_join(struct cw_wire *wire, struct cw_port *port, u64 now_ns, u32 sequences);

/* Cuts off a frame that the controller is sending. */
void cw_wire_leave(struct cw_wire *wire, struct cw_port *port, u64 now_ns);

/* The controller has a frame to send, since @since_ns. */
void cw_wire_send(struct cw_wire *wire, struct cw_port *port, u64 since_ns);

/* The controller has another frame to send, or none; a frame on the wire ends there. */
void cw_wire_withdraw(struct cw_wire *wire, struct cw_port *port, u64 now_ns);

/* Rates or modes have changed, or the source was started or stopped. */
void cw_wire_refresh(struct cw_wire *wire);

/* The port whose rates the source takes over: that of the lowest slot, or NULL. */
struct cw_port *cw_wire_reference(struct cw_wire *wire);

/* The port of the lowest of some slots. */
static inline struct cw_port *cw_port_of(struct cw_wire *wire, u64 slots)
{
	return wire->ports[__ffs64(slots)];
}

static inline u64 cw_bit_of(const struct cw_port *port)
{
	return port->node ? BIT_ULL(port->slot) : 0;
}

static inline u64 cw_halves(const struct cw_port *port, u32 nominal, u32 data)
{
	return ((u64)nominal * port->bit + (u64)data * port->data_bit) * CW_HALVES_PER_TICK;
}

/* Rounded up: a timer that is set to it never runs before the moment. */
static inline u64 cw_to_ns(u64 halves)
{
	return (halves + 1) >> 1;
}

static inline bool cw_is_passive(const struct cw_port *port)
{
	return port->tx_errors >= 128 || port->rx_errors >= 128;
}

u64 cw_random(u64 *state);

static inline void cw_wire_set_timer(struct cw_wire *wire, u64 ns)
{
	hrtimer_start(&wire->timer, ns_to_ktime(ns), HRTIMER_MODE_ABS_HARD);
}

/* rest.c: what late wires leave to others. */

/* A frame has ended at @now_ns: the wire may rest before it handles the next one. */
void cw_rest_after(struct cw_wire *wire, u64 now_ns);

/* Whether the wire rests still; its timer is set then. */
bool cw_rests(struct cw_wire *wire, u64 now_ns);

/* faults.c: errors and their confinement. */

/* The node that sees the injected errors is gone; the next one in its slot sees none. */
void cw_wire_forget_fault(struct cw_wire *wire, u8 slot);

/* Decides whether and how a frame will fail; changes no state but the attempt's. */
void cw_faults_foresee(struct cw_wire *wire, struct cw_attempt *attempt);

/* A frame failed: error counters, states, bus-off. */
void cw_faults_account(struct cw_wire *wire, struct cw_attempt *attempt);

/*
 * Sets the error of an attempt and where it ends: the flag follows @bit of the frame, and the other
 * nodes' flags are longer by @echo bits.
 */
void cw_faults_cut(struct cw_attempt *attempt, struct cw_port *sender, u8 error, u32 bit, u32 echo);

bool cw_faults_acknowledged(const struct cw_wire *wire, const struct cw_attempt *attempt);

#endif
