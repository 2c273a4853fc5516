/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interfaces between the parts of canchar.
 *
 *	file.c, ioctl.c	system calls of an open file
 *	queue.c		its rings and filters
 *	memory.c	the memory of its rings
 *	core.c		interrupts and polling: what a controller has to say
 *	send.c		what is sent next
 *	thread.c	the interrupt handler in a thread
 *	device.c	a device from its coming to its going
 *	chip_*.c	a controller's registers; knows no board
 *	board_*.c	where controllers are; a card is a row
 */
#ifndef CANCHAR_H
#define CANCHAR_H

#include <linux/bitops.h>
#include <linux/cache.h>
#include <linux/can.h>
#include <linux/can/error.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcuwait.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "ring.h"

#define CANCHAR_PRIORITIES	3
#define CANCHAR_SLOTS		64
#define CANCHAR_SLOTS_MAX	4096
/*
 * Every frame is compared with the filters of every file, with interrupts off: their number is
 * bounded.
 */
#define CANCHAR_FILES_MAX	64
#define CANCHAR_RULES_MAX	2048	/* of all files of a device */

/* A masked chip that nobody has polled for this time interrupts again. */
#define CANCHAR_MASKED_MAX_NS	(2 * NSEC_PER_MSEC)

/* How often an interrupt handler checks its chip without finding a frame before it returns. */
#define CANCHAR_PASSES_MAX	8
/* The most frames that it reads: several times a full FIFO. */
#define CANCHAR_BURST_MAX	64

/* The SCHED_FIFO priority of a thread for interrupts, as that of the kernel's own; the highest. */
#define CANCHAR_THREAD_PRIORITY		50
#define CANCHAR_THREAD_PRIORITY_MAX	99

struct canchar_device;
struct canchar_file;

/* Events of a chip. */
#define CANCHAR_EVENT_RX	BIT(0)
#define CANCHAR_EVENT_TX	BIT(1)
#define CANCHAR_EVENT_STATE	BIT(2)
#define CANCHAR_EVENT_OVERRUN	BIT(3)
#define CANCHAR_EVENT_GONE	BIT(4)	/* the card no longer responds */

/* The controller's error state. */
struct canchar_standing {
	enum canchar_state state;
	u8 rx_errors;
	u8 tx_errors;
};

/*
 * The operations of a chip. All but calculate, start and stop are called with the device's lock
 * held and interrupts off, and none of those after silence or stop, until start.
 */
struct canchar_chip_ops {
	const char *name;
	u32 clock_hz;	/* of the bit timing */
	/*
	 * Fills in what is 0 in timing; EINVAL when the clock cannot produce it. NULL: no bit
	 * timing.
	 */
	int (*calculate)(struct canchar_timing *timing);
	/* Disables the interrupt, in few accesses. */
	void (*silence)(struct canchar_device *dev);
	/*
	 * Goes on the bus, the interrupt still off: mask enables it. After bus-off the controller
	 * may still have to wait for 128 sequences of 11 recessive bits: standing reports bus-off
	 * until then, and an event its end. Without the lock: leaving reset mode takes time.
	 */
	int (*start)(struct canchar_device *dev);
	/* Leaves the bus; nothing interrupts afterwards. Without the lock. */
	void (*stop)(struct canchar_device *dev);
	/* Reads and acknowledges the causes of the interrupt: CANCHAR_EVENT_*. */
	unsigned int (*events)(struct canchar_device *dev);
	/* As events, by polling, for a masked interrupt. */
	unsigned int (*look)(struct canchar_device *dev);
	/*
	 * Takes one frame after CANCHAR_EVENT_RX; false when there is none. Its stamp is not set.
	 * If more may wait, the event is reported again.
	 */
	bool (*receive)(struct canchar_device *dev, struct canchar_frame *frame);
	/* The transmit buffer is free; its frame has been sent. */
	bool (*tx_free)(struct canchar_device *dev);
	/* Whether a free transmit buffer is to interrupt; called before the buffer is filled. */
	void (*tx_interrupt)(struct canchar_device *dev, bool wanted);
	/* Fills the transmit buffer and requests transmission. */
	void (*send)(struct canchar_device *dev, const struct canchar_frame *frame);
	/* Masks frames' interrupts, or allows them; the first call after start enables all. */
	void (*mask)(struct canchar_device *dev, bool masked);
	/* An interrupt came while masked: keeps its causes for look; false: there are none. */
	bool (*acknowledge)(struct canchar_device *dev);
	void (*standing)(struct canchar_device *dev, struct canchar_standing *standing);
};

/* Counters of a device; tx_aborted: frames that were in the controller when it stopped. */
struct canchar_counts {
	u64 rx_frames, rx_overruns, tx_frames, tx_aborted;
	u64 interrupts, error_frames, bus_off, restarts;
};

/* A controller and its device file. */
struct canchar_device {
	struct device dev;
	struct cdev cdev;
	const struct canchar_chip_ops *ops;
	const char *board;
	void *chip;	/* the chip's own data */
	int number;	/* of /dev/canchar0 */

	/* Starting, stopping, bit timing; taken before the lock. */
	struct mutex mutex;
	struct canchar_timing timing;
	struct delayed_work restart;
	/* close(2) found this number of sent frames when it last waited in vain. */
	u64 lingered_at;
	bool lingered;
	/* The interrupt handler runs in it; changes also under the lock. */
	struct task_struct *thread;
	unsigned int thread_priority;

	/* Chip registers and all below; taken in the interrupt handler. */
	raw_spinlock_t lock;
	bool running;	/* on the bus, or off by errors */
	bool live;	/* running, and the chip may be accessed */
	bool sends;	/* live, neither bus-off nor listen-only */
	bool recovering;	/* started again after bus-off */
	bool gone;	/* the board was removed */
	bool masked;	/* a caller polls the chip, and none sleeps */
	bool polled;	/* since the watchdog last ran */
	bool deferred;	/* the chip is masked until the thread has handled its interrupt */
	unsigned int deferred_events;	/* those that it reported then */
	struct hrtimer watchdog;	/* while the chip is masked or senders wait for a retry */
	bool tx_armed;	/* an interrupt was requested for the free transmit buffer */
	enum canchar_state state;
	struct list_head files;
	unsigned int file_count;
	unsigned int rule_count;	/* of all files */
	unsigned int stamp_count;	/* files that need stamps */
	struct list_head senders[CANCHAR_PRIORITIES];	/* files with frames to send */
	/* The frame in the controller, and its file; NULL when the file was closed. */
	bool in_flight;
	u32 in_flight_flags;	/* its file's CANCHAR_ECHO and CANCHAR_ECHO_OWN */
	struct canchar_file *in_flight_of;
	struct canchar_frame in_flight_frame;
	struct canchar_counts counts;
};

struct canchar_filter_set {
	u32 count;
	u32 error_mask;	/* accepted classes of error frames */
	u32 needed;	/* how many must match */
	struct canchar_filter_rule {
		u32 id, mask;
		bool different;
	} rules[];
};

/* Memory that programs may map; @start: NULL for none. */
struct canchar_memory {
	void *start;
	struct page **pages;
	u32 count;
};

/* An open file: under the device's lock, where a comment names no other. */
struct canchar_file {
	struct canchar_device *dev;
	struct list_head node;		/* in dev->files */
	struct list_head sender;	/* in dev->senders while frames wait */

	struct canchar_ring_end rx;		/* its producer is under the lock */
	struct canchar_ring_end tx;		/* its consumer is under the lock */
	bool overwrite;				/* CANCHAR_OVERWRITE */
	bool fresh;				/* frames arrived since the last wake-up */
	u32 frame_flags;			/* CANCHAR_ECHO, CANCHAR_ECHO_OWN */
	u32 priority;
	u32 wake_at;				/* frames that wake the reader */
	u32 poll_at;				/* frames that wake poll(2) */
	u32 lost_before;			/* frames lost since the last one that was queued */
	u32 tx_waiters;				/* writers that sleep */
	bool tx_polled;				/* poll(2) found the transmit queue full */
	u64 rx_frames, rx_lost, tx_frames, tx_lost;
	struct canchar_filter_set *filters;	/* NULL: all but error frames */

	/* One reader and one writer at a time; both are held to change options. */
	struct mutex read_mutex, write_mutex;
	wait_queue_head_t turns;	/* who waits for one of them with a timeout */
	struct canchar_options options;	/* as the process set them */
	u64 look_ns;	/* CANCHAR_ADAPTIVE: how long the next wait looks before it sleeps */

	/* Taken within the mmap lock, so nothing that faults may be under it. */
	struct mutex map_mutex;
	struct canchar_memory memory;	/* of the rings; struct canchar_map is at its start */
	bool mapped;	/* also under the lock */

	struct rcuwait reader, writer;
	wait_queue_head_t pollers;
	struct irq_work wake_pollers;	/* wakes them outside of the lock */
};

/* Whether the frames that a file with these options receives must be stamped. */
static inline bool canchar_needs_stamps(const struct canchar_options *options)
{
	return !(options->flags & CANCHAR_NO_STAMPS);
}

/* Why frames cannot move: 0, -ENETDOWN or -ENODEV. */
static inline int canchar_trouble(const struct canchar_device *dev)
{
	if (likely(READ_ONCE(dev->running)))
		return 0;
	smp_rmb();	/* gone was set in a critical section before that in which it stopped */
	return READ_ONCE(dev->gone) ? -ENODEV : -ENETDOWN;
}

/* Why frames cannot be sent: the same, or -EOPNOTSUPP of a listener. */
static inline int canchar_send_trouble(const struct canchar_device *dev)
{
	int err = canchar_trouble(dev);

	/* The flag changes only while the device is stopped. */
	if (unlikely(READ_ONCE(dev->timing.flags) & CANCHAR_LISTEN_ONLY))
		return err ?: -EOPNOTSUPP;
	return err;
}

/* Called also after live has changed. With the lock held. */
static inline void canchar_set_state(struct canchar_device *dev, enum canchar_state state)
{
	WRITE_ONCE(dev->state, state);
	dev->sends = dev->live && state != CANCHAR_BUS_OFF &&
		     !(dev->timing.flags & CANCHAR_LISTEN_ONLY);
}

/* Whether a process may send this frame. */
static inline bool canchar_frame_valid(const struct canchar_frame *frame)
{
	u32 id = frame->can_id;

	if (frame->len > CAN_MAX_DLEN || frame->flags || (id & CAN_ERR_FLAG))
		return false;
	return (id & CAN_EFF_FLAG) || !(id & CAN_EFF_MASK & ~CAN_SFF_MASK);
}

/*
 * core.c: with the lock held, but for canchar_unmask(), canchar_handle_deferred() and the handlers
 */
irqreturn_t canchar_interrupt(int irq, void *data);

/* What a hard handler has left to the thread, if anything. Takes the lock. */
void canchar_handle_deferred(struct canchar_device *dev);

/* What the interrupt handler does, without an interrupt. */
void canchar_poll_chip(struct canchar_device *dev);

/* The chip is about to be polled: no interrupts of frames, unless a caller sleeps for them. */
void canchar_mask(struct canchar_device *dev);

/* A caller is about to sleep: allows interrupts again. */
void canchar_unmask(struct canchar_device *dev);

/* The frame in the controller was sent: gives its echo to the files that requested it. */
void canchar_echo(struct canchar_device *dev);

/* Makes an error frame for the files that want it. */
void canchar_error_frame(struct canchar_device *dev, u32 class, u8 control,
			 const struct canchar_standing *standing);

/* Wakes all that wait for frames, for room or for a change. */
void canchar_wake_everybody(struct canchar_device *dev);

/* The controller is on the bus again after bus-off. */
void canchar_recovered(struct canchar_device *dev, const struct canchar_standing *standing);

/* Starts the watchdog, unless it runs. */
void canchar_watch(struct canchar_device *dev);

/* Unmasks a chip that nobody polls, and feeds senders whose turn failed. */
enum hrtimer_restart canchar_watchdog(struct hrtimer *timer);

/* send.c: with the lock held */

/* Gives the controller the next frame if it can take it. */
void canchar_feed(struct canchar_device *dev);

/* Sends what was put into the transmit ring. */
void canchar_push(struct canchar_file *file);

/* Sends a frame past its file's queue, which is empty; false: it must be queued. */
bool canchar_send_at_once(struct canchar_file *file, const struct canchar_frame *frame);

bool canchar_all_sent(const struct canchar_file *file);

/* The frame in the controller will not leave it. */
void canchar_abort_in_flight(struct canchar_device *dev);

/* Discards what waits, in mapped rings too. */
void canchar_stop_sending(struct canchar_device *dev);

/* Removes all pointers to a file that is being closed. */
void canchar_forget_file(struct canchar_file *file);

/* device.c */
struct canchar_device *canchar_alloc(struct device *parent, const char *board,
				     const struct canchar_chip_ops *ops, void *chip);

int canchar_register(struct canchar_device *dev);
void canchar_unregister(struct canchar_device *dev);

/* Goes on the bus, or again after bus-off: 0, -ENODEV or the chip's error. */
int canchar_start(struct canchar_device *dev);

/* Leaves the bus, and discards waiting frames: 0 or -ENODEV. */
int canchar_stop(struct canchar_device *dev);

/* Sets the bit timing and fills in what is 0 in it: 0, -EINVAL, -ENODEV, -EBUSY while it runs. */
int canchar_set_timing(struct canchar_device *dev, struct canchar_timing *timing);

/* Sets the bit rate alone, so that a listener stays one; answers as canchar_set_timing(). */
int canchar_set_bitrate(struct canchar_device *dev, u32 bitrate);

/* thread.c */

/* Moves the interrupt handler into a thread or back: 0, -ENODEV or why there is no thread. */
int canchar_set_threaded(struct canchar_device *dev, bool on);

/* SCHED_FIFO, now or for the next thread: 0, -EINVAL, -ENODEV or the scheduler's error. */
int canchar_set_thread_priority(struct canchar_device *dev, unsigned int priority);

/* A device that has just appeared: what the module parameters say. */
void canchar_thread_by_parameter(struct canchar_device *dev);

/* With the mutex. */
void canchar_stop_thread(struct canchar_device *dev);

int canchar_devices_init(void);
void canchar_devices_exit(void);

/* sysfs.c */
extern const struct attribute_group *canchar_groups[];

/* memory.c */

/* Zeroed, and charged to this process's control group. */
bool canchar_memory_alloc(struct canchar_memory *memory, size_t bytes);
void canchar_memory_free(const struct canchar_memory *memory);

/* queue.c */

/* Gives a file new empty rings; with its map mutex, while nobody reads or writes the file. */
int canchar_rings_alloc(struct canchar_file *file, u32 rx_slots, u32 tx_slots);

/* Frees rings and filters of a file that nobody uses. */
void canchar_rings_free(struct canchar_file *file);

/* 0, -EINVAL, -ENOMEM, -EFAULT or -ENOSPC. */
int canchar_filters_set(struct canchar_file *file, const struct canchar_filters *from);
bool canchar_filters_pass(const struct canchar_filter_set *set, u32 can_id);

/* Puts a frame that passed into the receive queue. With the lock held. */
static __always_inline void canchar_queue_put(struct canchar_file *file,
					      struct canchar_frame *frame)
{
	struct canchar_ring_end *ring = &file->rx;

	file->fresh = true;
	if (file->overwrite) {
		file->rx_frames++;
		frame->lost = 0;	/* only the reader can know */
		canchar_ring_overwrite(ring, frame);
		return;
	}
	frame->lost = min_t(u32, file->lost_before, U16_MAX);
	if (likely(canchar_ring_put(ring, frame))) {
		file->rx_frames++;
		file->lost_before = 0;
		return;
	}
	file->rx_lost++;
	file->lost_before++;
	WRITE_ONCE(ring->shared->lost, (u32)file->rx_lost);
}

/* What canchar_queue_get() does with CANCHAR_OVERWRITE; counts the frames that were overwritten. */
bool canchar_queue_get_latest(struct canchar_file *file, struct canchar_frame *frame);

/* Takes the next received frame, false: there is none. One reader at a time. */
static __always_inline bool canchar_queue_get(struct canchar_file *file,
					      struct canchar_frame *frame)
{
	if (unlikely(file->options.flags & CANCHAR_OVERWRITE))
		return canchar_queue_get_latest(file, frame);
	return canchar_ring_get(&file->rx, frame);
}

/* file.c */
extern const struct file_operations canchar_fops;
long canchar_wait_frames(struct canchar_file *file, u32 min, u64 timeout_ns);

/* What canchar_lock_in_time() does about a mutex that another thread has. */
int canchar_await_turn(struct canchar_file *file, struct mutex *mutex, u64 *timeout_ns);

/*
 * Takes the file's read or write mutex within *timeout_ns, and subtracts the time that it took. 0,
 * -ETIME, -EINTR, or -ERESTARTSYS without a timeout.
 */
static __always_inline int canchar_lock_in_time(struct canchar_file *file, struct mutex *mutex,
						u64 *timeout_ns)
{
	return likely(mutex_trylock(mutex)) ? 0 : canchar_await_turn(file, mutex, timeout_ns);
}

static __always_inline void canchar_unlock(struct canchar_file *file, struct mutex *mutex)
{
	mutex_unlock(mutex);
	/* Its barrier pairs with that of a waiter between joining the queue and trying the lock. */
	if (unlikely(wq_has_sleeper(&file->turns)))
		wake_up(&file->turns);
}

/*
 * Waits until all frames of the file were on the bus; with its write mutex. 0, -ETIME, -EINTR,
 * -ERESTARTSYS, -ENETDOWN, -ENODEV or -EOPNOTSUPP.
 */
int canchar_wait_sent(struct canchar_file *file, u64 timeout_ns);

/*
 * Polls a chip that is masked, and returns the number of waiting frames; with the read mutex, which
 * keeps the ring.
 */
u32 canchar_look(struct canchar_file *file);

/* As canchar_look(), beside a reader: takes the lock, not the mutex. */
u32 canchar_look_locked(struct canchar_file *file);

/* When a wait ends, in ns of CLOCK_MONOTONIC; KTIME_MAX: never. */
u64 canchar_deadline(u64 timeout_ns);

/* What a wait answers to a signal: -ERESTARTSYS without a timeout, otherwise -EINTR. */
int canchar_interrupted(u64 timeout_ns);

/* ioctl.c */
long canchar_ioctl(struct file *filp, unsigned int command, unsigned long argument);

/* boards */

/* Makes the virtual devices of the module parameter, not yet visible. */
int canchar_virtual_init(void);

/* Makes the virtual devices visible; the module must not fail to load after it. */
void canchar_virtual_expose(void);
void canchar_virtual_exit(void);

/* The same for the nodes of canwire that the module parameter names. */
int canchar_wire_init(void);
void canchar_wire_expose(void);
void canchar_wire_exit(void);

int canchar_kvaser_init(void);
void canchar_kvaser_exit(void);

#endif
