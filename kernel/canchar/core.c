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

static bool canchar_wanted(const struct canchar_file *file, u32 can_id)
{
	if (likely(!file->filters))
		return !(can_id & CAN_ERR_FLAG);
	return canchar_filters_pass(file->filters, can_id);
}

/* Inline, as canchar_wake_readers(): a call costs 15 instructions a frame. */
static __always_inline void canchar_deliver(struct canchar_device *dev,
					    struct canchar_frame *frame)
{
	struct canchar_file *file;

	list_for_each_entry(file, &dev->files, node)
		if (canchar_wanted(file, frame->can_id))
			canchar_queue_put(file, frame);
}

/* Takes one frame, because the interrupt handler asks the chip again in any case. */
static __always_inline unsigned int canchar_receive(struct canchar_device *dev)
{
	struct canchar_frame frame;

	if (!canchar_chip_receive(dev, &frame))
		return 0;
	frame.stamp_ns = dev->stamp_count ? ktime_get_real_ns() : 0;
	canchar_deliver(dev, &frame);
	dev->counts.rx_frames++;
	return 1;
}

/* The caller has a full barrier after the condition that the waiters check. */
static void canchar_wake_reader(struct canchar_file *file, u32 unread)
{
	if (unread >= file->wake_at && rcuwait_active(&file->reader))
		rcuwait_wake_up(&file->reader);
	/* After the caller's barrier. */
	if (unread >= file->poll_at && waitqueue_active(&file->pollers))
		irq_work_queue(&file->wake_pollers);
}

/* Wakes all waiters for the frames that arrived since the last call. */
static __always_inline void canchar_wake_readers(struct canchar_device *dev)
{
	struct canchar_file *file;

	/* Pairs with set_current_state() of a waiter that checks for frames, then sleeps. */
	smp_mb();
	list_for_each_entry(file, &dev->files, node) {
		if (!file->fresh)
			continue;
		file->fresh = false;
		canchar_wake_reader(file, canchar_ring_unread(&file->rx));
	}
}

void canchar_echo(struct canchar_device *dev)
{
	struct canchar_frame frame = dev->in_flight_frame;
	struct canchar_file *file;

	frame.stamp_ns = ktime_get_real_ns();
	/* The sender may have left anything after the data. */
	if (frame.can_id & CAN_RTR_FLAG)
		memset(frame.data, 0, sizeof(frame.data));
	else
		memset(frame.data + frame.len, 0, sizeof(frame.data) - frame.len);
	list_for_each_entry(file, &dev->files, node) {
		bool own = file == dev->in_flight_of;

		if (!(dev->in_flight_flags & (own ? CANCHAR_ECHO_OWN : CANCHAR_ECHO)))
			continue;
		frame.flags = own ? CANCHAR_FRAME_OWN : CANCHAR_FRAME_LOCAL;
		if (canchar_wanted(file, frame.can_id))
			canchar_queue_put(file, &frame);
	}
	canchar_wake_readers(dev);
}

void canchar_wake_everybody(struct canchar_device *dev)
{
	struct canchar_file *file;

	smp_mb();	/* as in canchar_wake_readers() */
	list_for_each_entry(file, &dev->files, node) {
		rcuwait_wake_up(&file->writer);
		canchar_wake_reader(file, U32_MAX);
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
	canchar_deliver(dev, &frame);
}

/* Which error counter caused the state, as SocketCAN drivers report it. */
static u8 canchar_control_byte(const struct canchar_standing *standing)
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

void canchar_recovered(struct canchar_device *dev, const struct canchar_standing *standing)
{
	dev->recovering = false;
	dev->counts.restarts++;
	canchar_error_frame(dev, CAN_ERR_RESTARTED, 0, standing);
	canchar_wake_everybody(dev);
	canchar_feed(dev);
}

static void canchar_state_changed(struct canchar_device *dev)
{
	struct canchar_standing standing;
	bool recovered;
	u32 restart_ms;

	dev->ops->standing(dev, &standing);
	if (standing.state == dev->state)
		return;
	recovered = dev->state == CANCHAR_BUS_OFF;
	canchar_set_state(dev, standing.state);
	if (recovered) {
		canchar_recovered(dev, &standing);
		return;
	}
	if (dev->state != CANCHAR_BUS_OFF) {
		canchar_error_frame(dev, CAN_ERR_CRTL, canchar_control_byte(&standing), &standing);
		return;
	}
	dev->counts.bus_off++;
	/* Frames that wait now would be sent after a restart that may be hours away. */
	canchar_stop_sending(dev);
	canchar_error_frame(dev, CAN_ERR_BUSOFF, 0, &standing);
	canchar_wake_everybody(dev);
	restart_ms = READ_ONCE(dev->timing.restart_ms);
	if (restart_ms)
		schedule_delayed_work(&dev->restart, msecs_to_jiffies(restart_ms));
}

/* The card has been pulled out: its registers read as ones. */
static void canchar_card_lost(struct canchar_device *dev)
{
	dev->running = false;
	dev->live = false;
	canchar_set_state(dev, CANCHAR_STOPPED);
	canchar_stop_sending(dev);
	canchar_wake_everybody(dev);
}

/* Handles the events, and returns the number of received frames. */
static __always_inline unsigned int canchar_handle(struct canchar_device *dev, unsigned int events)
{
	unsigned int count = 0;

	if (unlikely(events & CANCHAR_EVENT_GONE)) {
		canchar_card_lost(dev);
		return 0;
	}
	if (events & CANCHAR_EVENT_RX)
		count = canchar_receive(dev);
	if (unlikely(events & CANCHAR_EVENT_OVERRUN)) {
		dev->counts.rx_overruns++;
		canchar_error_frame(dev, CAN_ERR_CRTL, CAN_ERR_CRTL_RX_OVERFLOW, NULL);
	}
	if (unlikely(events & CANCHAR_EVENT_STATE))
		canchar_state_changed(dev);
	if (events & CANCHAR_EVENT_TX)
		canchar_feed(dev);
	return count;
}

/* While the chip is masked, only changes of state interrupt; polling serves them and the frames. */
static noinline bool canchar_interrupt_masked(struct canchar_device *dev)
{
	if (!dev->live || !dev->ops->acknowledge(dev))
		return false;
	dev->counts.interrupts++;
	if (!dev->deferred)	/* otherwise the thread looks */
		canchar_poll_chip(dev);
	return true;
}

/* Leaves an interrupt to the thread; the chip is masked until that has handled it. */
static noinline bool canchar_defer(struct canchar_device *dev)
{
	unsigned int events = dev->live ? canchar_chip_events(dev) : 0;

	if (!events)
		return false;
	dev->deferred_events = events;
	dev->ops->mask(dev, true);
	WRITE_ONCE(dev->deferred, true);
	wake_up_process(dev->thread);
	return true;
}

void canchar_handle_deferred(struct canchar_device *dev)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&dev->lock, flags);
	if (dev->deferred && dev->live) {
		dev->counts.interrupts++;
		canchar_handle(dev, dev->deferred_events);
		/* Frames that arrive from now on interrupt again; those before do not. */
		if (dev->live) {
			dev->ops->mask(dev, dev->masked);
			canchar_poll_chip(dev);
		}
		canchar_wake_readers(dev);
	}
	WRITE_ONCE(dev->deferred, false);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
}

/*
 * The hard interrupt handler of every board, or what it leaves to the device's thread: checks the
 * chip again before it returns, which saves the interrupts of frames that arrived meanwhile; but
 * not without limit.
 */
irqreturn_t canchar_interrupt(int irq, void *data)
{
	struct canchar_device *dev = data;
	unsigned int events, vain = 0, count = 0;
	unsigned long flags;

	raw_spin_lock_irqsave(&dev->lock, flags);
	if (unlikely(dev->masked || dev->deferred || dev->thread)) {
		bool handled = dev->masked || dev->deferred ? canchar_interrupt_masked(dev) :
							      canchar_defer(dev);

		raw_spin_unlock_irqrestore(&dev->lock, flags);
		return handled ? IRQ_HANDLED : IRQ_NONE;
	}
	while (dev->live && vain < CANCHAR_PASSES_MAX && count < CANCHAR_BURST_MAX) {
		unsigned int came;

		events = canchar_chip_events(dev);
		if (!events)
			break;
		came = canchar_handle(dev, events);
		count += came;
		vain += !came;
	}
	if (vain || count) {
		dev->counts.interrupts++;
		canchar_wake_readers(dev);
	}
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	return vain || count ? IRQ_HANDLED : IRQ_NONE;
}

/* As the interrupt handler, from task context while the interrupt is masked. With the lock held. */
void canchar_poll_chip(struct canchar_device *dev)
{
	unsigned int events, count = 0;
	bool happened = false;

	if (!dev->live)
		return;
	dev->polled = true;
	do {
		events = canchar_chip_look(dev);
		if (!events)
			break;
		happened = true;
		count += canchar_handle(dev, events);
	} while (events & CANCHAR_EVENT_RX && count < CANCHAR_BURST_MAX && dev->live);
	if (unlikely(dev->tx_armed))
		canchar_feed(dev);
	if (happened)
		canchar_wake_readers(dev);
}

static void canchar_set_mask(struct canchar_device *dev, bool masked)
{
	struct canchar_file *file;

	if (masked == dev->masked)
		return;
	WRITE_ONCE(dev->masked, masked);
	list_for_each_entry(file, &dev->files, node)
		WRITE_ONCE(file->rx.shared->need_wakeup, masked);
	if (!dev->live)
		return;
	if (!dev->deferred)	/* otherwise it is masked until the thread has handled that */
		dev->ops->mask(dev, masked);
	if (masked)
		canchar_watch(dev);
	/* Frames that arrived meanwhile, or are latched, cause no interrupt. */
	canchar_poll_chip(dev);
}

/* Readers, writers, and files in a poll(2) or an epoll set. */
static bool canchar_somebody_sleeps(const struct canchar_device *dev)
{
	struct canchar_file *file;

	list_for_each_entry(file, &dev->files, node) {
		if (rcuwait_active(&file->reader) || rcuwait_active(&file->writer))
			return true;
		/* Without a barrier: canchar_mask() looks again after one. */
		if (waitqueue_active(&file->pollers))
			return true;
	}
	return false;
}

void canchar_watch(struct canchar_device *dev)
{
	if (!hrtimer_is_queued(&dev->watchdog))
		hrtimer_start(&dev->watchdog, ns_to_ktime(CANCHAR_MASKED_MAX_NS),
			      HRTIMER_MODE_REL_HARD);
}

/*
 * The caller that masked the chip may never poll again: then frames, bus-off and the transmit
 * queues of all files would wait for it. And senders whose turn failed get another one.
 */
enum hrtimer_restart canchar_watchdog(struct hrtimer *timer)
{
	struct canchar_device *dev = container_of(timer, struct canchar_device, watchdog);
	unsigned long flags;
	bool again;

	raw_spin_lock_irqsave(&dev->lock, flags);
	if (dev->masked && !dev->polled)
		canchar_set_mask(dev, false);
	dev->polled = false;
	canchar_feed(dev);
	/* Somebody else may have started it while this function waited for the lock. */
	again = dev->live && dev->masked && !hrtimer_is_queued(timer);
	if (again)
		hrtimer_forward_now(timer, ns_to_ktime(CANCHAR_MASKED_MAX_NS));
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	return again ? HRTIMER_RESTART : HRTIMER_NORESTART;
}

void canchar_mask(struct canchar_device *dev)
{
	if (canchar_somebody_sleeps(dev))
		return;
	canchar_set_mask(dev, true);
	/* Pairs with set_current_state() of a waiter that checks the mask before it sleeps. */
	smp_mb();
	if (canchar_somebody_sleeps(dev))
		canchar_set_mask(dev, false);
}

void canchar_unmask(struct canchar_device *dev)
{
	unsigned long flags;

	if (likely(!READ_ONCE(dev->masked)))
		return;
	raw_spin_lock_irqsave(&dev->lock, flags);
	canchar_set_mask(dev, false);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
}
