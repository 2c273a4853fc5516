// SPDX-License-Identifier: GPL-2.0-only
/*
 * The file, /dev/canbare (uapi/canbare.h), and two cards (../card_pair.h): frames come
 * from the first and go to the second. The module only reserves the cards: the image controls them.
 */

#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/security.h>
#include <linux/uaccess.h>

#include "../card_pair.h"
#include "canbare.h"

static_assert(sizeof(struct canbare_shared) == 64 && offsetof(struct canbare_shared, counts) == 24);
static_assert(sizeof(struct canbare_counts) == 40);
static_assert(offsetof(struct canbare_counts, bus_offs) == 32);
static_assert(sizeof(struct canbare_start) == 24 && sizeof(struct canbare_status) == 56);

static struct card_pair pair;
static bool is_open;

/* --------------------------------------------------------------- file -- */

static int canbare_start_image(const void __user *user)
{
	struct canbare_start start;
	struct canbare_shared *shared = canbare_shared();
	int side, err;

	if (!capable(CAP_SYS_RAWIO))
		return -EPERM;
	/* The image can access the complete machine, like a kernel module. */
	err = security_locked_down(LOCKDOWN_MODULE_SIGNATURE);
	if (err)
		return err;
	if (is_module_sig_enforced())
		return -EKEYREJECTED;
	if (copy_from_user(&start, user, sizeof(start)))
		return -EFAULT;
	if (start.reserved)
		return -EINVAL;
	if (!card_pair_complete(&pair))
		return -ENODEV;
	if (canbare_runs())
		return -EBUSY;
	if (!canbare_has_memory())
		return -ENOMEM;
	err = canbare_load(u64_to_user_ptr(start.image), start.image_len);
	if (err)
		return err;
	for (side = 0; side < 2; side++) {
		shared->port[side] = pair.cards[side].chip.port;
		shared->bitrate[side] = start.bitrate[side];
	}
	return canbare_run();
}

static int canbare_get_status(void __user *user)
{
	struct canbare_status status = {
		.processor = canbare_processor(),
		.memory = canbare_has_memory(),
		.cards = !!pair.cards[0].pdev + !!pair.cards[1].pdev,
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

	mutex_lock(&pair.lock);
	switch (command) {
	case CANBARE_START:
		err = canbare_start_image(user);
		break;
	case CANBARE_STOP:
		canbare_end();
		break;
	case CANBARE_GET_STATUS:
		err = canbare_get_status(user);
		break;
	default:
		err = -ENOTTY;
	}
	mutex_unlock(&pair.lock);
	return err;
}

static int canbare_open(struct inode *inode, struct file *file)
{
	int err = 0;

	mutex_lock(&pair.lock);
	if (is_open)
		err = -EBUSY;
	is_open = true;
	if (!err && canbare_has_memory())
		memset(canbare_shared(), 0, sizeof(struct canbare_shared));
	mutex_unlock(&pair.lock);
	return err;
}

static int canbare_release(struct inode *inode, struct file *file)
{
	mutex_lock(&pair.lock);
	canbare_end();
	is_open = false;
	mutex_unlock(&pair.lock);
	return 0;
}

static const struct file_operations canbare_fops = {
	.owner = THIS_MODULE,
	.open = canbare_open,
	.release = canbare_release,
	.unlocked_ioctl = canbare_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* -------------------------------------------------------------- cards -- */

/* The image must not access a card that was removed or has another driver. */
static void canbare_unbind(struct pci_dev *pdev, unsigned int place)
{
	canbare_end();
}

static void canbare_shutdown(struct pci_dev *pdev)
{
	mutex_lock(&pair.lock);
	canbare_end();
	mutex_unlock(&pair.lock);
}

static struct card_pair pair = {
	.driver = { .name = "canbare", .shutdown = canbare_shutdown },
	.file = { .name = "canbare", .fops = &canbare_fops },
	.unbind = canbare_unbind,
};

static int __init canbare_init(void)
{
	int err = canbare_processor_init();

	if (err)
		return err;
	err = card_pair_register(&pair);
	if (err)
		canbare_processor_exit();
	return err;
}

static void __exit canbare_exit(void)
{
	card_pair_unregister(&pair);
	canbare_processor_exit();
}

module_init(canbare_init);
module_exit(canbare_exit);

MODULE_AUTHOR("The canter developers");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Starts a CAN gateway on a processor that Linux leaves alone");
