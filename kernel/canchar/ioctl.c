// SPDX-License-Identifier: GPL-2.0-only
/* The ioctls of an open file. uapi/canchar.h documents them. */

#include <linux/capability.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "canchar.h"

/* The layouts that uapi/canchar.h documents; user space asserts the same. */
static_assert(sizeof(struct canchar_frame) == 24);
static_assert(offsetof(struct canchar_frame, can_id) == 8);
static_assert(offsetof(struct canchar_frame, data) == 16);
static_assert(sizeof(struct canchar_short_frame) == 20);
static_assert(sizeof(struct canchar_map) == 40);
static_assert(sizeof(struct canchar_ring) == 192);
static_assert(offsetof(struct canchar_ring, tail) == 64);
static_assert(offsetof(struct canchar_ring, need_wakeup) == 128);
static_assert(sizeof(struct canchar_info) == 48);
static_assert(sizeof(struct canchar_timing) == 32);
static_assert(sizeof(struct canchar_options) == 40);
static_assert(sizeof(struct canchar_filters) == 24);
static_assert(sizeof(struct canchar_statistics) == 112);
static_assert(sizeof(struct canchar_wait) == 16);
static_assert(sizeof(struct canchar_poll_entry) == 8);
static_assert(sizeof(struct canchar_poll_set) == 24);

static int canchar_lock_both(struct canchar_file *file)
{
	if (mutex_lock_interruptible(&file->read_mutex))
		return -ERESTARTSYS;
	if (mutex_lock_interruptible(&file->write_mutex)) {
		canchar_unlock(file, &file->read_mutex);
		return -ERESTARTSYS;
	}
	return 0;
}

static void canchar_unlock_both(struct canchar_file *file)
{
	canchar_unlock(file, &file->write_mutex);
	canchar_unlock(file, &file->read_mutex);
}

/* --------------------------------------------------------- the device -- */

static long canchar_get_info(struct canchar_device *dev, void __user *user)
{
	struct canchar_info info = {
		.version = 1,
		.clock_hz = dev->ops->clock_hz,
		.state = READ_ONCE(dev->state),
	};

	strscpy(info.chip, dev->ops->name, sizeof(info.chip));
	strscpy(info.board, dev->board, sizeof(info.board));
	return copy_to_user(user, &info, sizeof(info)) ? -EFAULT : 0;
}

static long canchar_get_timing(struct canchar_device *dev, void __user *user)
{
	struct canchar_timing timing;

	mutex_lock(&dev->mutex);
	timing = dev->timing;
	mutex_unlock(&dev->mutex);
	return copy_to_user(user, &timing, sizeof(timing)) ? -EFAULT : 0;
}

static long canchar_ioctl_set_timing(struct canchar_device *dev, void __user *user)
{
	struct canchar_timing timing;

	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	if (copy_from_user(&timing, user, sizeof(timing)))
		return -EFAULT;
	return canchar_set_timing(dev, &timing);
}

/* ----------------------------------------------------------- the file -- */

static bool canchar_slots_valid(u32 slots, u32 least)
{
	return slots >= least && slots <= CANCHAR_SLOTS_MAX && is_power_of_2(slots);
}

static int canchar_options_valid(const struct canchar_options *options)
{
	const u32 spins = CANCHAR_POLL_CHIP | CANCHAR_ADAPTIVE;
	const u32 known = CANCHAR_OVERWRITE | CANCHAR_ECHO | CANCHAR_ECHO_OWN | CANCHAR_NO_STAMPS |
			  spins;

	if (options->frame_size != sizeof(struct canchar_frame) &&
	    options->frame_size != sizeof(struct canchar_short_frame))
		return -EINVAL;
	if (options->flags & ~known || options->priority >= CANCHAR_PRIORITIES)
		return -EINVAL;
	if ((options->flags & spins) == spins)
		return -EINVAL;
	if (!canchar_slots_valid(options->rx_slots, 2) ||
	    !canchar_slots_valid(options->tx_slots, 1))
		return -EINVAL;
	if (!options->read_min || options->read_min >= options->rx_slots)
		return -EINVAL;
	return 0;
}

/* New rings when their sizes or the meaning of their indexes change. */
static int canchar_fit_rings(struct canchar_file *file, const struct canchar_options *to)
{
	const struct canchar_options *from = &file->options;
	int err = 0;

	if (to->rx_slots == from->rx_slots && to->tx_slots == from->tx_slots &&
	    !((to->flags ^ from->flags) & CANCHAR_OVERWRITE))
		return 0;
	mutex_lock(&file->map_mutex);
	err = file->mapped ? -EBUSY : canchar_rings_alloc(file, to->rx_slots, to->tx_slots);
	mutex_unlock(&file->map_mutex);
	return err;
}

/* Word by word, because some are read without a lock. */
static void canchar_copy_options(struct canchar_options *to, const struct canchar_options *from)
{
	const u64 *source = (const u64 *)from;
	u64 *target = (u64 *)to;
	size_t i;

	for (i = 0; i < sizeof(*to) / sizeof(u64); i++)
		WRITE_ONCE(target[i], source[i]);
}

/* Copies the options that the interrupt handler uses. */
static void canchar_apply(struct canchar_file *file, const struct canchar_options *to)
{
	struct canchar_device *dev = file->dev;
	unsigned long flags;

	raw_spin_lock_irqsave(&dev->lock, flags);
	file->overwrite = to->flags & CANCHAR_OVERWRITE;
	file->frame_flags = to->flags & (CANCHAR_ECHO | CANCHAR_ECHO_OWN);
	WRITE_ONCE(file->poll_at, to->read_min);
	file->priority = to->priority;
	if (!list_empty(&file->sender))
		list_move_tail(&file->sender, &dev->senders[file->priority]);
	dev->stamp_count += canchar_needs_stamps(to);
	dev->stamp_count -= canchar_needs_stamps(&file->options);
	canchar_copy_options(&file->options, to);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	if (!(to->flags & CANCHAR_POLL_CHIP))
		canchar_unmask(dev);
}

static long canchar_file_set_options(struct canchar_file *file, void __user *user)
{
	struct canchar_options options;
	int err;

	if (copy_from_user(&options, user, sizeof(options)))
		return -EFAULT;
	err = canchar_options_valid(&options);
	if (!err)
		err = canchar_lock_both(file);
	if (err)
		return err;
	err = canchar_fit_rings(file, &options);
	if (!err)
		canchar_apply(file, &options);
	canchar_unlock_both(file);
	return err;
}

/* Does not wait for a reader that sleeps: options are changed under the lock, too. */
static long canchar_file_get_options(struct canchar_file *file, void __user *user)
{
	struct canchar_options options;
	unsigned long flags;

	raw_spin_lock_irqsave(&file->dev->lock, flags);
	options = file->options;
	raw_spin_unlock_irqrestore(&file->dev->lock, flags);
	return copy_to_user(user, &options, sizeof(options)) ? -EFAULT : 0;
}

static long canchar_set_filters(struct canchar_file *file, void __user *user)
{
	struct canchar_filters filters;

	if (copy_from_user(&filters, user, sizeof(filters)))
		return -EFAULT;
	return canchar_filters_set(file, &filters);
}

static long canchar_get_statistics(struct canchar_file *file, void __user *user)
{
	struct canchar_device *dev = file->dev;
	struct canchar_standing standing = { .state = CANCHAR_STOPPED };
	struct canchar_statistics out = {};
	unsigned long flags;
	u32 unread;

	raw_spin_lock_irqsave(&dev->lock, flags);
	canchar_feed(dev);	/* counts the last frame, if it has left */
	if (dev->running)
		dev->ops->standing(dev, &standing);
	out.rx_frames = dev->counts.rx_frames;
	out.rx_overruns = dev->counts.rx_overruns;
	out.tx_frames = dev->counts.tx_frames;
	out.tx_aborted = dev->counts.tx_aborted;
	out.interrupts = dev->counts.interrupts;
	out.error_frames = dev->counts.error_frames;
	out.bus_off = dev->counts.bus_off;
	out.restarts = dev->counts.restarts;
	out.file_rx_frames = file->rx_frames;
	out.file_rx_lost = file->rx_lost;
	out.file_tx_frames = file->tx_frames;
	out.file_tx_lost = file->tx_lost;
	out.state = dev->state;
	out.rx_errors = standing.rx_errors;
	out.tx_errors = standing.tx_errors;
	/* Overwritten frames that the reader has not reached yet. */
	unread = file->rx.head - READ_ONCE(file->rx.shared->tail);
	if (file->overwrite && unread > file->rx.mask)
		out.file_rx_lost += unread - file->rx.mask;
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	return copy_to_user(user, &out, sizeof(out)) ? -EFAULT : 0;
}

/* -------------------------------------------------------------- waits -- */

static bool canchar_wait_valid(const struct canchar_file *file, const struct canchar_wait *wait)
{
	return !wait->reserved && wait->min && wait->min < READ_ONCE(file->options.rx_slots);
}

/* Without a timeout, also beside a reader that sleeps. */
static long canchar_check_once(struct canchar_file *file, const struct canchar_wait *wait)
{
	u32 waiting;

	if (!canchar_wait_valid(file, wait))
		return -EINVAL;
	waiting = canchar_look_locked(file);
	return waiting ?: canchar_trouble(file->dev);
}

static long canchar_ioctl_wait(struct canchar_file *file, void __user *user)
{
	struct canchar_wait wait;
	long waiting;
	int err;

	if (copy_from_user(&wait, user, sizeof(wait)))
		return -EFAULT;
	if (!wait.timeout_ns)
		return canchar_check_once(file, &wait);
	err = canchar_lock_in_time(file, &file->read_mutex, &wait.timeout_ns);
	if (err)
		return err == -ETIME ? canchar_check_once(file, &wait) : err;
	if (canchar_wait_valid(file, &wait))
		waiting = canchar_wait_frames(file, wait.min, wait.timeout_ns);
	else
		waiting = -EINVAL;
	canchar_unlock(file, &file->read_mutex);
	return waiting;
}

static long canchar_kick(struct canchar_file *file)
{
	struct canchar_device *dev = file->dev;
	unsigned long flags;
	u32 before, waiting;
	int err;

	/* A frame at a time, so that interrupts get in between. */
	waiting = U32_MAX;
	do {
		before = waiting;
		err = canchar_send_trouble(dev);
		if (err)
			return err;
		raw_spin_lock_irqsave(&dev->lock, flags);
		canchar_push(file);
		waiting = canchar_ring_unsent(&file->tx);
		raw_spin_unlock_irqrestore(&dev->lock, flags);
		cond_resched();
	} while (waiting && waiting < before);
	return waiting;
}

/* Without a timeout, also beside a writer that sleeps. */
static long canchar_check_sent_once(struct canchar_file *file)
{
	struct canchar_device *dev = file->dev;
	unsigned long flags;
	bool done;

	canchar_unmask(dev);
	raw_spin_lock_irqsave(&dev->lock, flags);
	canchar_feed(dev);
	done = canchar_all_sent(file);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	return done ? 0 : canchar_send_trouble(dev) ?: -ETIME;
}

static long canchar_wait_tx_done(struct canchar_file *file, void __user *user)
{
	u64 timeout_ns;
	long err;

	if (copy_from_user(&timeout_ns, user, sizeof(timeout_ns)))
		return -EFAULT;
	if (!timeout_ns)
		return canchar_check_sent_once(file);
	err = canchar_lock_in_time(file, &file->write_mutex, &timeout_ns);
	if (err)
		return err == -ETIME ? canchar_check_sent_once(file) : err;
	err = canchar_wait_sent(file, timeout_ns);
	canchar_unlock(file, &file->write_mutex);
	return err;
}

struct canchar_polled {
	struct canchar_poll_entry entries[CANCHAR_POLL_SET_MAX];
	struct file *files[CANCHAR_POLL_SET_MAX];
};

/*
 * Checks each file once; returns how many have frames. If none has, and a device has stopped or is
 * gone: -ENETDOWN or -ENODEV.
 */
static long canchar_look_at_all(struct canchar_polled *set, u32 count)
{
	long ready = 0, trouble = 0;
	u32 i;

	for (i = 0; i < count; i++) {
		struct canchar_file *file = set->files[i]->private_data;

		set->entries[i].ready = canchar_look_locked(file);
		ready += set->entries[i].ready != 0;
		trouble = trouble ?: canchar_trouble(file->dev);
	}
	return ready ?: trouble;
}

static long canchar_spin_for_all(struct canchar_polled *set, u32 count, u64 timeout_ns)
{
	u64 deadline = timeout_ns ? canchar_deadline(timeout_ns) : 0;
	long ready;

	for (;;) {
		ready = canchar_look_at_all(set, count);
		if (ready || !timeout_ns)
			return ready;
		if (signal_pending(current))
			return canchar_interrupted(timeout_ns);
		if (deadline != KTIME_MAX && ktime_get_ns() >= deadline)
			return 0;
		cpu_relax();
		cond_resched();
	}
}

static long canchar_ioctl_poll_set(void __user *user)
{
	struct canchar_poll_entry __user *entries;
	struct canchar_poll_set in;
	struct canchar_polled *set;
	long ready = -EFAULT;
	u32 got, bytes;

	if (copy_from_user(&in, user, sizeof(in)))
		return -EFAULT;
	if (in.reserved || !in.count || in.count > CANCHAR_POLL_SET_MAX)
		return -EINVAL;
	set = kmalloc(sizeof(*set), GFP_KERNEL);
	if (!set)
		return -ENOMEM;
	entries = u64_to_user_ptr(in.entries);
	bytes = in.count * sizeof(*entries);
	got = 0;
	if (copy_from_user(set->entries, entries, bytes))
		goto out;
	for (; got < in.count; got++) {
		set->files[got] = fget(set->entries[got].fd);
		if (!set->files[got]) {
			ready = -EBADF;
			goto out;
		}
		if (set->files[got]->f_op != &canchar_fops) {
			fput(set->files[got]);
			ready = -ENOTTY;
			goto out;
		}
	}
	ready = canchar_spin_for_all(set, in.count, in.timeout_ns);
	if (ready >= 0 && copy_to_user(entries, set->entries, bytes))
		ready = -EFAULT;
out:
	while (got--)
		fput(set->files[got]);
	kfree(set);
	return ready;
}

long canchar_ioctl(struct file *filp, unsigned int command, unsigned long argument)
{
	struct canchar_file *file = filp->private_data;
	void __user *user = (void __user *)argument;

	switch (command) {
	case CANCHAR_WAIT:
		return canchar_ioctl_wait(file, user);
	case CANCHAR_KICK:
		return canchar_kick(file);
	case CANCHAR_POLL_SET:
		return canchar_ioctl_poll_set(user);
	case CANCHAR_WAIT_TX_DONE:
		return canchar_wait_tx_done(file, user);
	case CANCHAR_GET_STATISTICS:
		return canchar_get_statistics(file, user);
	case CANCHAR_GET_OPTIONS:
		return canchar_file_get_options(file, user);
	case CANCHAR_SET_OPTIONS:
		return canchar_file_set_options(file, user);
	case CANCHAR_SET_FILTERS:
		return canchar_set_filters(file, user);
	case CANCHAR_GET_INFO:
		return canchar_get_info(file->dev, user);
	case CANCHAR_GET_TIMING:
		return canchar_get_timing(file->dev, user);
	case CANCHAR_SET_TIMING:
		return canchar_ioctl_set_timing(file->dev, user);
	case CANCHAR_START:
		return capable(CAP_NET_ADMIN) ? canchar_start(file->dev) : -EPERM;
	case CANCHAR_STOP:
		return capable(CAP_NET_ADMIN) ? canchar_stop(file->dev) : -EPERM;
	default:
		return -ENOTTY;
	}
}
