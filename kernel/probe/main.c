// SPDX-License-Identifier: GPL-2.0-only
/*
 * canprobe: an instrument on two Kvaser PCI cards (../card_pair.h), of which the first
 * sends; see README.md. The file, /dev/canprobe (uapi/canprobe.h), and the cards.
 */

#include <linux/fs.h>
#include <linux/module.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "../canchar/board_kvaser_pci.h"
#include "probe.h"

static_assert(sizeof(struct canprobe_record) == 24 && offsetof(struct canprobe_record, data) == 16);
static_assert(sizeof(struct canprobe_plan) == 56 && offsetof(struct canprobe_plan, delay_ns) == 16);
static_assert(sizeof(struct canprobe_state) == 32);

/* Its cards' lock guards the plan, the floor and reading too. */
static struct canprobe probe;
static bool opened;

/* --------------------------------------------------------------- file -- */

static bool canprobe_both_there(void)
{
	return card_pair_complete(&probe.pair);
}

static int canprobe_open(struct inode *inode, struct file *filp)
{
	int err = 0;

	mutex_lock(&probe.pair.lock);
	if (opened)
		err = -EBUSY;
	else if (!canprobe_both_there())
		err = -ENODEV;
	if (!err) {
		opened = true;
		canprobe_rings_reset(&probe);
		probe.plan.bitrate = 0;
		probe.sent_all = 0;
		probe.late = 0;
		probe.overruns = 0;
		probe.floor_ns = 0;
	}
	mutex_unlock(&probe.pair.lock);
	return err ?: stream_open(inode, filp);
}

static void canprobe_rest(void)
{
	canprobe_watch_end(&probe);
	canprobe_stop(&probe);
	probe.plan.bitrate = 0;	/* cards that are bound again start anew, the file still open */
	if (!canprobe_both_there())
		return;
	canchar_sja1000_quiet(&probe.pair.cards[0].chip);
	canchar_sja1000_quiet(&probe.pair.cards[1].chip);
}

static int canprobe_release(struct inode *inode, struct file *filp)
{
	mutex_lock(&probe.pair.lock);
	canprobe_rest();
	opened = false;
	mutex_unlock(&probe.pair.lock);
	return 0;
}

static ssize_t canprobe_file_read(struct file *filp, char __user *user, size_t bytes,
				  loff_t *position)
{
	struct canprobe_record record;
	size_t done = 0;
	int err = 0;

	if (bytes < sizeof(record))
		return -EINVAL;
	mutex_lock(&probe.pair.lock);
	while (done + sizeof(record) <= bytes && canprobe_read(&probe, &record)) {
		if (copy_to_user(user + done, &record, sizeof(record))) {
			err = -EFAULT;
			break;
		}
		done += sizeof(record);
	}
	if (!done && !err && !canprobe_both_there())
		err = -ENODEV;
	mutex_unlock(&probe.pair.lock);
	return done ?: err;
}

static int canprobe_get_state(struct canprobe_state __user *user)
{
	struct canprobe_state state = {
		.running = READ_ONCE(probe.running),
		.sent = probe.sent_all,
		.received = READ_ONCE(probe.rings[CANPROBE_RECEIVED].head),
		.unread = probe.rings[CANPROBE_SENT].lost + probe.rings[CANPROBE_RECEIVED].lost +
			  probe.rings[CANPROBE_HANDLER].lost,
		.overruns = probe.overruns,
		.late = probe.late,
		.floor_ns = probe.floor_ns,
	};

	return copy_to_user(user, &state, sizeof(state)) ? -EFAULT : 0;
}

static int canprobe_start_plan(const struct canprobe_plan __user *user)
{
	struct canprobe_plan plan;

	if (copy_from_user(&plan, user, sizeof(plan)))
		return -EFAULT;
	return canprobe_start(&probe, &plan);
}

static int canprobe_watch_handler(const u32 __user *user)
{
	u32 line;

	if (get_user(line, user))
		return -EFAULT;
	return canprobe_watch(&probe, line);
}

static long canprobe_ioctl(struct file *filp, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	int err = -ENODEV;

	mutex_lock(&probe.pair.lock);
	if (command == CANPROBE_GET_STATE)
		err = canprobe_get_state(user);
	else if (canprobe_both_there())
		switch (command) {
		case CANPROBE_START:
			err = canprobe_start_plan(user);
			break;
		case CANPROBE_STOP:
			canprobe_stop(&probe);
			err = 0;
			break;
		case CANPROBE_FLOOR:
			err = canprobe_floor(&probe);
			break;
		case CANPROBE_WATCH:
			err = canprobe_watch_handler(user);
			break;
		default:
			err = -ENOTTY;
		}
	mutex_unlock(&probe.pair.lock);
	return err;
}

static const struct file_operations canprobe_fops = {
	.owner = THIS_MODULE,
	.open = canprobe_open,
	.release = canprobe_release,
	.read = canprobe_file_read,
	.unlocked_ioctl = canprobe_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

/* -------------------------------------------------------------- cards -- */

static int canprobe_bound(struct pci_dev *pdev, unsigned int place)
{
	canchar_sja1000_quiet(&probe.pair.cards[place].chip);
	return request_irq(pdev->irq, place ? canprobe_received : canprobe_floor_reached,
			   IRQF_SHARED | IRQF_NO_THREAD, "canprobe", &probe);
}

static void canprobe_unbind(struct pci_dev *pdev, unsigned int place)
{
	canprobe_rest();
	kvaser_allow_interrupts(probe.pair.cards[place].s5920, false);
	free_irq(pdev->irq, &probe);
}

static struct canprobe probe = {
	.pair = {
		.driver = { .name = "canprobe" },
		.file = { .name = "canprobe", .fops = &canprobe_fops },
		.bound = canprobe_bound,
		.unbind = canprobe_unbind,
	},
};

static void canprobe_free_rings(void)
{
	int side;

	for (side = 0; side < CANPROBE_SIDES; side++)
		vfree(probe.rings[side].records);
}

static int __init canprobe_init(void)
{
	int side, err = -ENOMEM;

	canprobe_instrument_init(&probe);
	for (side = 0; side < CANPROBE_SIDES; side++) {
		probe.rings[side].records = vcalloc(CANPROBE_RECORDS,
						    sizeof(struct canprobe_record));
		if (!probe.rings[side].records)
			goto free;
	}
	err = card_pair_register(&probe.pair);
	if (!err)
		return 0;
free:
	canprobe_free_rings();
	return err;
}

static void __exit canprobe_exit(void)
{
	card_pair_unregister(&probe.pair);
	canprobe_free_rings();
}

module_init(canprobe_init);
module_exit(canprobe_exit);

MODULE_AUTHOR("The canter developers");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("An instrument that measures what is between two CAN controllers");
