// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device: what happens in the interrupt handler, what is sent next, and
 * what state the controller is in. Everything here runs under the device's raw
 * lock with interrupts off, so that it may run in the hard interrupt handler on
 * every kernel, PREEMPT_RT too. One frame is sent per call at most: where a
 * controller is free again at once, its interrupt comes again, and others get
 * their turn between.
 */

#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "canchar.h"
#include "chip_sja1000_hot.h"

/* ---------------------------------------------------------- the chip -- */

/* The one that real cards have is called directly, any other through its operations. */
static __always_inline bool is_sja1000(const struct canchar_device *dev)
{
	return likely(dev->ops == &canchar_sja1000_ops);
}

static __always_inline unsigned int chip_events(struct canchar_device *dev)
{
	return is_sja1000(dev) ? sja1000_events(dev) : dev->ops->events(dev);
}

static __always_inline unsigned int chip_look(struct canchar_device *dev)
{
	return is_sja1000(dev) ? sja1000_look(dev) : dev->ops->look(dev);
}

static __always_inline bool chip_receive(struct canchar_device *dev, struct canchar_frame *frame)
{
	return is_sja1000(dev) ? sja1000_receive(dev, frame) : dev->ops->receive(dev, frame);
}

static __always_inline bool chip_tx_free(struct canchar_device *dev)
{
	return is_sja1000(dev) ? sja1000_tx_free(dev) : dev->ops->tx_free(dev);
}

static __always_inline void chip_send(struct canchar_device *dev, const struct canchar_frame *frame)
{
	if (is_sja1000(dev))
		sja1000_send(dev, frame);
	else
		dev->ops->send(dev, frame);
}

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

/* A frame of ours was on the bus: those hear of it who asked to. */
static void deliver_echo(struct canchar_device *dev)
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

/* With a full barrier behind what they wait for. */
static void wake_reader(struct canchar_file *file)
{
	if (rcuwait_active(&file->reader))
		rcuwait_wake_up(&file->reader);
	if (waitqueue_active(&file->pollers))
		irq_work_queue(&file->wake_pollers);
}

/* Wakes all at once who wait for what came since the last time. */
static void wake_readers(struct canchar_device *dev)
{
	struct canchar_file *file;

	/* Pairs with set_current_state() of one who looks for frames, then sleeps. */
	smp_mb();
	list_for_each_entry(file, &dev->files, node) {
		if (!file->fresh || canchar_ring_unread(&file->rx) < file->wake_at)
			continue;
		file->fresh = false;
		wake_reader(file);
	}
}

static void wake_everybody(struct canchar_device *dev)
{
	struct canchar_file *file;

	smp_mb();	/* as above */
	list_for_each_entry(file, &dev->files, node) {
		rcuwait_wake_up(&file->writer);
		wake_reader(file);
	}
}

/* -------------------------------------------------------------- state -- */

static void error_frame(struct canchar_device *dev, u32 class, u8 control,
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

/* Which side made it so, as SocketCAN drivers tell it. */
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

static void abort_in_flight(struct canchar_device *dev)
{
	dev->counts.tx_aborted += dev->in_flight;
	dev->in_flight = false;
}

static void state_changed(struct canchar_device *dev)
{
	struct canchar_standing standing;

	dev->ops->standing(dev, &standing);
	if (standing.state == dev->state)
		return;
	dev->state = standing.state;
	if (dev->state != CANCHAR_BUS_OFF) {
		error_frame(dev, CAN_ERR_CRTL, control_byte(&standing), &standing);
		return;
	}
	dev->counts.bus_off++;
	abort_in_flight(dev);
	error_frame(dev, CAN_ERR_BUSOFF, 0, &standing);
	wake_everybody(dev);
	if (dev->timing.restart_ms)
		schedule_delayed_work(&dev->restart, msecs_to_jiffies(dev->timing.restart_ms));
}

/* The card has been pulled out: its registers read as ones. */
static void card_lost(struct canchar_device *dev)
{
	dev->running = false;
	dev->state = CANCHAR_STOPPED;
	abort_in_flight(dev);
	wake_everybody(dev);
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
		error_frame(dev, CAN_ERR_CRTL, CAN_ERR_CRTL_RX_OVERFLOW, NULL);
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
 * Looks at the chip again before it leaves, which saves the interrupts of frames
 * that came meanwhile; but not for ever.
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
	/* What came meanwhile, or is latched, interrupts no more. */
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

/* The chip is about to be polled: no interrupt, unless somebody sleeps for it. */
void canchar_mask(struct canchar_device *dev)
{
	if (somebody_sleeps(dev))
		return;
	set_mask(dev, true);
	/* Pairs with set_current_state() of one who goes to sleep and looks at the mask. */
	smp_mb();
	if (somebody_sleeps(dev))
		set_mask(dev, false);
}

/* Somebody is about to sleep: the interrupt must come. Not with the lock held. */
void canchar_unmask(struct canchar_device *dev)
{
	unsigned long flags;

	if (likely(!READ_ONCE(dev->masked)))
		return;
	raw_spin_lock_irqsave(&dev->lock, flags);
	set_mask(dev, false);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
}

/* ------------------------------------------------------------ sending -- */

static bool senders_wait(const struct canchar_device *dev)
{
	int priority;

	for (priority = 0; priority < CANCHAR_PRIORITIES; priority++)
		if (!list_empty(&dev->senders[priority]))
			return true;
	return false;
}

/* Somebody wants to know when the transmit buffer is free again. */
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

/* Those hear of it who want to know that the frame has left. */
static noinline void tell_sent(struct canchar_device *dev)
{
	if (dev->in_flight_flags) {
		deliver_echo(dev);
		wake_readers(dev);
	}
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

/* Throws away what a transmit ring holds. */
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
		/* Of a mapped ring, which nobody has checked: not to be searched here. */
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

/* This frame of this file is the controller's now; more: others wait for it to be free again. */
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

/* Nobody waits for his turn, and the controller is free. */
static __always_inline bool may_send_at_once(struct canchar_device *dev)
{
	return likely(!dev->tx_armed && !senders_wait(dev) && dev->state != CANCHAR_BUS_OFF) &&
	       chip_tx_free(dev);
}

/*
 * Where nobody waits for his turn and the controller is free, a frame need not queue up:
 * false when it has to. need_wakeup stays as it is, because the file has no turn.
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

/* Sends a frame past its file's queue, which is empty; false when it has to go through it. */
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
		discard(file);	/* it stopped between the writer's look and now */
	}
}

/* Whether all of a file's frames have left the controller. With the lock held. */
bool canchar_all_sent(const struct canchar_file *file)
{
	const struct canchar_device *dev = file->dev;

	return !canchar_ring_unsent(&file->tx) && !(dev->in_flight && dev->in_flight_of == file);
}

/* A file goes: nothing may point at it any more. With the lock held. */
void canchar_forget_file(struct canchar_file *file)
{
	struct canchar_device *dev = file->dev;

	discard(file);
	list_del_init(&file->sender);
	list_del(&file->node);
	if (dev->in_flight_of == file)
		dev->in_flight_of = NULL;
}

/* ------------------------------------------------------ start and stop -- */

/* What waits in a stopped device would be stale when it starts again. */
static void stop_locked(struct canchar_device *dev)
{
	struct canchar_file *file;

	dev->running = false;
	dev->state = CANCHAR_STOPPED;
	dev->ops->stop(dev);
	abort_in_flight(dev);
	dev->tx_armed = false;
	list_for_each_entry(file, &dev->files, node) {
		if (!file->mapped)
			discard(file);	/* a mapped ring is its process's to send again */
		deactivate(file);
	}
	wake_everybody(dev);
}

static int start_locked(struct canchar_device *dev)
{
	struct canchar_standing standing = { .state = CANCHAR_ERROR_ACTIVE };
	bool again = dev->running;
	int err;

	if (again) {
		dev->ops->stop(dev);
		dev->tx_armed = false;
	}
	err = dev->ops->start(dev);
	if (err) {
		dev->running = false;
		dev->state = CANCHAR_STOPPED;
		return err;
	}
	dev->running = true;
	dev->state = CANCHAR_ERROR_ACTIVE;
	if (dev->masked)
		dev->ops->mask(dev, true);
	if (again) {
		dev->counts.restarts++;
		error_frame(dev, CAN_ERR_RESTARTED, 0, &standing);
		wake_everybody(dev);
		canchar_feed(dev);
	}
	return 0;
}

int canchar_start(struct canchar_device *dev)
{
	unsigned long flags;
	int err = 0;

	mutex_lock(&dev->mutex);
	raw_spin_lock_irqsave(&dev->lock, flags);
	if (dev->gone)
		err = -ENODEV;
	else if (!dev->running || dev->state == CANCHAR_BUS_OFF)
		err = start_locked(dev);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	mutex_unlock(&dev->mutex);
	return err;
}

int canchar_stop(struct canchar_device *dev)
{
	unsigned long flags;
	int err = 0;

	mutex_lock(&dev->mutex);
	raw_spin_lock_irqsave(&dev->lock, flags);
	if (dev->gone)
		err = -ENODEV;
	else if (dev->running)
		stop_locked(dev);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	mutex_unlock(&dev->mutex);
	cancel_delayed_work_sync(&dev->restart);
	return err;
}

static void restart_work(struct work_struct *work)
{
	struct canchar_device *dev = container_of(work, struct canchar_device, restart.work);
	unsigned long flags;

	mutex_lock(&dev->mutex);
	raw_spin_lock_irqsave(&dev->lock, flags);
	if (!dev->gone && dev->running && dev->state == CANCHAR_BUS_OFF)
		start_locked(dev);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	mutex_unlock(&dev->mutex);
}

int canchar_set_timing(struct canchar_device *dev, struct canchar_timing *timing)
{
	int err;

	if (timing->flags & ~CANCHAR_LISTEN_ONLY || timing->sample_point >= 1000)
		return -EINVAL;
	err = dev->ops->calculate(timing);
	if (err)
		return err;
	mutex_lock(&dev->mutex);
	if (dev->gone)
		err = -ENODEV;
	else if (dev->running)
		err = -EBUSY;
	else
		dev->timing = *timing;
	mutex_unlock(&dev->mutex);
	return err;
}

/* --------------------------------------------------- coming and going -- */

#define CANCHAR_DEVICES_MAX	64

static dev_t first_number;
static DEFINE_IDA(numbers);

static struct class canchar_class = {
	.name = "canchar",
	.dev_groups = canchar_groups,
};

static void device_released(struct device *device)
{
	struct canchar_device *dev = container_of(device, struct canchar_device, dev);

	ida_free(&numbers, dev->number);
	kfree(dev);
}

/**
 * canchar_alloc() - a device that nobody knows of yet
 * @parent: what it is part of
 * @board: the board's name
 * @ops: what its chip does
 * @chip: the chip's own data, which must outlive canchar_unregister()
 *
 * Given up with put_device() on its dev, or by canchar_unregister().
 */
struct canchar_device *canchar_alloc(struct device *parent, const char *board,
				     const struct canchar_chip_ops *ops, void *chip)
{
	struct canchar_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int priority;

	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->number = ida_alloc_max(&numbers, CANCHAR_DEVICES_MAX - 1, GFP_KERNEL);
	if (dev->number < 0) {
		int err = dev->number;

		kfree(dev);
		return ERR_PTR(err);
	}
	dev->board = board;
	dev->ops = ops;
	dev->chip = chip;
	dev->state = CANCHAR_STOPPED;
	mutex_init(&dev->mutex);
	raw_spin_lock_init(&dev->lock);
	INIT_LIST_HEAD(&dev->files);
	for (priority = 0; priority < CANCHAR_PRIORITIES; priority++)
		INIT_LIST_HEAD(&dev->senders[priority]);
	INIT_DELAYED_WORK(&dev->restart, restart_work);

	device_initialize(&dev->dev);
	dev->dev.class = &canchar_class;
	dev->dev.parent = parent;
	dev->dev.devt = MKDEV(MAJOR(first_number), dev->number);
	dev->dev.release = device_released;
	dev_set_name(&dev->dev, "canchar%d", dev->number);
	cdev_init(&dev->cdev, &canchar_fops);
	dev->cdev.owner = THIS_MODULE;
	return dev;
}

int canchar_register(struct canchar_device *dev)
{
	return cdev_device_add(&dev->cdev, &dev->dev);
}

/**
 * canchar_unregister() - the board goes; files may stay open
 * @dev: no longer to be used by the caller
 *
 * When it returns, the chip is stopped and nothing touches it any more: reads and
 * writes answer -ENODEV, poll(2) EPOLLHUP. The interrupt can be given back then.
 */
void canchar_unregister(struct canchar_device *dev)
{
	unsigned long flags;

	cdev_device_del(&dev->cdev, &dev->dev);
	mutex_lock(&dev->mutex);
	raw_spin_lock_irqsave(&dev->lock, flags);
	if (dev->running)
		stop_locked(dev);
	dev->gone = true;
	wake_everybody(dev);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	mutex_unlock(&dev->mutex);
	cancel_delayed_work_sync(&dev->restart);
	put_device(&dev->dev);
}

int canchar_core_init(void)
{
	int err = alloc_chrdev_region(&first_number, 0, CANCHAR_DEVICES_MAX, "canchar");

	if (err)
		return err;
	err = class_register(&canchar_class);
	if (err)
		unregister_chrdev_region(first_number, CANCHAR_DEVICES_MAX);
	return err;
}

void canchar_core_exit(void)
{
	class_unregister(&canchar_class);
	unregister_chrdev_region(first_number, CANCHAR_DEVICES_MAX);
	ida_destroy(&numbers);
}
