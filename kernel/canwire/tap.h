/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tap: a ring of all frames and errors on a wire, mapped read-only by programs that open
 * /dev/canwire-BUS.
 */
#ifndef CANWIRE_TAP_H
#define CANWIRE_TAP_H

#include "wire.h"

/* The result of a frame at each slot. */
struct cw_tap_masks {
	u64 received;
	u64 overrun;	/* the FIFO was full */
};

/* Records of each ring, from the module parameter: a power of two. */
#define CW_TAP_RECORDS_DEFAULT	16384
#define CW_TAP_RECORDS_MIN	1024
#define CW_TAP_RECORDS_MAX	1048576

struct cw_tap *cw_tap_make(const char *name, u32 records);

/* Makes the tap's device, which programs may open from then on. */
int cw_tap_expose(struct cw_tap *tap);

/* Removes ring and device; programs that have it open keep the memory and get POLLHUP. */
void cw_tap_destroy(struct cw_tap *tap);

/* Under the wire's lock. */

/* A frame begins. */
void cw_tap_begin(struct cw_tap *tap, const struct cw_attempt *attempt, u64 now_ns);

/* A frame ended or was destroyed: writes its record. @slip_ns: the wire's slip before it. */
void cw_tap_end(struct cw_tap *tap, const struct cw_attempt *attempt,
		const struct cw_tap_masks *masks, u64 slip_ns);

/* Counts a run of the wire's timer. */
void cw_tap_account(struct cw_tap *tap, u64 callback_ns);

/* Bytes of the tap's memory. */
u32 cw_tap_size(const struct cw_tap *tap);
const struct canwire_bus_stats *cw_tap_stats(const struct cw_tap *tap);

#endif
