// SPDX-License-Identifier: GPL-2.0-only
/* An open file: read, write, poll, mmap, and the waits behind them. */

#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/poll.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "canchar.h"

/* How long close(2) waits for frames that have not been sent yet. */
#define CANCHAR_LINGER_NS	(1 * NSEC_PER_SEC)

/*
 * What a wait answers to a signal: with SA_RESTART a wait without a timeout begins again, but a
 * timeout would begin again too, in full.
 */
int canchar_interrupted(u64 timeout_ns)
{
	return timeout_ns == CANCHAR_FOREVER ? -ERESTARTSYS : -EINTR;
}

u64 canchar_deadline(u64 timeout_ns)
{
	u64 now;

	if (timeout_ns == CANCHAR_FOREVER)
		return KTIME_MAX;
	now = ktime_get_ns();
	return timeout_ns < KTIME_MAX - now ? now + timeout_ns : KTIME_MAX;
}

static bool canchar_passed(u64 deadline)
{
	return deadline != KTIME_MAX && ktime_get_ns() >= deadline;
}

/* Sleeps until woken; false when the deadline has passed. */
static bool canchar_sleep_until(u64 deadline)
{
	ktime_t until = ns_to_ktime(deadline);

	if (deadline == KTIME_MAX) {
		schedule();
		return true;
	}
	return schedule_hrtimeout(&until, HRTIMER_MODE_ABS) != 0;
}

/* A mutex has no lock with a timeout. */
int canchar_await_turn(struct canchar_file *file, struct mutex *mutex, u64 *timeout_ns)
{
	u64 deadline, now;
	int err;

	if (!*timeout_ns)
		return -ETIME;
	if (*timeout_ns == CANCHAR_FOREVER)
		return mutex_lock_interruptible(mutex) ? -ERESTARTSYS : 0;
	deadline = canchar_deadline(*timeout_ns);
	err = wait_event_interruptible_hrtimeout(file->turns, mutex_trylock(mutex),
						 min_t(u64, *timeout_ns, KTIME_MAX));
	if (err)
		return err == -ETIME ? err : -EINTR;
	now = ktime_get_ns();
	*timeout_ns = now < deadline ? deadline - now : 0;
	return 0;
}

/* ---------------------------------------------------------- receiving -- */

/* One file's wish masks the chip; then every file polls, which serves all of them. */
static bool canchar_polls_chip(const struct canchar_file *file)
{
	return READ_ONCE(file->options.flags) & CANCHAR_POLL_CHIP || READ_ONCE(file->dev->masked);
}

u32 canchar_look(struct canchar_file *file)
{
	struct canchar_device *dev = file->dev;

	if (canchar_polls_chip(file)) {
		unsigned long flags;

		raw_spin_lock_irqsave(&dev->lock, flags);
		canchar_poll_chip(dev);
		raw_spin_unlock_irqrestore(&dev->lock, flags);
	}
	return canchar_ring_unread(&file->rx);
}

/* The lock keeps the ring from being replaced meanwhile. */
u32 canchar_look_locked(struct canchar_file *file)
{
	struct canchar_device *dev = file->dev;
	unsigned long flags;
	u32 waiting;

	raw_spin_lock_irqsave(&dev->lock, flags);
	if (canchar_polls_chip(file))
		canchar_poll_chip(dev);
	waiting = canchar_ring_unread(&file->rx);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	return waiting;
}

static bool canchar_wait_is_over(struct canchar_file *file, u32 min)
{
	return canchar_ring_unread(&file->rx) >= min || canchar_trouble(file->dev) ||
	       signal_pending(current);
}

/*
 * Looks, and polls a chip that is masked, until the wait is over (true), the time has passed, or,
 * where it @yields, another task wants the processor. Inline: a call costs 20 instructions a frame.
 */
static __always_inline bool canchar_look_until(struct canchar_file *file, u32 min, u64 deadline,
					       bool yields)
{
	for (;;) {
		if (canchar_look(file) >= min || canchar_trouble(file->dev) ||
		    signal_pending(current))
			return true;
		if (yields && (need_resched() || !single_task_running()))
			return false;
		if (canchar_passed(deadline))
			return false;
		cpu_relax();
		cond_resched();
	}
}

/* Polls the chip until the wait is over (true) or this much time has passed. */
static bool canchar_spin(struct canchar_file *file, u32 min, u64 deadline)
{
	struct canchar_device *dev = file->dev;
	u64 spin_end = KTIME_MAX;
	unsigned long flags;

	if (!READ_ONCE(dev->masked)) {
		raw_spin_lock_irqsave(&dev->lock, flags);
		canchar_mask(dev);
		raw_spin_unlock_irqrestore(&dev->lock, flags);
	}
	if (file->options.spin_ns)
		spin_end = canchar_deadline(file->options.spin_ns);
	return canchar_look_until(file, min, min(spin_end, deadline), false);
}

/* CANCHAR_ADAPTIVE: the longest look unless the options say another one, and the first. */
#define CANCHAR_LOOK_MAX_NS	NSEC_PER_MSEC
#define CANCHAR_LOOK_MIN_NS	(20 * NSEC_PER_USEC)

/* A look that was too short, and no longer than the longest, is twice as long the next time. */
static void canchar_adapt_look(struct canchar_file *file, bool alone, u64 waited_ns)
{
	u64 longest = file->options.spin_ns ?: CANCHAR_LOOK_MAX_NS;
	u64 look = file->look_ns;

	if (!alone || waited_ns > longest)
		look = look > CANCHAR_LOOK_MIN_NS ? look / 2 : 0;
	else if (waited_ns > look)
		look = max_t(u64, 2 * look, CANCHAR_LOOK_MIN_NS);
	file->look_ns = min(look, longest);
}

/* Fewer frames than this do not wake the reader. */
static void canchar_set_wake_at(struct canchar_file *file, u32 min)
{
	unsigned long flags;

	if (READ_ONCE(file->wake_at) == min)
		return;
	raw_spin_lock_irqsave(&file->dev->lock, flags);
	file->wake_at = min;
	raw_spin_unlock_irqrestore(&file->dev->lock, flags);
}

static void canchar_sleep_for_frames(struct canchar_file *file, u32 min, u64 deadline)
{
	canchar_set_wake_at(file, min);
	prepare_to_rcuwait(&file->reader);
	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		canchar_unmask(file->dev);
		if (canchar_wait_is_over(file, min) || !canchar_sleep_until(deadline))
			break;
	}
	finish_rcuwait(&file->reader);
}

static void canchar_wait_adaptively(struct canchar_file *file, u32 min, u64 deadline)
{
	u64 began = ktime_get_ns();
	u64 look_end = min(began + file->look_ns, deadline);
	bool alone;

	if (file->look_ns && canchar_look_until(file, min, look_end, true))
		return;
	alone = canchar_passed(look_end);
	canchar_sleep_for_frames(file, min, deadline);
	canchar_adapt_look(file, alone, ktime_get_ns() - began);
}

/*
 * Waits until @min frames have arrived; one reader at a time, with its read mutex. A timeout of 0
 * checks once.
 *
 * Returns the number of waiting frames: fewer than @min after the timeout, a signal, or when the
 * device has stopped; if none wait then, -ERESTARTSYS or -EINTR, -ENETDOWN, -ENODEV, or 0 after the
 * time.
 */
long canchar_wait_frames(struct canchar_file *file, u32 min, u64 timeout_ns)
{
	u32 flags = file->options.flags;
	u32 waiting = canchar_look(file);
	u64 deadline;
	int err;

	if (waiting < min && timeout_ns) {
		deadline = canchar_deadline(timeout_ns);
		if (flags & CANCHAR_ADAPTIVE)
			canchar_wait_adaptively(file, min, deadline);
		else if (!(flags & CANCHAR_POLL_CHIP) ||
			 (!canchar_spin(file, min, deadline) && !canchar_passed(deadline)))
			canchar_sleep_for_frames(file, min, deadline);
		waiting = canchar_ring_unread(&file->rx);
	}
	if (waiting)
		return waiting;
	err = canchar_trouble(file->dev);
	if (err)
		return err;
	return timeout_ns && signal_pending(current) ? canchar_interrupted(timeout_ns) : 0;
}

/* Word by word: a call that copies any number of bytes costs twice as much as these three. */
static __always_inline int canchar_words_to_user(void __user *to, const struct canchar_frame *frame)
{
	const u64 *words = (const u64 *)frame;
	u64 __user *user = to;

	if (!user_write_access_begin(user, sizeof(*frame)))
		return -EFAULT;
	unsafe_put_user(words[0], user, fault);
	unsafe_put_user(words[1], user + 1, fault);
	unsafe_put_user(words[2], user + 2, fault);
	user_write_access_end();
	return 0;

fault:
	user_write_access_end();
	return -EFAULT;
}

static __always_inline int canchar_words_from_user(struct canchar_frame *frame,
						   const void __user *from)
{
	const u64 __user *user = from;
	u64 *words = (u64 *)frame;

	if (!user_read_access_begin(user, sizeof(*frame)))
		return -EFAULT;
	unsafe_get_user(words[0], user, fault);
	unsafe_get_user(words[1], user + 1, fault);
	unsafe_get_user(words[2], user + 2, fault);
	user_read_access_end();
	return 0;

fault:
	user_read_access_end();
	return -EFAULT;
}

static int canchar_frame_to_user(char __user *user, const struct canchar_frame *frame, size_t size)
{
	struct canchar_short_frame brief;

	if (size == sizeof(*frame))
		return canchar_words_to_user(user, frame);
	brief.can_id = frame->can_id;
	brief.len = frame->len;
	brief.flags = frame->flags;
	brief.lost = frame->lost;
	brief.stamp_us = (u32)div_u64(frame->stamp_ns, NSEC_PER_USEC);
	memcpy(brief.data, frame->data, sizeof(brief.data));
	return copy_to_user(user, &brief, sizeof(brief)) ? -EFAULT : 0;
}

static int canchar_frame_from_user(struct canchar_frame *frame, const char __user *user,
				   size_t size)
{
	struct canchar_short_frame brief;

	if (size == sizeof(*frame)) {
		if (canchar_words_from_user(frame, user))
			return -EFAULT;
	} else {
		if (copy_from_user(&brief, user, sizeof(brief)))
			return -EFAULT;
		frame->stamp_ns = 0;
		frame->can_id = brief.can_id;
		frame->len = brief.len;
		frame->flags = brief.flags;
		frame->lost = 0;
		memcpy(frame->data, brief.data, sizeof(frame->data));
	}
	return canchar_frame_valid(frame) ? 0 : -EINVAL;
}

static ssize_t canchar_read_locked(struct canchar_file *file, char __user *user, size_t bytes,
				   u64 timeout_ns)
{
	size_t size = file->options.frame_size, done = 0;
	struct canchar_frame frame;
	long waiting;

	if (READ_ONCE(file->mapped))
		return -EBUSY;
	if (bytes < size)
		return -EINVAL;
	waiting = canchar_wait_frames(file, min_t(u64, file->options.read_min, bytes / size),
				      timeout_ns);
	if (waiting < 0)
		return waiting;
	for (; waiting && done + size <= bytes && canchar_queue_get(file, &frame); waiting--) {
		int err = canchar_frame_to_user(user + done, &frame, size);

		if (err)
			return done ?: err;
		done += size;
	}
	return done ?: -EAGAIN;
}

static ssize_t canchar_read(struct file *filp, char __user *user, size_t bytes, loff_t *position)
{
	struct canchar_file *file = filp->private_data;
	u64 timeout_ns = READ_ONCE(file->options.timeout_ns) ?: CANCHAR_FOREVER;
	ssize_t done;

	if (filp->f_flags & O_NONBLOCK)
		timeout_ns = 0;
	done = canchar_lock_in_time(file, &file->read_mutex, &timeout_ns);
	if (done)
		return done == -ETIME ? -EAGAIN : done;
	done = canchar_read_locked(file, user, bytes, timeout_ns);
	canchar_unlock(file, &file->read_mutex);
	return done;
}

/* ------------------------------------------------------------ sending -- */

static bool canchar_has_room(struct canchar_file *file)
{
	return canchar_ring_unsent(&file->tx) <= file->tx.mask;
}

/*
 * Waits until the writer's condition is true; with its write mutex. -ETIME when the
 * time has passed.
 */
static int canchar_wait_to_write(struct canchar_file *file, bool all_sent, u64 timeout_ns)
{
	struct canchar_device *dev = file->dev;
	u64 deadline = canchar_deadline(timeout_ns);
	unsigned long flags;
	int err = 0;

	raw_spin_lock_irqsave(&dev->lock, flags);
	file->tx_waiters++;
	canchar_feed(dev);	/* requests an interrupt, because somebody waits now */
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	prepare_to_rcuwait(&file->writer);
	for (;;) {
		bool done;

		set_current_state(TASK_INTERRUPTIBLE);
		canchar_unmask(dev);
		raw_spin_lock_irqsave(&dev->lock, flags);
		done = all_sent ? canchar_all_sent(file) : canchar_has_room(file);
		raw_spin_unlock_irqrestore(&dev->lock, flags);
		if (done)
			break;
		err = canchar_send_trouble(dev);
		if (!err && signal_pending(current))
			err = canchar_interrupted(timeout_ns);
		if (!err && !canchar_sleep_until(deadline))
			err = -ETIME;
		if (err)
			break;
	}
	finish_rcuwait(&file->writer);
	raw_spin_lock_irqsave(&dev->lock, flags);
	file->tx_waiters--;
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	return err;
}

int canchar_wait_sent(struct canchar_file *file, u64 timeout_ns)
{
	return canchar_wait_to_write(file, true, timeout_ns);
}

/* Queues one frame; -EAGAIN when the queue is full. */
static int canchar_write_frame(struct canchar_file *file, const struct canchar_frame *frame)
{
	struct canchar_device *dev = file->dev;
	unsigned long flags;
	int err = canchar_send_trouble(dev);

	if (err)
		return err;
	raw_spin_lock_irqsave(&dev->lock, flags);
	if (likely(canchar_send_at_once(file, frame))) {
		raw_spin_unlock_irqrestore(&dev->lock, flags);
		return 0;
	}
	/* With the lock held, so that no earlier frame leaves in between. */
	if (canchar_ring_put(&file->tx, frame))
		canchar_push(file);
	else
		err = -EAGAIN;
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	return err;
}

static ssize_t canchar_write_locked(struct file *filp, const char __user *user, size_t bytes)
{
	struct canchar_file *file = filp->private_data;
	size_t size = file->options.frame_size, done = 0;
	struct canchar_frame frame;
	int err = 0;

	if (READ_ONCE(file->mapped))
		return -EBUSY;
	if (bytes % size)
		return -EINVAL;
	while (done < bytes) {
		err = canchar_frame_from_user(&frame, user + done, size);
		if (!err)
			err = canchar_write_frame(file, &frame);
		if (err == -EAGAIN && !done && !(filp->f_flags & O_NONBLOCK)) {
			err = canchar_wait_to_write(file, false, CANCHAR_FOREVER);
			if (!err)
				continue;
		}
		if (err)
			break;
		done += size;
	}
	return done ?: err;
}

static ssize_t canchar_write(struct file *filp, const char __user *user, size_t bytes,
			     loff_t *position)
{
	struct canchar_file *file = filp->private_data;
	u64 timeout_ns = filp->f_flags & O_NONBLOCK ? 0 : CANCHAR_FOREVER;
	ssize_t done = canchar_lock_in_time(file, &file->write_mutex, &timeout_ns);

	if (done)
		return done == -ETIME ? -EAGAIN : done;
	done = canchar_write_locked(filp, user, bytes);
	canchar_unlock(file, &file->write_mutex);
	return done;
}

/* ----------------------------------------------------- poll and mmap -- */

static void canchar_wake_pollers_work(struct irq_work *work)
{
	wake_up_all(&container_of(work, struct canchar_file, wake_pollers)->pollers);
}

static __poll_t canchar_poll(struct file *filp, poll_table *table)
{
	struct canchar_file *file = filp->private_data;
	struct canchar_device *dev = file->dev;
	__poll_t events = 0;
	unsigned long flags;
	bool room;

	poll_wait(filp, &file->pollers, table);
	/* Pairs with the barrier in wake_readers(), after the frames were put. */
	smp_mb();
	switch (canchar_trouble(dev)) {
	case -ENODEV:
		events |= EPOLLHUP | EPOLLERR;
		break;
	case -ENETDOWN:
		events |= EPOLLERR;
		break;
	}
	if (canchar_look_locked(file) >= READ_ONCE(file->poll_at))
		events |= EPOLLIN | EPOLLRDNORM;
	else
		canchar_unmask(dev);	/* it is likely to sleep now */
	/* The lock keeps the ring from being replaced meanwhile. */
	raw_spin_lock_irqsave(&dev->lock, flags);
	room = canchar_has_room(file);
	file->tx_polled |= !room;
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	return room ? events | EPOLLOUT | EPOLLWRNORM : events;
}

static int canchar_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct canchar_file *file = filp->private_data;
	unsigned long flags;
	int err;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	mutex_lock(&file->map_mutex);
	err = remap_vmalloc_range(vma, file->memory.start, vma->vm_pgoff);
	if (!err) {
		raw_spin_lock_irqsave(&file->dev->lock, flags);
		WRITE_ONCE(file->mapped, true);
		raw_spin_unlock_irqrestore(&file->dev->lock, flags);
	}
	mutex_unlock(&file->map_mutex);
	return err;
}

/* ----------------------------------------------------- open and close -- */

static struct canchar_file *canchar_file_alloc(struct canchar_device *dev)
{
	struct canchar_file *file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);

	if (!file)
		return NULL;
	file->dev = dev;
	INIT_LIST_HEAD(&file->sender);
	mutex_init(&file->read_mutex);
	mutex_init(&file->write_mutex);
	mutex_init(&file->map_mutex);
	init_waitqueue_head(&file->turns);
	rcuwait_init(&file->reader);
	rcuwait_init(&file->writer);
	init_waitqueue_head(&file->pollers);
	init_irq_work(&file->wake_pollers, canchar_wake_pollers_work);
	file->wake_at = 1;
	file->poll_at = 1;
	file->options = (struct canchar_options){
		.frame_size = sizeof(struct canchar_frame),
		.rx_slots = CANCHAR_SLOTS,
		.tx_slots = CANCHAR_SLOTS,
		.read_min = 1,
	};
	if (canchar_rings_alloc(file, CANCHAR_SLOTS, CANCHAR_SLOTS)) {
		kfree(file);
		return NULL;
	}
	return file;
}

static int canchar_open(struct inode *inode, struct file *filp)
{
	struct canchar_device *dev = container_of(inode->i_cdev, struct canchar_device, cdev);
	struct canchar_file *file;
	unsigned long flags;
	int err = 0;

	file = canchar_file_alloc(dev);
	if (!file)
		return -ENOMEM;
	raw_spin_lock_irqsave(&dev->lock, flags);
	if (dev->gone)
		err = -ENODEV;
	else if (dev->file_count >= CANCHAR_FILES_MAX)
		err = -EUSERS;
	if (!err) {
		dev->file_count++;
		dev->stamp_count += canchar_needs_stamps(&file->options);
		/* The chip may have been masked since the ring was made. */
		WRITE_ONCE(file->rx.shared->need_wakeup, dev->masked);
		list_add_tail(&file->node, &dev->files);
	}
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	if (err) {
		canchar_rings_free(file);
		kfree(file);
		return err;
	}
	get_device(&dev->dev);
	filp->private_data = file;
	return stream_open(inode, filp);
}

/*
 * Waits for the frames of a file that is being closed. When nobody acknowledges, the first file
 * waits in vain, and no other does until a frame has been sent: a process with many files ends
 * after one such wait.
 */
static void canchar_linger(struct canchar_file *file)
{
	struct canchar_device *dev = file->dev;
	unsigned long flags;
	bool in_vain;

	raw_spin_lock_irqsave(&dev->lock, flags);
	in_vain = dev->lingered && dev->lingered_at == dev->counts.tx_frames;
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	if (in_vain || canchar_wait_sent(file, CANCHAR_LINGER_NS) != -ETIME)
		return;
	raw_spin_lock_irqsave(&dev->lock, flags);
	dev->lingered = true;
	dev->lingered_at = dev->counts.tx_frames;
	raw_spin_unlock_irqrestore(&dev->lock, flags);
}

static int canchar_release(struct inode *inode, struct file *filp)
{
	struct canchar_file *file = filp->private_data;
	struct canchar_device *dev = file->dev;
	unsigned long flags;

	raw_spin_lock_irqsave(&dev->lock, flags);
	canchar_push(file);	/* a mapped ring may contain frames without a kick */
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	if (!(filp->f_flags & O_NONBLOCK))
		canchar_linger(file);
	raw_spin_lock_irqsave(&dev->lock, flags);
	canchar_forget_file(file);
	raw_spin_unlock_irqrestore(&dev->lock, flags);
	if (file->options.flags & CANCHAR_POLL_CHIP)
		canchar_unmask(dev);
	irq_work_sync(&file->wake_pollers);
	canchar_rings_free(file);
	kfree(file);
	put_device(&dev->dev);
	return 0;
}

const struct file_operations canchar_fops = {
	.owner = THIS_MODULE,
	.open = canchar_open,
	.release = canchar_release,
	.read = canchar_read,
	.write = canchar_write,
	.poll = canchar_poll,
	.mmap = canchar_mmap,
	.unlocked_ioctl = canchar_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
