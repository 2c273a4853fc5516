// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rests of a wire that catches up. It sets its timer to the past, and the timer expires again
 * in the same interrupt: as long as the wire is late, which may be for ever, nothing else would
 * run. So after some frames it leaves the processor to others: for as long as these frames took,
 * repeated until receivers have been handed them, which soft interrupts do before any program
 * runs, and then once more, for programs. Frames keep their times.
 */
#include "node.h"
#include "wire.h"

/* Frames of the past after which a wire rests. */
#define CW_CATCH_UP_FRAMES	16
/* Rests in a row without a frame handed over after which receivers are waited for no longer. */
#define CW_IDLE_RESTS_MAX	16

static void cw_rest_until(struct cw_wire *wire, u64 until_ns)
{
	wire->rest.until = until_ns;
	hrtimer_start(&wire->timer, ns_to_ktime(until_ns), HRTIMER_MODE_ABS_HARD);
}

void cw_rest_after(struct cw_wire *wire, u64 now_ns)
{
	struct cw_rest *rest = &wire->rest;

	if (likely(!wire->now.buffer || cw_to_ns(wire->now.end) > now_ns)) {
		rest->behind = 0;
		return;
	}
	if (!rest->behind++)
		rest->since = now_ns;
	if (rest->behind < CW_CATCH_UP_FRAMES)
		return;
	rest->behind = 0;
	now_ns = ktime_get_ns();
	rest->length = max_t(u64, now_ns - rest->since, 1);
	rest->left = CW_IDLE_RESTS_MAX;
	rest->owed = U32_MAX;
	cw_rest_until(wire, now_ns + rest->length);
}

/* Frames that receivers have got from the wire and that have not yet been handed over. */
static u32 cw_wire_owed(struct cw_wire *wire)
{
	u32 owed = 0;
	u64 slots;

	for (slots = wire->active; slots; slots &= slots - 1) {
		const struct cw_node *node = cw_port_of(wire, slots)->node;

		owed += node->rx_head - READ_ONCE(node->rx_tail);
	}
	return owed;
}

/* Another rest: the last one when nothing is owed any more, or nothing gets less. */
static void cw_rest_again(struct cw_wire *wire)
{
	struct cw_rest *rest = &wire->rest;
	u32 owed = cw_wire_owed(wire);

	if (!owed)
		rest->left = 0;
	else if (owed < rest->owed)
		rest->left = CW_IDLE_RESTS_MAX;
	else
		rest->left--;
	rest->owed = owed;
}

bool cw_rests(struct cw_wire *wire, u64 now_ns)
{
	struct cw_rest *rest = &wire->rest;

	if (likely(!rest->length))
		return false;
	/* A frame may set the timer meanwhile: to its end, before the rest's. */
	if (now_ns < rest->until) {
		cw_rest_until(wire, rest->until);
		return true;
	}
	if (!rest->left || cw_to_ns(wire->now.end) > rest->until) {
		rest->length = 0;
		return false;
	}
	cw_rest_again(wire);
	cw_rest_until(wire, now_ns + rest->length);
	return true;
}
