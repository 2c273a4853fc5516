// SPDX-License-Identifier: GPL-2.0-only
/*
 * Selects and sends frames, under the device's raw lock. At most one frame per call: when the
 * controller is free again at once, its interrupt fires again, and other work can run in between.
 */

#include "canchar.h"
#include "chip.h"

static bool canchar_senders_wait(const struct canchar_device *dev)
{
	int priority;

	for (priority = 0; priority < CANCHAR_PRIORITIES; priority++)
		if (!list_empty(&dev->senders[priority]))
			return true;
	return false;
}

/* Whether somebody waits for the transmit buffer to become free. */
static bool canchar_tx_wanted(const struct canchar_device *dev)
{
	if (canchar_senders_wait(dev))
		return true;
	if (!dev->in_flight)
		return false;
	return dev->in_flight_flags || (dev->in_flight_of && dev->in_flight_of->tx_waiters);
}

static void canchar_arm(struct canchar_device *dev, bool wanted)
{
	if (wanted == dev->tx_armed)
		return;
	dev->tx_armed = wanted;
	dev->ops->tx_interrupt(dev, wanted);
}

static void canchar_wake_writer(struct canchar_file *file)
{
	if (!file->tx_waiters && !file->tx_polled)
		return;
	file->tx_polled = false;
	rcuwait_wake_up(&file->writer);
	/* tx_polled was set under the lock, after the poller had joined the queue. */
	if (waitqueue_active(&file->pollers))
		irq_work_queue(&file->wake_pollers);
}

/* Wakes the waiters for sent frames. */
static noinline void canchar_tell_sent(struct canchar_device *dev)
{
	if (dev->in_flight_flags)
		canchar_echo(dev);
	if (dev->in_flight_of)
		canchar_wake_writer(dev->in_flight_of);
}

/* The frame in the controller has left it. */
static __always_inline void canchar_sent(struct canchar_device *dev)
{
	const struct canchar_file *file = dev->in_flight_of;

	if (!dev->in_flight)
		return;
	dev->in_flight = false;
	dev->counts.tx_frames++;
	if (unlikely(dev->in_flight_flags || (file && (file->tx_waiters || file->tx_polled))))
		canchar_tell_sent(dev);
}

/* The file has frames to send: it gets its turn. */
static void canchar_activate(struct canchar_file *file)
{
	if (!list_empty(&file->sender) || !canchar_ring_unsent(&file->tx))
		return;
	list_add_tail(&file->sender, &file->dev->senders[file->priority]);
	WRITE_ONCE(file->tx.shared->need_wakeup, 0);
}

static void canchar_deactivate(struct canchar_file *file)
{
	list_del_init(&file->sender);
	WRITE_ONCE(file->tx.shared->need_wakeup, 1);
	/* Pairs with the producer's barrier between its head and need_wakeup. */
	smp_mb();
}

/* Discards the frames in a transmit ring. */
static void canchar_discard(struct canchar_file *file)
{
	u32 waiting = canchar_ring_unsent(&file->tx);

	file->tx_lost += waiting;
	file->tx.tail += waiting;
	/* C, as in canchar_ring_get() */
	smp_store_release(&file->tx.shared->tail, file->tx.tail);
}

/* Takes the next frame of a file; true when it is one to be sent. */
static bool canchar_take(struct canchar_file *file, struct canchar_frame *frame)
{
	if (!canchar_ring_get(&file->tx, frame)) {
		canchar_deactivate(file);
		canchar_activate(file);	/* a frame came meanwhile: it may try again */
		return false;
	}
	if (unlikely(!canchar_frame_valid(frame))) {
		/* Only a mapped ring can have one: drops all its frames instead of searching. */
		file->tx_lost++;
		canchar_discard(file);
		canchar_deactivate(file);
		canchar_activate(file);	/* frames behind those that were discarded */
		return false;
	}
	file->tx_frames++;
	if (!canchar_ring_unsent(&file->tx)) {
		canchar_deactivate(file);
		canchar_activate(file);
	} else {
		list_move_tail(&file->sender, &file->dev->senders[file->priority]);
	}
	canchar_wake_writer(file);
	return true;
}

/* The file whose turn it is, and its frame. */
static struct canchar_file *canchar_next_sender(struct canchar_device *dev,
						struct canchar_frame *frame)
{
	int priority, tries = 2 * CANCHAR_FILES_MAX;

	for (priority = CANCHAR_PRIORITIES - 1; priority >= 0; priority--)
		while (!list_empty(&dev->senders[priority]) && tries-- > 0) {
			struct canchar_file *file = list_first_entry(&dev->senders[priority],
								     struct canchar_file, sender);

			if (canchar_take(file, frame))
				return file;
		}
	return NULL;
}

/* Records the frame and its file as in the controller; more: other frames wait for the
 * controller.
 */
static __always_inline void canchar_launch(struct canchar_device *dev, struct canchar_file *file,
					   const struct canchar_frame *frame, bool more)
{
	dev->in_flight = true;
	dev->in_flight_of = file;
	dev->in_flight_flags = file->frame_flags;
	canchar_arm(dev, more || file->frame_flags || file->tx_waiters);
	canchar_chip_send(dev, frame);
}

void canchar_feed(struct canchar_device *dev)
{
	struct canchar_file *file;

	if (!dev->sends)
		return;
	if (!canchar_chip_tx_free(dev)) {
		if (dev->tx_armed || !canchar_tx_wanted(dev))
			return;
		canchar_arm(dev, true);
		/* The buffer may have become free before the interrupt was allowed. */
		if (!canchar_chip_tx_free(dev))
			return;
	}
	canchar_sent(dev);
	file = canchar_next_sender(dev, &dev->in_flight_frame);
	if (!file) {
		canchar_arm(dev, false);
		/* Each try met a ring that its process had just emptied or damaged. */
		if (unlikely(canchar_senders_wait(dev)))
			canchar_watch(dev);
		return;
	}
	canchar_launch(dev, file, &dev->in_flight_frame, canchar_senders_wait(dev));
}

/* No file waits for its turn, and the controller is free. */
static __always_inline bool canchar_may_send_at_once(struct canchar_device *dev)
{
	return likely(!dev->tx_armed && !canchar_senders_wait(dev) && dev->sends) &&
	       canchar_chip_tx_free(dev);
}

/*
 * If no file waits for its turn and the controller is free, a frame can bypass the queue: false
 * otherwise. need_wakeup stays as it is, because the file has no turn.
 */
static __always_inline bool canchar_push_at_once(struct canchar_device *dev,
						 struct canchar_file *file)
{
	bool more;

	if (!canchar_may_send_at_once(dev))
		return false;
	canchar_sent(dev);
	if (!canchar_ring_get(&file->tx, &dev->in_flight_frame))
		return false;
	if (unlikely(!canchar_frame_valid(&dev->in_flight_frame))) {
		file->tx_lost++;
		canchar_discard(file);
		return true;
	}
	file->tx_frames++;
	canchar_wake_writer(file);
	more = canchar_ring_unsent(&file->tx);
	if (more)
		canchar_activate(file);
	canchar_launch(dev, file, &dev->in_flight_frame, more);
	return true;
}

bool canchar_send_at_once(struct canchar_file *file, const struct canchar_frame *frame)
{
	struct canchar_device *dev = file->dev;

	if (canchar_ring_unsent(&file->tx) || !canchar_may_send_at_once(dev))
		return false;
	canchar_sent(dev);
	file->tx_frames++;
	if (file->frame_flags)
		dev->in_flight_frame = *frame;	/* for its echo */
	canchar_launch(dev, file, frame, false);
	return true;
}

void canchar_push(struct canchar_file *file)
{
	struct canchar_device *dev = file->dev;

	if (likely(dev->running)) {
		if (canchar_push_at_once(dev, file))
			return;
		canchar_activate(file);
		canchar_feed(dev);
	} else if (!file->mapped) {
		canchar_discard(file);	/* it stopped after the writer's check */
	}
}

bool canchar_all_sent(const struct canchar_file *file)
{
	const struct canchar_device *dev = file->dev;

	return !canchar_ring_unsent(&file->tx) && !(dev->in_flight && dev->in_flight_of == file);
}

void canchar_abort_in_flight(struct canchar_device *dev)
{
	dev->counts.tx_aborted += dev->in_flight;
	dev->in_flight = false;
}

/* Waiting frames would be stale after the next start. */
void canchar_stop_sending(struct canchar_device *dev)
{
	struct canchar_file *file;

	canchar_abort_in_flight(dev);
	dev->tx_armed = false;
	list_for_each_entry(file, &dev->files, node) {
		/* In this order: who stores a frame after the discard finds that it must kick. */
		canchar_deactivate(file);
		canchar_discard(file);
	}
}

void canchar_forget_file(struct canchar_file *file)
{
	struct canchar_device *dev = file->dev;

	canchar_discard(file);
	list_del_init(&file->sender);
	list_del(&file->node);
	dev->file_count--;
	dev->stamp_count -= canchar_needs_stamps(&file->options);
	dev->rule_count -= file->filters ? file->filters->count : 0;
	if (dev->in_flight_of == file)
		dev->in_flight_of = NULL;
}
