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

/*
 * A controller's clock, and time on the wire: times are u64 in half nanoseconds, because a tick
 * of 80 MHz is 12.5 ns. So all sums are exact, and a bus that runs for years does not drift.
 */
#define CW_CLOCK_HZ		80000000
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
/* Frames of the past after which a wire that catches up leaves the processor to others. */
#define CW_CATCH_UP_FRAMES	16

struct cw_tap;
struct cw_node;
struct cw_source;

/**
 * struct cw_buffer - a frame that waits for the wire
 * @key: cw_arbitration_key()
 * @length: how long it is
 * @babble: it is babbled
 * @esi: its sender asked for CANFD_ESI
 * @frame: the frame
 */
struct cw_buffer {
	u32 key;
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

/**
 * struct cw_port - the view that a wire has of a controller
 * @wire: the wire that it is on
 * @node: NULL: the source
 * @next: the frame to send, NULL for none
 * @not_before: it does not start a frame earlier
 * @idle_from: recessive since then; ~0 while a frame is on the wire
 * @sequences: of recessive bits that it still waits for
 * @bit: ticks
 * @data_bit: ticks
 * @tx_errors: error counters
 * @rx_errors: error counters
 * @slot: place on the bus
 * @mode: CW_MODE_...
 *
 * The wire's view of a controller: a node, or the source.
 */
struct cw_port {
	struct cw_wire *wire;
	struct cw_node *node;
	struct cw_buffer *next;
	u64 not_before;
	u64 idle_from;
	u32 sequences;
	u32 bit, data_bit;
	u16 tx_errors, rx_errors;
	u8 slot;
	u8 mode;
};

/**
 * struct cw_attempt - the frame that is on the wire, or will be at @sof
 * @buffer: NULL: the wire is idle
 * @port: NULL: it was removed during the frame
 * @sof: start of frame, in half ns
 * @end: of the frame, in half ns
 * @pending: slots that contended
 * @takers: slots that will take it
 * @confused: slots that cannot read it: other bit rates
 * @first: slots that saw the error before the others
 * @ifindex: of the sender
 * @nominal: bits up to @end
 * @data: bits up to @end
 * @error_bit: where the error flag starts
 * @error: enum canwire_error
 * @slot: of the sender
 * @marks: CANWIRE_MARK_...
 * @injected: the error was injected
 * @source_reads: the source acknowledges it
 */
struct cw_attempt {
	struct cw_buffer *buffer;
	struct cw_port *port;
	u64 sof, end;
	u64 pending;
	u64 takers;
	u64 confused;
	u64 first;
	u32 ifindex;
	u16 nominal, data;
	u16 error_bit;
	u8 error;
	u8 slot;
	u8 marks;
	bool injected;
	bool source_reads;
};

/**
 * struct cw_fault - injected errors
 * @kind: CANWIRE_ERROR_NONE: none
 * @count: still to come; U32_MAX: no end
 * @probability: of 2^32, 0 means each frame
 * @slot: the affected slot; -1: any
 */
struct cw_fault {
	u32 kind;
	u32 count;
	u32 probability;
	int slot;
};

/**
 * struct cw_wire - the state of a wire
 * @lock: raw, interrupts off: guards all of it
 * @timer: end of the attempt
 * @now: the attempt
 * @free_at: earliest SOF after the last attempt
 * @pending: slots with a frame to send
 * @active: slots that take part
 * @joining: slots that wait for recessive bits first
 * @silent: slots that do not acknowledge: listen-only
 * @uniform: all take part in the same way, at the same rates
 * @slipped: before the attempt
 * @slip: half ns; 0: CW_SLIP_FRAMES of the late frame
 * @behind: attempts in a row that had ended before their timer was set
 * @behind_since: when the first of them was handled, ns
 * @random: state
 * @fault: injected errors
 * @ports: by slot
 * @source: NULL: a wire that was cut off has none
 * @tap: likewise
 * @orphan: the frame of a removed sender
 */
struct cw_wire {
	raw_spinlock_t lock;
	struct hrtimer timer;
	struct cw_attempt now;
	u64 free_at;
	u64 pending;
	u64 active;
	u64 joining;
	u64 silent;
	bool uniform;
	bool slipped;
	u64 slip;
	u32 behind;
	u64 behind_since;
	u64 random;
	struct cw_fault fault;
	struct cw_port *ports[CANWIRE_NODES_MAX];
	struct cw_source *source;
	struct cw_tap *tap;
	struct cw_buffer orphan;
};

/**
 * cw_wire_init() - makes an empty wire
 * @wire: the wire
 * @source: the source
 * @tap: the tap
 */
void cw_wire_init(struct cw_wire *wire, struct cw_source *source, struct cw_tap *tap);

/**
 * cw_wire_stop() - no more attempts; all ports must have been removed
 * @wire: the wire
 */
void cw_wire_stop(struct cw_wire *wire);

/* Under the lock, all of these; now_ns is on CLOCK_MONOTONIC. */

/* Connects a controller, which takes part after @sequences of recessive bits. */

/**
 * cw_wire_join() - connects a controller; under the lock
 * @wire: the wire
 * @port: the controller
 * @now_ns: now
 * @sequences: of 11 recessive bits before it takes part
 */
void cw_wire_join(struct cw_wire *wire, struct cw_port *port, u64 now_ns, u32 sequences);

/**
 * cw_wire_leave() - removes a controller, and cuts off a frame that it is sending; under the lock
 * @wire: the wire
 * @port: the controller
 * @now_ns: now
 */
void cw_wire_leave(struct cw_wire *wire, struct cw_port *port, u64 now_ns);

/**
 * cw_wire_send() - a controller has a frame to send; under the lock
 * @wire: the wire
 * @port: the controller
 * @since_ns: since when it is ready
 */
void cw_wire_send(struct cw_wire *wire, struct cw_port *port, u64 since_ns);

/**
 * cw_wire_withdraw() - a controller has another frame to send, or none; what is on the wire
 *	already ends there; under the lock
 * @wire: the wire
 * @port: the controller
 * @now_ns: now
 */
void cw_wire_withdraw(struct cw_wire *wire, struct cw_port *port, u64 now_ns);

/**
 * cw_wire_refresh() - rates or modes have changed, or the source was started or stopped; under
 *	the lock
 * @wire: the wire
 */
void cw_wire_refresh(struct cw_wire *wire);

/**
 * cw_wire_reference() - the port whose rates the source takes over; under the lock
 * @wire: the wire
 *
 * Return: that of the lowest slot, or NULL
 */
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

/**
 * cw_random() - the next random number
 * @state: the state
 *
 * Return: 64 bits
 */
u64 cw_random(u64 *state);

/* faults.c: errors and their confinement. */

/**
 * cw_faults_foresee() - decides whether and how a frame will fail; changes no state but the
 *	attempt's
 * @wire: the wire
 * @attempt: the attempt
 */
void cw_faults_foresee(struct cw_wire *wire, struct cw_attempt *attempt);

/**
 * cw_faults_account() - a frame failed: error counters, states, bus-off
 * @wire: the wire
 * @attempt: the attempt
 */
void cw_faults_account(struct cw_wire *wire, struct cw_attempt *attempt);

/**
 * cw_faults_cut() - sets the error of an attempt and where it ends
 * @attempt: the attempt
 * @sender: who sent
 * @error: enum canwire_error
 * @bit: of the frame, where the error flag follows
 * @echo: bits that the flag of the others is longer
 */
void cw_faults_cut(struct cw_attempt *attempt, struct cw_port *sender, u8 error, u32 bit, u32 echo);

/**
 * cw_faults_acknowledged() - whether any node acknowledges
 * @wire: the wire
 * @attempt: the attempt
 *
 * Return: true or false
 */
bool cw_faults_acknowledged(const struct cw_wire *wire, const struct cw_attempt *attempt);

#endif
