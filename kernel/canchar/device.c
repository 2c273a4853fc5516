// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device from its registration to its removal, with its starts and stops.
 */

#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/slab.h>

#include "../compat.h"
#include "canchar.h"

/* ------------------------------------------------------ start and stop -- */

/* The chip is no longer accessed, nor does it interrupt. With the lock held. */
static void canchar_leave_chip(struct canchar_device *dev)
{
	if (dev->live)
		dev->ops->silence(dev);
	dev->live = false;
	canchar_set_state(dev, dev->state);
	dev->tx_armed = false;
	WRITE_ONCE(dev->deferred, false);
}

/* With the mutex. */
static void canchar_stop_running(struct canchar_device *dev)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&dev->lock, flags);
	canchar_leave_chip(dev);
	dev->running = false;
	dev->recovering = false;
	canchar_set_state(dev, CANCHAR_STOPPED);
	canchar_stop_sending(dev);
	canchar_wake_everybody(dev);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	dev->ops->stop(dev);
}

/* The chip has started. With the lock held. */
static void canchar_enter_chip(struct canchar_device *dev, bool again)
{
	struct canchar_standing standing;

	dev->running = true;
	dev->live = true;
	/* Not before: the handler leaves the interrupt of a chip that is not live to others. */
	dev->ops->mask(dev, dev->masked);
	dev->ops->standing(dev, &standing);
	canchar_set_state(dev, standing.state);
	dev->recovering = standing.state == CANCHAR_BUS_OFF;
	if (dev->masked)
		canchar_watch(dev);
	if (again && !dev->recovering)
		canchar_recovered(dev, &standing);
	/* What came since the start; an overrun has latched no interrupt. */
	canchar_poll_chip(dev);
}

/* Starts the chip for the first time, or again after bus-off. With the mutex. */
static int canchar_start_chip(struct canchar_device *dev)
{
	unsigned long flags;
	bool again;
	int err;

	raw_spin_lock_irqsave(&dev->lock, flags);
	again = dev->running;
	canchar_leave_chip(dev);
	raw_spin_unlock_irqrestore(&dev->lock, flags);

	err = dev->ops->start(dev);
	if (err) {
		canchar_stop_running(dev);
		return err;
	}
	raw_spin_lock_irqsave(&dev->lock, flags);
	canchar_enter_chip(dev, again);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	return 0;
}

/* Whether a start has anything to do. With the mutex. */
static bool canchar_may_start(struct canchar_device *dev)
{
	unsigned long flags;
	bool may;

	raw_spin_lock_irqsave(&dev->lock, flags);
	may = !dev->running || (dev->state == CANCHAR_BUS_OFF && !dev->recovering);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	return may;
}

int canchar_start(struct canchar_device *dev)
{
	int err = 0;

	mutex_lock(&dev->mutex);
	if (dev->gone)
		err = -ENODEV;
	else if (canchar_may_start(dev))
		err = canchar_start_chip(dev);
	mutex_unlock(&dev->mutex);
	return err;
}

int canchar_stop(struct canchar_device *dev)
{
	int err = 0;

	mutex_lock(&dev->mutex);
	if (dev->gone)
		err = -ENODEV;
	else if (dev->running)
		canchar_stop_running(dev);
	/* One that runs already waits for the mutex, and then finds nothing to restart. */
	cancel_delayed_work(&dev->restart);
	mutex_unlock(&dev->mutex);
	return err;
}

static void canchar_restart_work(struct work_struct *work)
{
	struct canchar_device *dev = container_of(work, struct canchar_device, restart.work);

	mutex_lock(&dev->mutex);
	if (!dev->gone && dev->running && canchar_may_start(dev))
		canchar_start_chip(dev);
	mutex_unlock(&dev->mutex);
}

/* Under the device's mutex. */
static int canchar_put_timing(struct canchar_device *dev, struct canchar_timing *timing)
{
	int err = dev->ops->calculate(timing);

	if (err)
		return err;
	if (dev->gone)
		return -ENODEV;
	if (dev->running)
		return -EBUSY;
	dev->timing = *timing;
	return 0;
}

int canchar_set_timing(struct canchar_device *dev, struct canchar_timing *timing)
{
	int err;

	if (timing->flags & ~CANCHAR_LISTEN_ONLY || timing->sample_point >= 1000)
		return -EINVAL;
	mutex_lock(&dev->mutex);
	err = canchar_put_timing(dev, timing);
	mutex_unlock(&dev->mutex);
	return err;
}

int canchar_set_bitrate(struct canchar_device *dev, u32 bitrate)
{
	struct canchar_timing timing = { .bitrate = bitrate };
	int err;

	mutex_lock(&dev->mutex);
	timing.restart_ms = dev->timing.restart_ms;
	timing.flags = dev->timing.flags;
	err = canchar_put_timing(dev, &timing);
	mutex_unlock(&dev->mutex);
	return err;
}

/* --------------------------------------------------- coming and going -- */

#define CANCHAR_DEVICES_MAX	64

static dev_t canchar_first_number;
static DEFINE_IDA(canchar_numbers);

static struct class canchar_class = {
	.name = "canchar",
	.dev_groups = canchar_groups,
};

static void canchar_device_released(struct device *device)
{
	struct canchar_device *dev = container_of(device, struct canchar_device, dev);

	if (dev->number >= 0)
		ida_free(&canchar_numbers, dev->number);
	kfree(dev);
}

/*
 * A device that is not yet registered; put_device() on its dev or canchar_unregister() frees it.
 * The chip's own data must outlive canchar_unregister().
 */
struct canchar_device *canchar_alloc(struct device *parent, const char *board,
				     const struct canchar_chip_ops *ops, void *chip)
{
	struct canchar_device *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int priority;

	if (!dev)
		return ERR_PTR(-ENOMEM);
	dev->number = ida_alloc_max(&canchar_numbers, CANCHAR_DEVICES_MAX - 1, GFP_KERNEL);
	if (dev->number < 0) {
		int err = dev->number;

		kfree(dev);
		return ERR_PTR(err);
	}
	dev->board = board;
	dev->ops = ops;
	dev->chip = chip;
	dev->state = CANCHAR_STOPPED;
	dev->thread_priority = CANCHAR_THREAD_PRIORITY;
	mutex_init(&dev->mutex);
	raw_spin_lock_init(&dev->lock);
	INIT_LIST_HEAD(&dev->files);
	for (priority = 0; priority < CANCHAR_PRIORITIES; priority++)
		INIT_LIST_HEAD(&dev->senders[priority]);
	INIT_DELAYED_WORK(&dev->restart, canchar_restart_work);
	hrtimer_setup(&dev->watchdog, canchar_watchdog, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);

	device_initialize(&dev->dev);
	dev->dev.class = &canchar_class;
	dev->dev.parent = parent;
	dev->dev.devt = MKDEV(MAJOR(canchar_first_number), dev->number);
	dev->dev.release = canchar_device_released;
	dev_set_name(&dev->dev, "canchar%d", dev->number);
	cdev_init(&dev->cdev, &canchar_fops);
	dev->cdev.owner = THIS_MODULE;
	return dev;
}

int canchar_register(struct canchar_device *dev)
{
	int err = cdev_device_add(&dev->cdev, &dev->dev);

	if (!err)
		canchar_thread_by_parameter(dev);
	return err;
}

/*
 * The board is removed; files may stay open. When this returns, the chip is stopped and nothing
 * touches it any more: reads and writes return -ENODEV, poll(2) EPOLLHUP. The interrupt can be
 * freed then. The caller must not use the device any more.
 */
void canchar_unregister(struct canchar_device *dev)
{
	unsigned long flags;

	cdev_device_del(&dev->cdev, &dev->dev);
	/* Free while files may still be open: a card that comes back gets the same name. */
	ida_free(&canchar_numbers, dev->number);
	dev->number = -1;
	mutex_lock(&dev->mutex);
	/* Before it stops: who wakes then must not find it only down. */
	raw_spin_lock_irqsave(&dev->lock, flags);
	dev->gone = true;
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	if (dev->running)
		canchar_stop_running(dev);
	raw_spin_lock_irqsave(&dev->lock, flags);
	canchar_wake_everybody(dev);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	canchar_stop_thread(dev);
	mutex_unlock(&dev->mutex);
	cancel_delayed_work_sync(&dev->restart);
	hrtimer_cancel(&dev->watchdog);
	put_device(&dev->dev);
}

int canchar_devices_init(void)
{
	int err = alloc_chrdev_region(&canchar_first_number, 0, CANCHAR_DEVICES_MAX, "canchar");

	if (err)
		return err;
	err = class_register(&canchar_class);
	if (err)
		unregister_chrdev_region(canchar_first_number, CANCHAR_DEVICES_MAX);
	return err;
}

void canchar_devices_exit(void)
{
	class_unregister(&canchar_class);
	unregister_chrdev_region(canchar_first_number, CANCHAR_DEVICES_MAX);
	ida_destroy(&canchar_numbers);
}
