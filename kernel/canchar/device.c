// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device from its registration to its removal, with its starts and stops.
 */

#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/slab.h>

#include "canchar.h"

/* ------------------------------------------------------ start and stop -- */

static void stop_locked(struct canchar_device *dev)
{
	dev->running = false;
	dev->state = CANCHAR_STOPPED;
	dev->ops->stop(dev);
	canchar_stop_sending(dev);
	canchar_wake_everybody(dev);
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
		canchar_error_frame(dev, CAN_ERR_RESTARTED, 0, &standing);
		canchar_wake_everybody(dev);
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
 * canchar_alloc() - allocate a device, not yet registered
 * @parent: what it is part of
 * @board: the board's name
 * @ops: what its chip does
 * @chip: the chip's own data, which must outlive canchar_unregister()
 *
 * Freed by put_device() on its dev, or by canchar_unregister().
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
 * canchar_unregister() - the board is removed; files may stay open
 * @dev: no longer to be used by the caller
 *
 * When it returns, the chip is stopped and nothing touches it any more: reads and writes return
 * -ENODEV, poll(2) EPOLLHUP. The interrupt can be freed then.
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
	canchar_wake_everybody(dev);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	mutex_unlock(&dev->mutex);
	cancel_delayed_work_sync(&dev->restart);
	put_device(&dev->dev);
}

int canchar_devices_init(void)
{
	int err = alloc_chrdev_region(&first_number, 0, CANCHAR_DEVICES_MAX, "canchar");

	if (err)
		return err;
	err = class_register(&canchar_class);
	if (err)
		unregister_chrdev_region(first_number, CANCHAR_DEVICES_MAX);
	return err;
}

void canchar_devices_exit(void)
{
	class_unregister(&canchar_class);
	unregister_chrdev_region(first_number, CANCHAR_DEVICES_MAX);
	ida_destroy(&numbers);
}
