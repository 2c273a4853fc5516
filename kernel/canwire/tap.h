/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tap: a ring of all frames and errors on a wire, mapped read-only by programs that open
 * /dev/canwire-BUS.
 */
#ifndef CANWIRE_TAP_H
#define CANWIRE_TAP_H

#include "wire.h"

/**
 * struct cw_tap_masks - the result of a frame at each slot
 * @received: slots that took it
 * @overrun: slots that lost it to a full FIFO
 */
struct cw_tap_masks {
	u64 received;
	u64 overrun;
};

/* Records of each ring, from the module parameter: a power of two. */
#define CW_TAP_RECORDS_DEFAULT	16384
#define CW_TAP_RECORDS_MIN	1024
#define CW_TAP_RECORDS_MAX	1048576

/**
 * cw_tap_make() - makes the tap's ring
 * @name: the bus's name
 * @records: of the ring, a power of two
 *
 * Return: the tap or an error pointer
 */
struct cw_tap *cw_tap_make(const char *name, u32 records);

/**
 * cw_tap_expose() - makes the tap's device, which programs may open from then on
 * @tap: the tap
 *
 * Return: 0 or an error
 */
int cw_tap_expose(struct cw_tap *tap);

/**
 * cw_tap_destroy() - removes ring and device; programs that have it open keep the memory and get
 *	POLLHUP
 * @tap: the tap
 */
void cw_tap_destroy(struct cw_tap *tap);

/**
 * cw_tap_begin() - a frame begins; under the wire's lock
 * @tap: the tap
 * @attempt: the attempt
 * @now_ns: now
 */
void cw_tap_begin(struct cw_tap *tap, const struct cw_attempt *attempt, u64 now_ns);

/**
 * cw_tap_end() - a frame ended or was destroyed: writes its record; under the wire's lock
 * @tap: the tap
 * @attempt: the attempt
 * @masks: what became of it at each slot
 * @slip_ns: for how long the wire slipped before it
 */
void cw_tap_end(struct cw_tap *tap, const struct cw_attempt *attempt,
		const struct cw_tap_masks *masks, u64 slip_ns);

/**
 * cw_tap_account() - counts a run of the wire's timer; under the wire's lock
 * @tap: the tap
 * @callback_ns: how long the timer ran
 */
void cw_tap_account(struct cw_tap *tap, u64 callback_ns);

/**
 * cw_tap_size() - the size of the tap's memory
 * @tap: the tap
 *
 * Return: bytes
 */
u32 cw_tap_size(const struct cw_tap *tap);

/**
 * cw_tap_stats() - the counters in the tap's header
 * @tap: the tap
 *
 * Return: the counters
 */
const struct canwire_bus_stats *cw_tap_stats(const struct cw_tap *tap);

#endif
