// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long the handler of one interrupt line runs, by the kernel's tracepoints around
 * every handler: stamps are taken directly before and after it. Handlers that return IRQ_NONE (the
 * line is shared) and the instrument's handler do not count, nor what only wakes a thread, which on
 * PREEMPT_RT the kernel does for each driver of the line: no tracepoint shows the thread's handler.
 */

#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/string.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>

#include "probe.h"

static void canprobe_handler_begins(void *data, int irq, struct irqaction *action)
{
	struct canprobe *probe = data;

	if (irq == probe->watched)
		probe->handler_began_ns = ktime_get_mono_fast_ns();
}

static void canprobe_handler_ended(void *data, int irq, struct irqaction *action, int answer)
{
	u64 stamp_ns = ktime_get_mono_fast_ns();
	struct canprobe *probe = data;
	struct canprobe_record record = { .side = CANPROBE_HANDLER };
	u64 ran_ns;

	if (irq != probe->watched || answer == IRQ_NONE || answer == IRQ_WAKE_THREAD ||
	    action->dev_id == probe)
		return;
	if (!probe->handler_began_ns)
		return;	/* it ran when the watch began */
	/* One handler of a line runs at a time, so there is one producer: canprobe_watch(). */
	ran_ns = stamp_ns - probe->handler_began_ns;
	record.stamp_ns = probe->handler_began_ns;
	record.can_id = irq;
	record.len = sizeof(ran_ns);
	memcpy(record.data, &ran_ns, sizeof(ran_ns));
	canprobe_put(&probe->rings[CANPROBE_HANDLER], &record);
}

/* ------------------------------------------------------- attaching -- */

struct canprobe_points {
	struct tracepoint *entry, *exit;
};

/* The kernel exports neither symbol. */
static void canprobe_find(struct tracepoint *point, void *data)
{
	struct canprobe_points *found = data;

	if (!strcmp(point->name, "irq_handler_entry"))
		found->entry = point;
	else if (!strcmp(point->name, "irq_handler_exit"))
		found->exit = point;
}

static struct canprobe_points canprobe_irq;

/* Waits for running handlers to end. */
void canprobe_watch_end(struct canprobe *probe)
{
	if (!IS_ENABLED(CONFIG_TRACEPOINTS) || !probe->watched)
		return;
	tracepoint_probe_unregister(canprobe_irq.entry, canprobe_handler_begins, probe);
	tracepoint_probe_unregister(canprobe_irq.exit, canprobe_handler_ended, probe);
	tracepoint_synchronize_unregister();
	probe->watched = 0;
}

/* Line 0, the timer's on a PC, belongs to no card: it ends the watch. */
int canprobe_watch(struct canprobe *probe, u32 line)
{
	int err;

	canprobe_watch_end(probe);
	if (!line)
		return 0;
	if (line > INT_MAX || irq_is_percpu(line))
		return -EINVAL;
	if (!IS_ENABLED(CONFIG_TRACEPOINTS))
		return -EOPNOTSUPP;
	for_each_kernel_tracepoint(canprobe_find, &canprobe_irq);
	if (!canprobe_irq.entry || !canprobe_irq.exit)
		return -EOPNOTSUPP;
	probe->handler_began_ns = 0;
	probe->watched = line;
	err = tracepoint_probe_register(canprobe_irq.entry, canprobe_handler_begins, probe);
	if (!err) {
		err = tracepoint_probe_register(canprobe_irq.exit, canprobe_handler_ended, probe);
		if (err)
			tracepoint_probe_unregister(canprobe_irq.entry, canprobe_handler_begins,
						    probe);
	}
	if (err) {
		tracepoint_synchronize_unregister();
		probe->watched = 0;
	}
	return err;
}
