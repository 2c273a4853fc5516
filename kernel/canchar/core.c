// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of a controller, from its interrupt handler or by polling: frames go to the files whose
 * filters accept them, state changes to files that requested error frames. Everything here runs
 * under the device's raw lock with interrupts off, so that it may run in the hard interrupt handler
 * on every kernel, PREEMPT_RT too.
 */

#include <linux/ktime.h>

#include "canchar.h"
#include "chip.h"

/* ---------------------------------------------------------- receiving -- */

static bool wanted(const struct canchar_file *file, u32 can_id)
{
	if (likely(!file->filters))
		return !(can_id & CAN_ERR_FLAG);
	return canchar_filters_pass(file->filters, can_id);
}

static void deliver(struct canchar_device *dev, struct canchar_frame *frame)
{
	struct canchar_file *file;

	list_for_each_entry(file, &dev->files, node)
		if (wanted(file, frame->can_id))
			canchar_queue_put(file, frame);
}

/* One frame; whether there are more the chip is asked anyway. */
static __always_inline unsigned int receive(struct canchar_device *dev)
{
	struct canchar_frame frame;

	if (!chip_receive(dev, &frame))
		return 0;
	frame.stamp_ns = ktime_get_real_ns();
	deliver(dev, &frame);
	dev->counts.rx_frames++;
	return 1;
}

/* With a full barrier after the condition that they wait for. */
static void wake_reader(struct canchar_file *file)
{
	if (rcuwait_active(&file->reader))
		rcuwait_wake_up(&file->reader);
	if (waitqueue_active(&file->pollers))
		irq_work_queue(&file->wake_pollers);
}

/* Wakes all waiters for frames since the last call, at once. */
static void wake_readers(struct canchar_device *dev)
{
	struct canchar_file *file;

	/* Pairs with set_current_state() of a waiter that checks for frames, then sleeps. */
	smp_mb();
	list_for_each_entry(file, &dev->files, node) {
		if (!file->fresh || canchar_ring_unread(&file->rx) < file->wake_at)
			continue;
		file->fresh = false;
		wake_reader(file);
	}
}

/* A sent frame was on the bus: gives its echo to the files that requested it. With the lock
 * held.
 */
void canchar_echo(struct canchar_device *dev)
{
	struct canchar_frame frame = dev->in_flight_frame;
	struct canchar_file *file;

	frame.stamp_ns = ktime_get_real_ns();
	list_for_each_entry(file, &dev->files, node) {
		bool own = file == dev->in_flight_of;

		if (!(dev->in_flight_flags & (own ? CANCHAR_ECHO_OWN : CANCHAR_ECHO)))
			continue;
		frame.flags = own ? CANCHAR_FRAME_OWN : CANCHAR_FRAME_LOCAL;
		if (wanted(file, frame.can_id))
			canchar_queue_put(file, &frame);
	}
	wake_readers(dev);
}

void canchar_wake_everybody(struct canchar_device *dev)
{
	struct canchar_file *file;

	smp_mb();	/* as above */
	list_for_each_entry(file, &dev->files, node) {
		rcuwait_wake_up(&file->writer);
		wake_reader(file);
	}
}

/* -------------------------------------------------------------- state -- */

void canchar_error_frame(struct canchar_device *dev, u32 class, u8 control,
			 const struct canchar_standing *standing)
{
	struct canchar_frame frame = {
		.stamp_ns = ktime_get_real_ns(),
		.can_id = CAN_ERR_FLAG | class,
		.len = CAN_ERR_DLC,
	};

	frame.data[1] = control;
	if (standing) {
		frame.can_id |= CAN_ERR_CNT;
		frame.data[6] = standing->tx_errors;
		frame.data[7] = standing->rx_errors;
	}
	dev->counts.error_frames++;
	deliver(dev, &frame);
}

/* Which error counter caused the state, as SocketCAN drivers report it. */
static u8 control_byte(const struct canchar_standing *standing)
{
	bool tx = standing->tx_errors >= standing->rx_errors;
	bool rx = standing->rx_errors >= standing->tx_errors;

	switch (standing->state) {
	case CANCHAR_ERROR_WARNING:
		return (tx ? CAN_ERR_CRTL_TX_WARNING : 0) | (rx ? CAN_ERR_CRTL_RX_WARNING : 0);
	case CANCHAR_ERROR_PASSIVE:
		return (tx ? CAN_ERR_CRTL_TX_PASSIVE : 0) | (rx ? CAN_ERR_CRTL_RX_PASSIVE : 0);
	default:
		return CAN_ERR_CRTL_ACTIVE;
	}
}

static void state_changed(struct canchar_device *dev)
{
	struct canchar_standing standing;

	dev->ops->standing(dev, &standing);
	if (standing.state == dev->state)
		return;
	dev->state = standing.state;
	if (dev->state != CANCHAR_BUS_OFF) {
		canchar_error_frame(dev, CAN_ERR_CRTL, control_byte(&standing), &standing);
		return;
	}
	dev->counts.bus_off++;
	canchar_abort_in_flight(dev);
	canchar_error_frame(dev, CAN_ERR_BUSOFF, 0, &standing);
	canchar_wake_everybody(dev);
	if (dev->timing.restart_ms)
		schedule_delayed_work(&dev->restart, msecs_to_jiffies(dev->timing.restart_ms));
}

/* The card has been pulled out: its registers read as ones. */
static void card_lost(struct canchar_device *dev)
{
	dev->running = false;
	dev->state = CANCHAR_STOPPED;
	canchar_abort_in_flight(dev);
	canchar_wake_everybody(dev);
}

/* How many frames it has received. */
static __always_inline unsigned int handle(struct canchar_device *dev, unsigned int events)
{
	unsigned int count = 0;

	if (unlikely(events & CANCHAR_EVENT_GONE)) {
		card_lost(dev);
		return 0;
	}
	if (events & CANCHAR_EVENT_RX)
		count = receive(dev);
	if (unlikely(events & CANCHAR_EVENT_OVERRUN)) {
		dev->counts.rx_overruns++;
		canchar_error_frame(dev, CAN_ERR_CRTL, CAN_ERR_CRTL_RX_OVERFLOW, NULL);
	}
	if (unlikely(events & CANCHAR_EVENT_STATE))
		state_changed(dev);
	if (events & CANCHAR_EVENT_TX)
		canchar_feed(dev);
	return count;
}

/**
 * canchar_interrupt() - the hard interrupt handler of every board
 * @irq: its line
 * @data: the struct canchar_device
 *
 * Checks the chip again before it returns, which saves the interrupts of frames that arrived
 * meanwhile; but not without limit.
 */
irqreturn_t canchar_interrupt(int irq, void *data)
{
	struct canchar_device *dev = data;
	unsigned int events, vain = 0, count = 0;
	unsigned long flags;

	raw_spin_lock_irqsave(&dev->lock, flags);
	while (vain < CANCHAR_PASSES_MAX && count < CANCHAR_BURST_MAX) {
		unsigned int came;

		if (!dev->running || dev->masked)
			break;
		events = chip_events(dev);
		if (!events)
			break;
		came = handle(dev, events);
		count += came;
		vain += !came;
	}
	if (vain || count) {
		dev->counts.interrupts++;
		wake_readers(dev);
	}
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	return vain || count ? IRQ_HANDLED : IRQ_NONE;
}

/* The same from task context, the interrupt masked. With the lock held. */
void canchar_poll_chip(struct canchar_device *dev)
{
	unsigned int events, count = 0;
	bool happened = false;

	if (!dev->running)
		return;
	do {
		events = chip_look(dev);
		if (!events)
			break;
		happened = true;
		count += handle(dev, events);
	} while (events & CANCHAR_EVENT_RX && count < CANCHAR_BURST_MAX && dev->running);
	if (unlikely(dev->tx_armed))
		canchar_feed(dev);
	if (happened)
		wake_readers(dev);
}

static void set_mask(struct canchar_device *dev, bool masked)
{
	struct canchar_file *file;

	if (masked == dev->masked)
		return;
	WRITE_ONCE(dev->masked, masked);
	list_for_each_entry(file, &dev->files, node)
		WRITE_ONCE(file->rx.shared->need_wakeup, masked);
	if (!dev->running)
		return;
	dev->ops->mask(dev, masked);
	/* Frames that arrived meanwhile, or are latched, cause no interrupt. */
	canchar_poll_chip(dev);
}

static bool somebody_sleeps(const struct canchar_device *dev)
{
	struct canchar_file *file;

	list_for_each_entry(file, &dev->files, node)
		if (rcuwait_active(&file->reader) || rcuwait_active(&file->writer))
			return true;
	return false;
}

/* The chip is about to be polled: no interrupt, unless a caller sleeps for it. */
void canchar_mask(struct canchar_device *dev)
{
	if (somebody_sleeps(dev))
		return;
	set_mask(dev, true);
	/* Pairs with set_current_state() of a waiter that checks the mask before it sleeps. */
	smp_mb();
	if (somebody_sleeps(dev))
		set_mask(dev, false);
}

/* A caller is about to sleep: enables the interrupt. Not with the lock held. */
void canchar_unmask(struct canchar_device *dev)
{
	unsigned long flags;

	if (likely(!READ_ONCE(dev->masked)))
		return;
	raw_spin_lock_irqsave(&dev->lock, flags);
	set_mask(dev, false);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
}
