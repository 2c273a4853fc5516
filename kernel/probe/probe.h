/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interfaces between the parts of canprobe.
 *
 *	main.c		the file
 *	../card_pair.c	cards, which come and go
 *	instrument.c	timer, interrupt handlers, records: what is measured by
 *	handler.c	how long somebody else's handler runs
 */
#ifndef CANPROBE_H
#define CANPROBE_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/types.h>

#include "../card_pair.h"
#include "../uapi/canprobe.h"

/* Records of one side that wait to be read; a power of two. */
#define CANPROBE_RECORDS	16384

#define CANPROBE_SIDES		3

/* A ring with one producer, which never waits, and one reader. */
struct canprobe_ring {
	struct canprobe_record *records;
	u32 head, tail;
	u32 lost;	/* records that found no room */
};

struct canprobe {
	/* The first sends, the second receives. */
	struct card_pair pair;
	struct hrtimer timer;	/* of the plan */
	struct canprobe_plan plan;
	bool running;		/* frames remain to be sent */
	u32 sent;		/* of this plan */
	/* Of all plans; late: frames that waited for the transmit buffer. */
	u32 sent_all, late, overruns;
	struct canprobe_ring rings[CANPROBE_SIDES];
	/* The floor. */
	struct hrtimer floor_timer;
	bool floor_armed;	/* an interrupt for the floor is on its way */
	u64 floor_began_ns, floor_ns;
	/* The interrupt line whose handlers are stamped; 0: none. */
	int watched;
	u64 handler_began_ns;
};

void canprobe_instrument_init(struct canprobe *probe);

/* With the pair's lock: 0, -EINVAL, -EBUSY, -ENODEV or -EIO. */
int canprobe_start(struct canprobe *probe, const struct canprobe_plan *plan);
void canprobe_stop(struct canprobe *probe);

/* Measures the floor; with the pair's lock. 0, -EAGAIN, -EBUSY or -ENODEV. */
int canprobe_floor(struct canprobe *probe);

/* The handler of the receiving card. */
irqreturn_t canprobe_received(int irq, void *data);

/* The handler of the sending card, for the floor. */
irqreturn_t canprobe_floor_reached(int irq, void *data);

/* Records how long the handlers of an interrupt line run, 0: of none. 0 or -EOPNOTSUPP. */
int canprobe_watch(struct canprobe *probe, u32 line);
void canprobe_watch_end(struct canprobe *probe);

/* Adds a record, or counts it as lost; one producer. */
void canprobe_put(struct canprobe_ring *ring, const struct canprobe_record *record);

/* Empties the rings while nobody uses them. */
void canprobe_rings_reset(struct canprobe *probe);

/* Takes the next record, false: there is none; one reader. */
bool canprobe_read(struct canprobe *probe, struct canprobe_record *record);

#endif
