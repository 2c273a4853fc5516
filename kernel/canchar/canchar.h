/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interfaces between the parts of canchar.
 *
 *	file.c, ioctl.c	system calls of an open file
 *	queue.c		its rings and filters
 *	core.c		interrupts and polling: what a controller has to say
 *	send.c		what is sent next
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

struct canchar_device;
struct canchar_file;

/* Events of a chip. */
#define CANCHAR_EVENT_RX	BIT(0)
#define CANCHAR_EVENT_TX	BIT(1)
#define CANCHAR_EVENT_STATE	BIT(2)
#define CANCHAR_EVENT_OVERRUN	BIT(3)
#define CANCHAR_EVENT_GONE	BIT(4)	/* the card no longer responds */

/**
 * struct canchar_standing - the controller's error state and counters
 * @state: the state
 * @rx_errors: receive error counter
 * @tx_errors: transmit error counter
 */
struct canchar_standing {
	enum canchar_state state;
	u8 rx_errors;
	u8 tx_errors;
};

/**
 * struct canchar_chip_ops - the operations of a chip
 * @name: its name
 * @clock_hz: clock of the bit timing
 * @calculate: Fills in what is 0 in timing; EINVAL when the clock cannot produce it. NULL: no
 *	bit timing.
 * @silence: Disables the interrupt, in few accesses.
 * @start: Goes on the bus, the interrupt on. After bus-off the controller may still have to wait
 *	for 128 sequences of 11 recessive bits: standing reports bus-off until then, and an event
 *	its end. Without the lock: leaving reset mode takes time.
 * @stop: Leaves it; nothing interrupts afterwards. Without the lock.
 * @events: Reads and acknowledges the causes of the interrupt: CANCHAR_EVENT_*.
 * @look: The same by polling, for a masked interrupt.
 * @receive: Takes one frame after CANCHAR_EVENT_RX; false when there is none. Its stamp is not
 *	set. If more may wait, the event is reported again.
 * @tx_free: The transmit buffer is free; its frame has been sent.
 * @tx_interrupt: An interrupt is wanted when it becomes free; says so before it is filled.
 * @send: Fills the transmit buffer and requests transmission.
 * @mask: Masks the interrupts of frames, or allows them again.
 * @acknowledge: Masked, an interrupt came: keeps its causes for look; false when there are none.
 * @standing: what the controller reports
 *
 * The operations of a chip. All but calculate, start and stop are called with the device's lock
 * held and interrupts off, and none of those after silence or stop, until start.
 */
struct canchar_chip_ops {
	const char *name;
	u32 clock_hz;
	int (*calculate)(struct canchar_timing *timing);
	void (*silence)(struct canchar_device *dev);
	int (*start)(struct canchar_device *dev);
	void (*stop)(struct canchar_device *dev);
	unsigned int (*events)(struct canchar_device *dev);
	unsigned int (*look)(struct canchar_device *dev);
	bool (*receive)(struct canchar_device *dev, struct canchar_frame *frame);
	bool (*tx_free)(struct canchar_device *dev);
	void (*tx_interrupt)(struct canchar_device *dev, bool wanted);
	void (*send)(struct canchar_device *dev, const struct canchar_frame *frame);
	void (*mask)(struct canchar_device *dev, bool masked);
	bool (*acknowledge)(struct canchar_device *dev);
	void (*standing)(struct canchar_device *dev, struct canchar_standing *standing);
};

/**
 * struct canchar_counts - counters of a device since it appeared
 * @rx_frames: frames received
 * @rx_overruns: times that the FIFO was full
 * @tx_frames: frames sent
 * @tx_aborted: frames that were in the controller when it stopped
 * @interrupts: handled
 * @error_frames: made
 * @bus_off: times
 * @restarts: times
 */
struct canchar_counts {
	u64 rx_frames, rx_overruns, tx_frames, tx_aborted;
	u64 interrupts, error_frames, bus_off, restarts;
};

/**
 * struct canchar_device - a controller and its device file
 * @dev: the device model's part
 * @cdev: the device file
 * @ops: its operations
 * @board: the board's name
 * @chip: the chip's own data
 * @number: of /dev/canchar0
 * @mutex: starting, stopping, bit timing; taken before the lock
 * @timing: bit timing
 * @restart: the start after bus-off
 * @lingered_at: number of sent frames when close(2) last waited in vain
 * @lingered: lingered_at is valid
 * @lock: raw, with interrupts off
 * @running: on the bus, or off by errors
 * @live: running, and the chip may be accessed
 * @sends: live, neither bus-off nor listen-only
 * @recovering: started again after bus-off
 * @gone: the board was removed
 * @masked: a caller polls the chip, and none sleeps
 * @polled: since the watchdog last ran
 * @watchdog: the chip is masked, or senders wait for a retry
 * @tx_armed: an interrupt was requested for the free transmit buffer
 * @state: the state
 * @files: all open files
 * @file_count: open files
 * @rule_count: filters of all files
 * @senders: files with frames to send, by priority
 * @in_flight: a frame is in the controller
 * @in_flight_flags: its file's CANCHAR_ECHO and CANCHAR_ECHO_OWN
 * @in_flight_of: its file; NULL when the file was closed
 * @in_flight_frame: the frame
 * @counts: counters
 */
struct canchar_device {
	struct device dev;
	struct cdev cdev;
	const struct canchar_chip_ops *ops;
	const char *board;
	void *chip;
	int number;

	/* Starting, stopping, bit timing; taken before the lock. */
	struct mutex mutex;
	struct canchar_timing timing;
	struct delayed_work restart;
	/* close(2) found this number of sent frames when it last waited in vain. */
	u64 lingered_at;
	bool lingered;

	/* Chip registers and all below; taken in the interrupt handler. */
	raw_spinlock_t lock;
	bool running;
	bool live;
	bool sends;
	bool recovering;
	bool gone;
	bool masked;
	bool polled;
	struct hrtimer watchdog;
	bool tx_armed;
	enum canchar_state state;
	struct list_head files;
	unsigned int file_count;
	unsigned int rule_count;
	struct list_head senders[CANCHAR_PRIORITIES];
	/* The frame in the controller, and its file; NULL when the file was closed. */
	bool in_flight;
	u32 in_flight_flags;
	struct canchar_file *in_flight_of;
	struct canchar_frame in_flight_frame;
	struct canchar_counts counts;
};

/**
 * struct canchar_filter_set - the filters of a file
 * @count: how many
 * @error_mask: accepted classes of error frames
 * @needed: how many must match
 * @rules: the filters
 * @rules.id: identifier
 * @rules.mask: bits that count
 * @rules.different: matches when they differ
 */
struct canchar_filter_set {
	u32 count;
	u32 error_mask;
	u32 needed;
	struct canchar_filter_rule {
		u32 id, mask;
		bool different;
	} rules[];
};

/**
 * struct canchar_file - an open file
 * @dev: the device
 * @node: in dev->files
 * @sender: in dev->senders while frames wait
 * @rx: the producer's side is under the lock
 * @tx: the consumer's side is under the lock
 * @overwrite: CANCHAR_OVERWRITE
 * @fresh: frames arrived since the last wake-up
 * @frame_flags: CANCHAR_ECHO, CANCHAR_ECHO_OWN
 * @priority: of its frames
 * @wake_at: frames that wake the reader
 * @poll_at: frames that wake poll(2)
 * @lost_before: since the last frame put
 * @tx_waiters: writers that sleep
 * @tx_polled: poll(2) found the transmit queue full
 * @rx_frames: frames received
 * @rx_lost: frames that found no room, or were overwritten
 * @tx_frames: frames sent
 * @tx_lost: frames discarded
 * @filters: NULL: all but error frames
 * @read_mutex: one reader at a time
 * @write_mutex: one writer at a time; both are held to change options
 * @options: as the process set them
 * @map_mutex: taken within the mmap lock, so nothing that faults may be under it
 * @map: the memory of both rings
 * @mapped: also under the lock
 * @reader: who sleeps for frames
 * @writer: who sleeps for room
 * @pollers: poll(2) and epoll
 * @wake_pollers: wakes them outside of the lock
 *
 * All but what the comments among the fields name is under the device's lock.
 */
struct canchar_file {
	struct canchar_device *dev;
	struct list_head node;
	struct list_head sender;

	struct canchar_ring_end rx;
	struct canchar_ring_end tx;
	bool overwrite;
	bool fresh;
	u32 frame_flags;
	u32 priority;
	u32 wake_at;
	u32 poll_at;
	u32 lost_before;
	u32 tx_waiters;
	bool tx_polled;
	u64 rx_frames, rx_lost, tx_frames, tx_lost;
	struct canchar_filter_set *filters;

	/* One reader and one writer at a time; both before options are changed. */
	struct mutex read_mutex, write_mutex;
	struct canchar_options options;

	/* Taken within the mmap lock, so nothing that faults may be under it. */
	struct mutex map_mutex;
	void *map;
	bool mapped;

	struct rcuwait reader, writer;
	wait_queue_head_t pollers;
	struct irq_work wake_pollers;
};

/* Why frames cannot move: 0, -ENETDOWN or -ENODEV. */
static inline int canchar_trouble(const struct canchar_device *dev)
{
	if (likely(READ_ONCE(dev->running)))
		return 0;
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

/* After live has changed, too. With the lock held. */
static inline void canchar_set_state(struct canchar_device *dev, enum canchar_state state)
{
	WRITE_ONCE(dev->state, state);
	dev->sends = dev->live && state != CANCHAR_BUS_OFF &&
		     !(dev->timing.flags & CANCHAR_LISTEN_ONLY);
}

/* Whether a process may send it. */
static inline bool canchar_frame_valid(const struct canchar_frame *frame)
{
	u32 id = frame->can_id;

	if (frame->len > CAN_MAX_DLEN || frame->flags || (id & CAN_ERR_FLAG))
		return false;
	return (id & CAN_EFF_FLAG) || !(id & CAN_EFF_MASK & ~CAN_SFF_MASK);
}

/* core.c */
irqreturn_t canchar_interrupt(int irq, void *data);

/**
 * canchar_poll_chip() - what the interrupt handler does, without an interrupt; with the lock held
 * @dev: the device
 */
void canchar_poll_chip(struct canchar_device *dev);

/**
 * canchar_mask() - the chip is about to be polled: no interrupts of frames, unless a caller
 *	sleeps for it; with the lock held
 * @dev: the device
 */
void canchar_mask(struct canchar_device *dev);

/**
 * canchar_unmask() - a caller is about to sleep: allows interrupts again; not with the lock held
 * @dev: the device
 */
void canchar_unmask(struct canchar_device *dev);

/**
 * canchar_echo() - gives the frame that was sent to the files that requested its echo; with the
 *	lock held
 * @dev: the device
 */
void canchar_echo(struct canchar_device *dev);

/**
 * canchar_error_frame() - makes an error frame for the files that want it; with the lock held
 * @dev: the device
 * @class: class of linux/can/error.h
 * @control: data[1]: which counter, as in linux/can/error.h
 * @standing: state and error counters of the controller
 */
void canchar_error_frame(struct canchar_device *dev, u32 class, u8 control,
			 const struct canchar_standing *standing);

/**
 * canchar_wake_everybody() - wakes all that wait for frames, for room or for a change; with the
 *	lock held
 * @dev: the device
 */
void canchar_wake_everybody(struct canchar_device *dev);

/**
 * canchar_recovered() - the controller is on the bus again after bus-off; with the lock held
 * @dev: the device
 * @standing: state and error counters of the controller
 */
void canchar_recovered(struct canchar_device *dev, const struct canchar_standing *standing);

/**
 * canchar_watch() - starts the watchdog, unless it runs; with the lock held
 * @dev: the device
 */
void canchar_watch(struct canchar_device *dev);

/**
 * canchar_watchdog() - unmasks a chip that nobody polls, and feeds senders whose turn failed
 * @timer: the timer
 *
 * Return: whether it runs again
 */
enum hrtimer_restart canchar_watchdog(struct hrtimer *timer);

/* send.c */

/**
 * canchar_feed() - gives the controller the next frame if it can take it; with the lock held
 * @dev: the device
 */
void canchar_feed(struct canchar_device *dev);

/**
 * canchar_push() - sends what was put into the transmit ring; with the lock held
 * @file: the open file
 */
void canchar_push(struct canchar_file *file);

/**
 * canchar_send_at_once() - sends a frame past its file's queue, which is empty; with the lock
 *	held
 * @file: the open file
 * @frame: the frame
 *
 * Return: false when it must be queued
 */
bool canchar_send_at_once(struct canchar_file *file, const struct canchar_frame *frame);

/**
 * canchar_all_sent() - whether all frames of a file have left the controller; with the lock held
 * @file: the open file
 *
 * Return: true or false
 */
bool canchar_all_sent(const struct canchar_file *file);

/**
 * canchar_abort_in_flight() - the frame in the controller will not leave it; with the lock held
 * @dev: the device
 */
void canchar_abort_in_flight(struct canchar_device *dev);

/**
 * canchar_stop_sending() - discards what waits, except in mapped rings; with the lock held
 * @dev: the device
 */
void canchar_stop_sending(struct canchar_device *dev);

/**
 * canchar_forget_file() - removes all pointers to a file that is being closed; with the lock held
 * @file: the open file
 */
void canchar_forget_file(struct canchar_file *file);

/* device.c */
struct canchar_device *canchar_alloc(struct device *parent, const char *board,
				     const struct canchar_chip_ops *ops, void *chip);

/**
 * canchar_register() - makes the device file
 * @dev: the device
 *
 * Return: 0 or an error
 */
int canchar_register(struct canchar_device *dev);
void canchar_unregister(struct canchar_device *dev);

/**
 * canchar_start() - goes on the bus, or again after bus-off
 * @dev: the device
 *
 * Return: 0, -ENODEV, or the chip's error
 */
int canchar_start(struct canchar_device *dev);

/**
 * canchar_stop() - leaves the bus; waiting frames are discarded
 * @dev: the device
 *
 * Return: 0 or -ENODEV
 */
int canchar_stop(struct canchar_device *dev);

/**
 * canchar_set_timing() - sets the bit timing, and fills in what is 0 in it
 * @dev: the device
 * @timing: bit timing
 *
 * Return: 0, -EINVAL, -EBUSY while it runs, or -ENODEV
 */
int canchar_set_timing(struct canchar_device *dev, struct canchar_timing *timing);

/**
 * canchar_devices_init() - reserves device numbers, registers the class
 *
 * Return: 0 or an error
 */
int canchar_devices_init(void);

/**
 * canchar_devices_exit() - undoes canchar_devices_init()
 */
void canchar_devices_exit(void);

/* sysfs.c */
extern const struct attribute_group *canchar_groups[];

/* queue.c */

/**
 * canchar_rings_alloc() - gives a file new empty rings; with its map mutex
 * @file: the open file
 * @rx_slots: of the receive ring, a power of two
 * @tx_slots: of the transmit ring, a power of two
 *
 * Return: 0 or -ENOMEM
 */
int canchar_rings_alloc(struct canchar_file *file, u32 rx_slots, u32 tx_slots);

/**
 * canchar_rings_free() - frees rings and filters of a file that nobody uses
 * @file: the open file
 */
void canchar_rings_free(struct canchar_file *file);

/**
 * canchar_filters_set() - replaces the filters of a file
 * @file: the open file
 * @from: as process gave them
 *
 * Return: 0, -EINVAL, -ENOMEM, -EFAULT, or -ENOSPC
 */
int canchar_filters_set(struct canchar_file *file, const struct canchar_filters *from);

/**
 * canchar_filters_pass() - whether a frame passes
 * @set: the filters
 * @can_id: identifier and flags
 *
 * Return: true or false
 */
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

/**
 * canchar_queue_get() - takes the next received frame; one reader at a time
 * @file: the open file
 * @frame: the frame
 *
 * Return: false when there is none
 */
bool canchar_queue_get(struct canchar_file *file, struct canchar_frame *frame);

/* file.c */
extern const struct file_operations canchar_fops;
long canchar_wait_frames(struct canchar_file *file, u32 min, u64 timeout_ns);

/**
 * canchar_wait_sent() - waits until all frames of the file were on the bus; with its write mutex
 * @file: the open file
 * @timeout_ns: 0: not at all, CANCHAR_FOREVER
 *
 * Return: 0, -ETIME, -EINTR, -ERESTARTSYS, -ENETDOWN, -ENODEV, or -EOPNOTSUPP
 */
int canchar_wait_sent(struct canchar_file *file, u64 timeout_ns);

/**
 * canchar_look() - polls a chip that is masked; with the read mutex, which keeps the ring
 * @file: the open file
 *
 * Return: the number of waiting frames
 */
u32 canchar_look(struct canchar_file *file);

/**
 * canchar_look_locked() - as canchar_look(), beside a reader: takes the lock, not the mutex
 * @file: the open file
 *
 * Return: the number of waiting frames
 */
u32 canchar_look_locked(struct canchar_file *file);

/**
 * canchar_deadline() - when a wait ends
 * @timeout_ns: 0: not at all, CANCHAR_FOREVER
 *
 * Return: ns of CLOCK_MONOTONIC, KTIME_MAX for never
 */
u64 canchar_deadline(u64 timeout_ns);

/**
 * canchar_interrupted() - what a wait answers to a signal
 * @timeout_ns: 0: not at all, CANCHAR_FOREVER
 *
 * Return: -ERESTARTSYS without a timeout, otherwise -EINTR
 */
int canchar_interrupted(u64 timeout_ns);

/* ioctl.c */

/**
 * canchar_ioctl() - the ioctls of uapi/canchar.h
 * @filp: the file
 * @command: the request
 * @argument: its argument, an address
 *
 * Return: as the header says
 */
long canchar_ioctl(struct file *filp, unsigned int command, unsigned long argument);

/* boards */

/**
 * canchar_virtual_init() - makes the virtual devices of the module parameter, not yet visible
 *
 * Return: 0 or an error
 */
int canchar_virtual_init(void);

/**
 * canchar_virtual_expose() - makes the virtual devices visible; the module must not fail to load
 *	after it
 */
void canchar_virtual_expose(void);

/**
 * canchar_virtual_exit() - removes the virtual devices
 */
void canchar_virtual_exit(void);

/**
 * canchar_kvaser_init() - registers the driver of Kvaser PCIcan
 *
 * Return: 0 or an error
 */
int canchar_kvaser_init(void);

/**
 * canchar_kvaser_exit() - unregisters the driver of Kvaser PCIcan
 */
void canchar_kvaser_exit(void);

#endif
