/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of the kernel as canchar's core and its SJA1000 use, for one thread in user space: locks
 * and barriers do nothing, timers and works only remember that they were started. Included before
 * each of canchar's files; the headers that they name are empty then.
 */
#ifndef SJA1000_TEST_KERNEL_H
#define SJA1000_TEST_KERNEL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/can.h>
#include <linux/can/error.h>
#include <linux/types.h>

#define CANTER_COMPAT_H		/* differences between kernels: none here */

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t ktime_t;
typedef int irqreturn_t;

#define BIT(n)			(1U << (n))
#define U16_MAX			UINT16_MAX
#define U32_MAX			UINT32_MAX
#define NSEC_PER_SEC		1000000000L
#define NSEC_PER_MSEC		1000000L
#define PAGE_SIZE		4096UL
#define PAGE_ALIGN(size)	(((size) + PAGE_SIZE - 1) & ~(PAGE_SIZE - 1))
#define IRQ_NONE		0
#define IRQ_HANDLED		1
#define GFP_KERNEL		0
#define GFP_KERNEL_ACCOUNT	0
#define MAX_ERRNO		4095

#define likely(x)		(x)
#define unlikely(x)		(x)
#undef __always_inline
#define __always_inline		inline
#define noinline
#define __user
#define ____cacheline_aligned
#define fallthrough		__attribute__((__fallthrough__))
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define clamp_t(type, x, low, high) min_t(type, max((type)(x), (type)(low)), high)
#define container_of(at, type, member) ((type *)((char *)(at) - offsetof(type, member)))
#define struct_size(at, member, count) (sizeof(*(at)) + (count) * sizeof((at)->member[0]))
#define READ_ONCE(x)		(*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value)	(*(volatile typeof(x) *)&(x) = (value))
/* What another processor does at a full barrier; NULL: nothing. */
extern void (*at_barrier)(void);
#define smp_mb()		do { if (at_barrier) at_barrier(); } while (0)
#define smp_wmb()		do { } while (0)
#define smp_rmb()		do { } while (0)
#define smp_load_acquire(at)	READ_ONCE(*(at))
#define smp_store_release(at, value) WRITE_ONCE(*(at), value)
#define IS_ERR(at)		((unsigned long)(at) >= (unsigned long)-MAX_ERRNO)
#define PTR_ERR(at)		((long)(at))
#define ERR_PTR(error)		((void *)(long)(error))

/* Ports: each program. */
u8 inb(unsigned long port);
void outb(u8 value, unsigned long port);
u32 inl(unsigned long port);
void outl(u32 value, unsigned long port);
static inline void udelay(unsigned int us) { }

/* Of the steps that may fail, the one that a program chose. */
bool step_fails(void);
extern unsigned int steps, failing_step;

/* Memory. */
static inline void *kzalloc(size_t bytes, int flags) { return step_fails() ? NULL : calloc(1, bytes); }
#define kvzalloc		kzalloc
#define kfree			free
#define kvfree			free
#define u64_to_user_ptr(address) ((void *)(unsigned long)(address))
static inline int copy_from_user(void *to, const void *from, size_t bytes)
{
	memcpy(to, from, bytes);
	return 0;
}

/* Lists. */
struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *head) { head->next = head->prev = head; }
static inline bool list_empty(const struct list_head *head) { return head->next == head; }
static inline void list_add_tail(struct list_head *entry, struct list_head *head)
{
	entry->next = head;
	entry->prev = head->prev;
	head->prev->next = entry;
	head->prev = entry;
}

static inline void list_del(struct list_head *entry)
{
	entry->next->prev = entry->prev;
	entry->prev->next = entry->next;
}

static inline void list_del_init(struct list_head *entry)
{
	list_del(entry);
	INIT_LIST_HEAD(entry);
}

static inline void list_move_tail(struct list_head *entry, struct list_head *head)
{
	list_del(entry);
	list_add_tail(entry, head);
}

#define list_first_entry(head, type, member) container_of((head)->next, type, member)
#define list_for_each_entry(at, head, member) \
	for (at = container_of((head)->next, typeof(*at), member); &at->member != (head); \
	     at = container_of(at->member.next, typeof(*at), member))

/* Locks; there is one thread, and interrupts, which each program delivers in its way. */
extern unsigned int interrupts_off_depth;
void deliver(void);

static inline void interrupts_off(void)
{
	interrupts_off_depth++;
}

static inline void interrupts_on(void)
{
	interrupts_off_depth--;
	deliver();
}

struct mutex { int unused; };
typedef struct { int unused; } raw_spinlock_t;

#define mutex_init(mutex)	((void)(mutex))
#define mutex_lock(mutex)	((void)(mutex))
#define mutex_unlock(mutex)	((void)(mutex))
#define mutex_trylock(mutex)	((void)(mutex), true)
#define raw_spin_lock_init(lock) ((void)(lock))
#define raw_spin_lock(lock)	((void)(lock))
#define raw_spin_unlock(lock)	((void)(lock))
#define local_irq_restore(flags) ((void)(flags), interrupts_on())
#define raw_spin_lock_irqsave(lock, flags) ((void)(lock), (void)((flags) = 0), interrupts_off())
#define raw_spin_unlock_irqrestore(lock, flags) ((void)(lock), (void)(flags), interrupts_on())

/* Who waits: nobody. */
struct rcuwait { int unused; };
typedef struct { int unused; } wait_queue_head_t;
struct irq_work { int unused; };

#define rcuwait_active(wait)	((void)(wait), false)
#define rcuwait_wake_up(wait)	((void)(wait))

/* Threads: there are none. */
struct task_struct { int unused; };
struct sched_attr { u32 size, sched_policy, sched_priority; };

#define TASK_IDLE			0
#define TASK_RUNNING			0
#define SCHED_FIFO			1
#define set_current_state(state)	do { } while (0)
#define __set_current_state(state)	do { } while (0)
#define schedule()			do { } while (0)
#define kthread_should_stop()		true
#define kthread_create(function, data, ...) ((struct task_struct *)ERR_PTR(-EAGAIN))
#define kthread_stop(thread)		((void)(thread))
#define wake_up_process(thread)		((void)(thread))
#define sched_setattr_nocheck(thread, attr) ((void)(thread), (void)(attr), 0)
#define waitqueue_active(queue)	((void)(queue), false)
#define wq_has_sleeper(queue)	((void)(queue), false)
#define wake_up(queue)		((void)(queue))
#define irq_work_queue(work)	((void)(work))
#define irq_work_sync(work)	((void)(work))
#define IRQ_WORK_INIT_HARD(called) ((struct irq_work){ 0 })

/* Works and timers: driver.c and virtual.c run those that were started. */
struct work_struct { bool pending; };
struct delayed_work {
	struct work_struct work;
	void (*function)(struct work_struct *work);
};

#define INIT_DELAYED_WORK(delayed, called) ((delayed)->function = (called))
#define msecs_to_jiffies(ms)	(ms)
#define schedule_delayed_work(delayed, jiffies) ((void)(jiffies), (delayed)->work.pending = true)
#define cancel_delayed_work(delayed) ((delayed)->work.pending = false)
#define cancel_delayed_work_sync	cancel_delayed_work

enum hrtimer_restart { HRTIMER_NORESTART, HRTIMER_RESTART };
enum { CLOCK_MONOTONIC_HERE, HRTIMER_MODE_REL_HARD, HRTIMER_MODE_ABS_PINNED_HARD };
#define CLOCK_MONOTONIC		CLOCK_MONOTONIC_HERE

struct hrtimer {
	bool queued;
	enum hrtimer_restart (*function)(struct hrtimer *timer);
};

#define hrtimer_setup(timer, called, clock, mode) ((timer)->function = (called))
#define hrtimer_is_queued(timer) ((timer)->queued)
#define hrtimer_start(timer, time, mode) ((void)(time), (timer)->queued = true)
#define hrtimer_cancel(timer)	((timer)->queued = false)
#define hrtimer_forward_now(timer, time) ((void)(timer), (void)(time))
#define ns_to_ktime(ns)		((ktime_t)(ns))
#define ktime_to_ns(time)	(time)
#define ktime_add_ns(time, ns)	((ktime_t)((time) + (ns)))
#define ktime_sub(later, earlier) ((later) - (earlier))
#define div_u64(value, by)	((u64)(value) / (by))
ktime_t ktime_get(void);	/* virtual.c */
static inline u64 ktime_get_real_ns(void) { return 1; }

/* The device model. */
struct module;
struct attribute_group { int unused; };
struct file_operations { int unused; };
struct inode;
struct file;
struct cdev { struct module *owner; };
struct class {
	const char *name;
	const struct attribute_group **dev_groups;
};

struct device {
	struct class *class;
	struct device *parent;
	dev_t devt;
	void (*release)(struct device *device);
	unsigned int users;
};

#define THIS_MODULE		NULL
#define MKDEV(major, minor)	((dev_t)(minor))
#define MAJOR(number)		(0)
#define DEFINE_IDA(name)	int name	/* numbers that are taken */
#define ida_alloc_max(ida, most, flags) (step_fails() ? -ENOSPC : (*(ida))++)
#define ida_free(ida, number)	((void)(number), (*(ida))--)
#define ida_destroy(ida)	((void)(ida))
#define device_initialize(device) ((device)->users = 1)
#define dev_set_name(device, ...) ((void)(device))
#define cdev_init(cdev, operations) ((void)(operations))
extern unsigned int devices_added;
#define cdev_device_add(cdev, device) (step_fails() ? -ENOMEM : (devices_added++, 0))
#define cdev_device_del(cdev, device) ((void)(device), devices_added--)
#define get_device(device)	((void)(device)->users++)
static inline void put_device(struct device *device)
{
	if (!--device->users)
		device->release(device);
}

#define alloc_chrdev_region(number, first, count, name) (0)
#define unregister_chrdev_region(number, count) ((void)(number))
#define class_register(class)	((void)(class), 0)
#define class_unregister(class)	((void)(class))

/* PCI and interrupt lines: board.c. */
struct pci_dev {
	struct device dev;
	u16 vendor, device;
	int irq;
	void *data;
};

struct pci_device_id { int unused; };
struct pci_driver {
	const char *name;
	int (*probe)(struct pci_dev *pdev, const struct pci_device_id *id);
	void (*remove)(struct pci_dev *pdev);
};

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof(*(array)))
#define IRQF_SHARED		1
#define IRQF_NO_THREAD		2
#define module_param(name, type, mode)
#define MODULE_PARM_DESC(name, text)
#define dev_name(device)	("canchar")
#define dev_info(device, ...)	((void)(device))
#define dev_warn(device, ...)	((void)(device))
#define pci_set_drvdata(pdev, value) ((pdev)->data = (value))
#define pci_get_drvdata(pdev)	((pdev)->data)
void *devm_kzalloc(struct device *device, size_t bytes, int flags);
int pci_enable_device(struct pci_dev *pdev);
void pci_disable_device(struct pci_dev *pdev);
int pci_request_regions(struct pci_dev *pdev, const char *driver);
void pci_release_regions(struct pci_dev *pdev);
unsigned long pci_resource_start(struct pci_dev *pdev, int region);
unsigned long pci_resource_len(struct pci_dev *pdev, int region);
int pci_register_driver(struct pci_driver *driver);
void pci_unregister_driver(struct pci_driver *driver);
int request_irq(int line, irqreturn_t (*handler)(int line, void *data), unsigned int flags,
		const char *name, void *data);
void free_irq(int line, void *data);

#endif
