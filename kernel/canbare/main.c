// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two cards and a file: /dev/canbare (uapi/canbare.h). The module takes only cards that
 * are told to (driver_override), the first for frames to come from, the second for
 * frames to go to, of each the first channel. It does nothing with them but keep others
 * away: what drives their controllers is the image.
 */

#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/security.h>
#include <linux/uaccess.h>

#include "../canchar/board_kvaser_pci.h"
#include "canbare.h"

static_assert(sizeof(struct canbare_shared) == 64 && offsetof(struct canbare_shared, counts) == 24);
static_assert(sizeof(struct canbare_counts) == 40 && offsetof(struct canbare_counts, bus_offs) == 32);
static_assert(sizeof(struct canbare_start) == 24 && sizeof(struct canbare_status) == 56);

static DEFINE_MUTEX(lock);
static struct pci_dev *cards[2];
static struct sja1000 chips[2];
static bool is_open;

/* --------------------------------------------------------------- file -- */

static int start(const void __user *user)
{
	struct canbare_start start;
	struct canbare_shared *shared = canbare_shared();
	int side, err;

	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;
	/* The image has the machine to itself, as a module has. */
	err = security_locked_down(LOCKDOWN_MODULE_SIGNATURE);
	if (err)
		return err;
	if (copy_from_user(&start, user, sizeof(start)))
		return -EFAULT;
	if (start.reserved)
		return -EINVAL;
	if (!cards[0] || !cards[1])
		return -ENODEV;
	if (canbare_runs())
		return -EBUSY;
	if (!canbare_has_memory())
		return -ENOMEM;
	err = canbare_load(u64_to_user_ptr(start.image), start.image_len);
	if (err)
		return err;
	for (side = 0; side < 2; side++) {
		shared->port[side] = chips[side].port;
		shared->bitrate[side] = start.bitrate[side];
	}
	return canbare_run();
}

static int get_status(void __user *user)
{
	struct canbare_status status = {
		.processor = canbare_processor(),
		.memory = canbare_has_memory(),
		.cards = !!cards[0] + !!cards[1],
	};

	if (status.memory) {
		status.state = READ_ONCE(canbare_shared()->state);
		status.counts = canbare_shared()->counts;
	}
	return copy_to_user(user, &status, sizeof(status)) ? -EFAULT : 0;
}

static long canbare_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	long err = 0;

	mutex_lock(&lock);
	switch (command) {
	case CANBARE_START:
		err = start(user);
		break;
	case CANBARE_STOP:
		canbare_end();
		break;
	case CANBARE_GET_STATUS:
		err = get_status(user);
		break;
	default:
		err = -ENOTTY;
	}
	mutex_unlock(&lock);
	return err;
}

static int canbare_open(struct inode *inode, struct file *file)
{
	int err = 0;

	mutex_lock(&lock);
	if (is_open)
		err = -EBUSY;
	is_open = true;
	if (!err && canbare_has_memory())
		memset(canbare_shared(), 0, sizeof(struct canbare_shared));
	mutex_unlock(&lock);
	return err;
}

static int canbare_release(struct inode *inode, struct file *file)
{
	mutex_lock(&lock);
	canbare_end();
	is_open = false;
	mutex_unlock(&lock);
	return 0;
}

static const struct file_operations canbare_fops = {
	.owner = THIS_MODULE,
	.open = canbare_open,
	.release = canbare_release,
	.unlocked_ioctl = canbare_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice canbare_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "canbare",
	.fops = &canbare_fops,
	.mode = 0600,
};

/* -------------------------------------------------------------- cards -- */

static int take(struct pci_dev *pdev, unsigned int place)
{
	const struct kvaser_card *row = kvaser_find_card(pdev);
	unsigned long s5920;
	int err;

	if (!row)
		return -ENODEV;
	err = kvaser_take_card(pdev, "canbare", &s5920);
	if (err)
		return err;
	kvaser_allow_interrupts(s5920, false);
	if (!kvaser_find_chip(pdev, row, 0, &chips[place])) {
		kvaser_release_card(pdev);
		return -ENODEV;
	}
	cards[place] = pdev;
	return 0;
}

static int canbare_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	int err = -EBUSY;

	mutex_lock(&lock);
	if (!cards[0])
		err = take(pdev, 0);
	else if (!cards[1])
		err = take(pdev, 1);
	mutex_unlock(&lock);
	return err;
}

/* The image must not touch a card that has gone, or another driver's. */
static void canbare_remove(struct pci_dev *pdev)
{
	mutex_lock(&lock);
	canbare_end();
	cards[cards[1] == pdev] = NULL;
	kvaser_release_card(pdev);
	mutex_unlock(&lock);
}

static void canbare_shutdown(struct pci_dev *pdev)
{
	mutex_lock(&lock);
	canbare_end();
	mutex_unlock(&lock);
}

/* No table of ids: only driver_override leads here. */
static struct pci_driver canbare_driver = {
	.name = "canbare",
	.probe = canbare_probe,
	.remove = canbare_remove,
	.shutdown = canbare_shutdown,
};

static int __init canbare_init(void)
{
	int err = canbare_processor_init();

	if (err)
		return err;
	err = pci_register_driver(&canbare_driver);
	if (err)
		goto processor;
	err = misc_register(&canbare_device);
	if (!err)
		return 0;
	pci_unregister_driver(&canbare_driver);
processor:
	canbare_processor_exit();
	return err;
}

static void __exit canbare_exit(void)
{
	misc_deregister(&canbare_device);
	pci_unregister_driver(&canbare_driver);
	canbare_processor_exit();
}

module_init(canbare_init);
module_exit(canbare_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Starts a CAN gateway on a processor that Linux leaves alone");
