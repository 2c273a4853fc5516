// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device's interrupt handler in a thread, on request, as drivers had it on the first kernels with
 * PREEMPT_RT: a hard handler masks the chip, and the thread does the rest. The thread is canchar's
 * own: one that the kernel makes of a handler runs with bottom halves disabled on PREEMPT_RT, and
 * so waits for the soft interrupts of the network, whatever its priority.
 */

#include <linux/kthread.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <uapi/linux/sched/types.h>

#include "canchar.h"

static bool threaded;
module_param(threaded, bool, 0444);
MODULE_PARM_DESC(threaded, "interrupt handlers run in threads, from a device's appearance on (default N)");

static unsigned int thread_priority = CANCHAR_THREAD_PRIORITY;
module_param(thread_priority, uint, 0444);
MODULE_PARM_DESC(thread_priority, "SCHED_FIFO priority of these threads, 1...99 (default 50)");

static int canchar_thread(void *data)
{
	struct canchar_device *dev = data;

	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		if (!READ_ONCE(dev->deferred)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		canchar_handle_deferred(dev);
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static int canchar_schedule_thread(struct task_struct *thread, unsigned int priority)
{
	const struct sched_attr attr = {
		.size = sizeof(attr),
		.sched_policy = SCHED_FIFO,
		.sched_priority = priority,
	};

	return sched_setattr_nocheck(thread, &attr);
}

/* With the mutex. */
static void canchar_use_thread(struct canchar_device *dev, struct task_struct *thread)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&dev->lock, flags);
	dev->thread = thread;
	raw_spin_unlock_irqrestore(&dev->lock, flags);
}

static int canchar_start_thread(struct canchar_device *dev)
{
	struct task_struct *thread;
	int err;

	thread = kthread_create(canchar_thread, dev, "irq/%s", dev_name(&dev->dev));
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	err = canchar_schedule_thread(thread, dev->thread_priority);
	if (err) {
		kthread_stop(thread);
		return err;
	}
	wake_up_process(thread);
	canchar_use_thread(dev, thread);
	return 0;
}

void canchar_stop_thread(struct canchar_device *dev)
{
	struct task_struct *thread = dev->thread;

	if (!thread)
		return;
	/* No interrupt is deferred afterwards. */
	canchar_use_thread(dev, NULL);
	kthread_stop(thread);
	canchar_handle_deferred(dev);
}

int canchar_set_threaded(struct canchar_device *dev, bool on)
{
	int err = 0;

	mutex_lock(&dev->mutex);
	if (dev->gone)
		err = -ENODEV;
	else if (on && !dev->thread)
		err = canchar_start_thread(dev);
	else if (!on)
		canchar_stop_thread(dev);
	mutex_unlock(&dev->mutex);
	return err;
}

int canchar_set_thread_priority(struct canchar_device *dev, unsigned int priority)
{
	int err = 0;

	if (priority < 1 || priority > CANCHAR_THREAD_PRIORITY_MAX)
		return -EINVAL;
	mutex_lock(&dev->mutex);
	if (dev->gone)
		err = -ENODEV;
	else if (dev->thread)
		err = canchar_schedule_thread(dev->thread, priority);
	if (!err)
		WRITE_ONCE(dev->thread_priority, priority);
	mutex_unlock(&dev->mutex);
	return err;
}

void canchar_thread_by_parameter(struct canchar_device *dev)
{
	int err = 0;

	if (thread_priority != CANCHAR_THREAD_PRIORITY)
		err = canchar_set_thread_priority(dev, thread_priority);
	if (!err && threaded)
		err = canchar_set_threaded(dev, true);
	if (err)
		dev_warn(&dev->dev, "no thread of priority %u for its interrupts: error %d\n",
			 thread_priority, err);
}
