/* SPDX-License-Identifier: GPL-2.0-only */
/* A controller made of memory: the same core without hardware. */
#ifndef CANCHAR_CHIP_VIRTUAL_H
#define CANCHAR_CHIP_VIRTUAL_H

#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/spinlock.h>

#include "canchar.h"

/* Frames that it holds until they are read, like a FIFO of hardware. */
#define CANCHAR_VIRTUAL_FIFO	64

struct canchar_virtual_bus;

/**
 * struct canchar_virtual - a controller made of memory
 * @dev: its device
 * @bus: the bus
 * @interrupt: its interrupt
 * @wire: end of the frame on the wire
 * @lock: inside any device's lock: a sender takes the receivers' lock
 * @fifo: received frames
 * @head: the producer's index
 * @tail: the consumer's index
 * @events: CANCHAR_EVENT_* but RX, until read
 * @listening: on the bus
 * @broken: its next start fails
 * @busy: on_wire is on its way
 * @on_wire: the frame that is being sent
 * @standing: what the controller reports
 */
struct canchar_virtual {
	struct canchar_device *dev;
	struct canchar_virtual_bus *bus;
	struct irq_work interrupt;
	struct hrtimer wire;

	/* Inside any device's lock: a sender takes the receivers' lock. */
	raw_spinlock_t lock;
	struct canchar_frame fifo[CANCHAR_VIRTUAL_FIFO];
	unsigned int head, tail;
	unsigned int events;
	bool listening;
	bool broken;
	bool busy;
	struct canchar_frame on_wire;
	struct canchar_standing standing;
};

/**
 * struct canchar_virtual_bus - the bus of all of them
 * @count: how many
 * @chips: all of them
 */
struct canchar_virtual_bus {
	unsigned int count;
	struct canchar_virtual *chips;
};

extern const struct canchar_chip_ops canchar_virtual_ops;

/**
 * canchar_virtual_setup() - puts a controller on the bus in memory
 * @chip: the chip
 * @bus: the bus
 */
void canchar_virtual_setup(struct canchar_virtual *chip, struct canchar_virtual_bus *bus);

/**
 * canchar_virtual_quiet() - after canchar_unregister(): none of its code runs any more
 * @chip: the chip
 */
void canchar_virtual_quiet(struct canchar_virtual *chip);

/**
 * canchar_virtual_report() - lets the controller report a state
 * @chip: the chip
 * @state: the state
 */
void canchar_virtual_report(struct canchar_virtual *chip, enum canchar_state state);

/**
 * canchar_virtual_break() - lets starts fail with -EIO, as those of a chip that does not leave
 *	reset mode
 * @chip: the chip
 * @broken: whether it fails
 */
void canchar_virtual_break(struct canchar_virtual *chip, bool broken);

#endif
