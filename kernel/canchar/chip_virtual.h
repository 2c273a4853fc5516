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

/*
 * Without a bit rate: frames of a queue that go one after the other, each in the interrupt that the
 * last one raised. More than two queues of the usual size.
 */
#define CANCHAR_VIRTUAL_ROW	160
/* The longest rest after them. */
#define CANCHAR_VIRTUAL_REST_NS	(4 * NSEC_PER_MSEC)

struct canchar_virtual_bus;

struct canchar_virtual {
	struct canchar_device *dev;
	struct canchar_virtual_bus *bus;
	struct irq_work interrupt;
	struct hrtimer wire;	/* end of the frame on the wire, or of a rest */

	/* Inside any device's lock: a sender takes the receivers' lock. */
	raw_spinlock_t lock;
	struct canchar_frame fifo[CANCHAR_VIRTUAL_FIFO];
	unsigned int head, tail;
	unsigned int events;	/* CANCHAR_EVENT_* but RX, until read */
	bool listening;		/* on the bus */
	bool broken;		/* starts fail */
	bool busy;		/* on_wire is on its way */
	ktime_t ends;		/* of on_wire */
	bool resting;		/* the next frame of the queue waits for the timer */
	unsigned int in_a_row;	/* frames since the queue was last empty, or the last rest */
	ktime_t row_began;
	struct canchar_frame on_wire;
	struct canchar_standing standing;
};

/* The bus of all virtual controllers. */
struct canchar_virtual_bus {
	unsigned int count;
	struct canchar_virtual *chips;
};

extern const struct canchar_chip_ops canchar_virtual_ops;

void canchar_virtual_setup(struct canchar_virtual *chip, struct canchar_virtual_bus *bus);

/* After canchar_unregister(): when this returns, none of the controller's code runs any more. */
void canchar_virtual_quiet(struct canchar_virtual *chip);

/* Lets the controller report a state. */
void canchar_virtual_report(struct canchar_virtual *chip, enum canchar_state state);

/* Lets starts fail with -EIO, as those of a chip that does not leave reset mode. */
void canchar_virtual_break(struct canchar_virtual *chip, bool broken);

#endif
