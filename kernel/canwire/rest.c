// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rests of late wires. A wire that catches up sets its timer to the past, and the timer expires
 * again in the same interrupt; one that slips waits for no longer than 2 ms, which others may fill.
 * As long as wires are late, which may be for ever, nothing else would run. So after some frames
 * all wires of a processor leave it to others: for as long as these frames took, repeated
 * until receivers have been handed them, which soft interrupts do before any program runs, and then
 * to programs, for as long as all that took. Frames keep their times.
 */
#include <linux/percpu.h>

#include "node.h"
#include "wire.h"

/* Late frames after which wires rest. */
#define CW_LATE_FRAMES		16
/* Rests in a row without a frame handed over after which receivers are waited for no longer. */
#define CW_IDLE_RESTS_MAX	16

/* The late wires of a processor. Times in ns. */
struct cw_late {
	u32 frames;	/* since others had as much time as these frames took */
	u64 work;	/* what they took */
	u64 last;	/* end of the last one */
	u64 until;	/* all wires rest */
};

static DEFINE_PER_CPU(struct cw_late, cw_late);

/*
 * All wires rest for rest->length. In an interrupt: no other wire of the processor does this
 * meanwhile. A frame that ends later, because its wire slips, prolongs only that wire's rest: the
 * timer does nothing before a frame's end.
 */
static void cw_rest_from(struct cw_wire *wire, u64 now_ns)
{
	struct cw_rest *rest = &wire->rest;
	u64 until = now_ns + rest->length;

	this_cpu_write(cw_late.until, until);
	rest->until = max(until, cw_to_ns(wire->now.end));
	cw_wire_set_timer(wire, rest->until);
}

void cw_rest_after(struct cw_wire *wire, u64 now_ns)
{
	struct cw_late *late = this_cpu_ptr(&cw_late);
	struct cw_rest *rest = &wire->rest;
	u64 end_ns;

	if (likely(!wire->slipped && (!wire->now.buffer || cw_to_ns(wire->now.end) > now_ns)))
		return;
	end_ns = ktime_get_ns();
	if (now_ns - late->last > late->work) {
		late->frames = 0;
		late->work = 0;
	}
	late->frames++;
	late->work += end_ns - now_ns;
	late->last = end_ns;
	if (late->frames < CW_LATE_FRAMES)
		return;
	rest->length = max_t(u64, late->work, 1);
	rest->taken = 2 * rest->length;
	late->frames = 0;
	late->work = 0;
	rest->left = CW_IDLE_RESTS_MAX;
	rest->owed = U32_MAX;
	cw_rest_from(wire, end_ns);
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

/* Another rest: the last one, of programs, when nothing is owed any more, or nothing gets less. */
static void cw_rest_again(struct cw_wire *wire, u64 now_ns)
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
	if (rest->left)
		rest->taken += rest->length;
	else
		rest->length = rest->taken;
	cw_rest_from(wire, now_ns);
}

bool cw_rests(struct cw_wire *wire, u64 now_ns)
{
	struct cw_rest *rest = &wire->rest;
	u64 until = this_cpu_read(cw_late.until);

	if (likely(now_ns >= until && !rest->length))
		return false;
	/* A frame may have set the timer meanwhile: to its end, before the rest's. */
	if (now_ns < max(until, rest->until)) {
		cw_wire_set_timer(wire, max(until, rest->until));
		return true;
	}
	if (!rest->left || cw_to_ns(wire->now.end) > rest->until) {
		/* The others' turn, whose timers are set to the end of the rest, comes first. */
		rest->length = 0;
		cw_wire_set_timer(wire, now_ns);
		return true;
	}
	cw_rest_again(wire, now_ns);
	return true;
}
