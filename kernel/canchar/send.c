// SPDX-License-Identifier: GPL-2.0-only
/*
 * Selects and sends frames, under the device's raw lock. At most one frame per call: when the
 * controller is free again at once, its interrupt fires again, and other work can run in between.
 */

#include "canchar.h"
#include "chip.h"

static bool senders_wait(const struct canchar_device *dev)
{
	int priority;

	for (priority = 0; priority < CANCHAR_PRIORITIES; priority++)
		if (!list_empty(&dev->senders[priority]))
			return true;
	return false;
}

/* Requests an interrupt when the transmit buffer is free again. */
static bool tx_wanted(const struct canchar_device *dev)
{
	if (senders_wait(dev))
		return true;
	if (!dev->in_flight)
		return false;
	return dev->in_flight_flags || (dev->in_flight_of && dev->in_flight_of->tx_waiters);
}

static void arm(struct canchar_device *dev, bool wanted)
{
	if (wanted == dev->tx_armed)
		return;
	dev->tx_armed = wanted;
	dev->ops->tx_interrupt(dev, wanted);
}

static void wake_writer(struct canchar_file *file)
{
	if (!file->tx_waiters && !file->tx_polled)
		return;
	file->tx_polled = false;
	rcuwait_wake_up(&file->writer);
	if (waitqueue_active(&file->pollers))
		irq_work_queue(&file->wake_pollers);
}

/* Wakes the waiters for sent frames. */
static noinline void tell_sent(struct canchar_device *dev)
{
	if (dev->in_flight_flags)
		canchar_echo(dev);
	if (dev->in_flight_of)
		wake_writer(dev->in_flight_of);
}

/* The frame in the controller has left it. */
static __always_inline void sent(struct canchar_device *dev)
{
	const struct canchar_file *file = dev->in_flight_of;

	if (!dev->in_flight)
		return;
	dev->in_flight = false;
	dev->counts.tx_frames++;
	if (unlikely(dev->in_flight_flags || (file && (file->tx_waiters || file->tx_polled))))
		tell_sent(dev);
}

/* The file has frames to send: it gets its turn. */
static void activate(struct canchar_file *file)
{
	if (!list_empty(&file->sender) || !canchar_ring_unsent(&file->tx))
		return;
	list_add_tail(&file->sender, &file->dev->senders[file->priority]);
	WRITE_ONCE(file->tx.shared->need_wakeup, 0);
}

static void deactivate(struct canchar_file *file)
{
	list_del_init(&file->sender);
	WRITE_ONCE(file->tx.shared->need_wakeup, 1);
	/* Pairs with the producer's barrier between its head and need_wakeup. */
	smp_mb();
}

/* Discards the frames in a transmit ring. */
static void discard(struct canchar_file *file)
{
	u32 waiting = canchar_ring_unsent(&file->tx);

	file->tx_lost += waiting;
	file->tx.tail += waiting;
	smp_store_release(&file->tx.shared->tail, file->tx.tail);
}

/* Takes the next frame of a file; true when it is one to be sent. */
static bool take(struct canchar_file *file, struct canchar_frame *frame)
{
	if (!canchar_ring_get(&file->tx, frame)) {
		deactivate(file);
		activate(file);	/* a frame came meanwhile: it may try again */
		return false;
	}
	if (unlikely(!canchar_frame_valid(frame))) {
		/* Only a mapped ring can have one: drops all its frames instead of searching. */
		file->tx_lost++;
		discard(file);
		deactivate(file);
		return false;
	}
	file->tx_frames++;
	if (!canchar_ring_unsent(&file->tx)) {
		deactivate(file);
		activate(file);
	} else {
		list_move_tail(&file->sender, &file->dev->senders[file->priority]);
	}
	wake_writer(file);
	return true;
}

/* The file whose turn it is, and its frame. */
static struct canchar_file *next_sender(struct canchar_device *dev, struct canchar_frame *frame)
{
	int priority, tries = 2 * CANCHAR_BURST_MAX;

	for (priority = CANCHAR_PRIORITIES - 1; priority >= 0; priority--)
		while (!list_empty(&dev->senders[priority]) && tries--) {
			struct canchar_file *file = list_first_entry(&dev->senders[priority],
								     struct canchar_file, sender);

			if (take(file, frame))
				return file;
		}
	return NULL;
}

/* Records the frame and its file as in the controller; more: other frames wait for the
 * controller.
 */
static __always_inline void launch(struct canchar_device *dev, struct canchar_file *file,
				   const struct canchar_frame *frame, bool more)
{
	dev->in_flight = true;
	dev->in_flight_of = file;
	dev->in_flight_flags = file->frame_flags;
	arm(dev, more || file->frame_flags || file->tx_waiters);
	chip_send(dev, frame);
}

/* Gives the controller the next frame if it can take it. With the lock held. */
void canchar_feed(struct canchar_device *dev)
{
	struct canchar_file *file;

	if (!dev->running || dev->state == CANCHAR_BUS_OFF)
		return;
	if (!chip_tx_free(dev)) {
		if (dev->tx_armed || !tx_wanted(dev))
			return;
		arm(dev, true);
		/* It may have become free before the interrupt was allowed. */
		if (!chip_tx_free(dev))
			return;
	}
	sent(dev);
	file = next_sender(dev, &dev->in_flight_frame);
	if (!file) {
		arm(dev, false);
		return;
	}
	launch(dev, file, &dev->in_flight_frame, senders_wait(dev));
}

/* No file waits for its turn, and the controller is free. */
static __always_inline bool may_send_at_once(struct canchar_device *dev)
{
	return likely(!dev->tx_armed && !senders_wait(dev) && dev->state != CANCHAR_BUS_OFF) &&
	       chip_tx_free(dev);
}

/*
 * If no file waits for its turn and the controller is free, a frame can bypass the queue: false
 * otherwise. need_wakeup stays as it is, because the file has no turn.
 */
static __always_inline bool push_at_once(struct canchar_device *dev, struct canchar_file *file)
{
	bool more;

	if (!may_send_at_once(dev))
		return false;
	sent(dev);
	if (!canchar_ring_get(&file->tx, &dev->in_flight_frame))
		return false;
	if (unlikely(!canchar_frame_valid(&dev->in_flight_frame))) {
		file->tx_lost++;
		discard(file);
		return true;
	}
	file->tx_frames++;
	wake_writer(file);
	more = canchar_ring_unsent(&file->tx);
	if (more)
		activate(file);
	launch(dev, file, &dev->in_flight_frame, more);
	return true;
}

/* Sends a frame past its file's queue, which is empty; false when it must be queued. */
bool canchar_send_at_once(struct canchar_file *file, const struct canchar_frame *frame)
{
	struct canchar_device *dev = file->dev;

	if (!dev->running || canchar_ring_unsent(&file->tx) || !may_send_at_once(dev))
		return false;
	sent(dev);
	file->tx_frames++;
	if (file->frame_flags)
		dev->in_flight_frame = *frame;	/* for its echo */
	launch(dev, file, frame, false);
	return true;
}

/* Sends what was put into a transmit ring. With the lock held. */
void canchar_push(struct canchar_file *file)
{
	struct canchar_device *dev = file->dev;

	if (likely(dev->running)) {
		if (push_at_once(dev, file))
			return;
		activate(file);
		canchar_feed(dev);
	} else if (!file->mapped) {
		discard(file);	/* it stopped after the writer's check */
	}
}

/* Whether all of a file's frames have left the controller. With the lock held. */
bool canchar_all_sent(const struct canchar_file *file)
{
	const struct canchar_device *dev = file->dev;

	return !canchar_ring_unsent(&file->tx) && !(dev->in_flight && dev->in_flight_of == file);
}

/* The frame in the controller will not leave it. With the lock held. */
void canchar_abort_in_flight(struct canchar_device *dev)
{
	dev->counts.tx_aborted += dev->in_flight;
	dev->in_flight = false;
}

/* Stops sending; waiting frames would be stale after the next start, so they are discarded. With
 * the lock held.
 */
void canchar_stop_sending(struct canchar_device *dev)
{
	struct canchar_file *file;

	canchar_abort_in_flight(dev);
	dev->tx_armed = false;
	list_for_each_entry(file, &dev->files, node) {
		if (!file->mapped)
			discard(file);	/* a mapped ring is its process's to send again */
		deactivate(file);
	}
}

/* A file is closed: removes all pointers to it. With the lock held. */
void canchar_forget_file(struct canchar_file *file)
{
	struct canchar_device *dev = file->dev;

	discard(file);
	list_del_init(&file->sender);
	list_del(&file->node);
	if (dev->in_flight_of == file)
		dev->in_flight_of = NULL;
}
