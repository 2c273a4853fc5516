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

/**
 * struct canprobe_ring - one producer, which never waits, and one reader
 * @records: the memory
 * @head: the producer's index
 * @tail: the consumer's index
 * @lost: records that found no room
 */
struct canprobe_ring {
	struct canprobe_record *records;
	u32 head, tail;
	u32 lost;
};

/**
 * struct canprobe - the instrument
 * @pair: the cards: the first sends, the second receives
 * @timer: of the plan
 * @plan: what is sent
 * @running: frames remain to be sent
 * @sent: of this plan
 * @sent_all: frames of all plans
 * @late: frames that waited for the transmit buffer
 * @overruns: of the receiving FIFO
 * @rings: by side
 * @floor_timer: of the floor
 * @floor_armed: an interrupt for the floor is on its way
 * @floor_began_ns: when it was caused
 * @floor_ns: the floor
 * @watched: the interrupt line whose handlers are stamped; 0: none
 * @handler_began_ns: when the handler began
 */
struct canprobe {
	/* The first sends, the second receives. */
	struct card_pair pair;
	struct hrtimer timer;
	struct canprobe_plan plan;
	bool running;
	u32 sent;
	u32 sent_all, late, overruns;
	struct canprobe_ring rings[CANPROBE_SIDES];
	/* The floor. */
	struct hrtimer floor_timer;
	bool floor_armed;
	u64 floor_began_ns, floor_ns;
	/* The interrupt line whose handlers are stamped; 0: none. */
	int watched;
	u64 handler_began_ns;
};

/**
 * canprobe_instrument_init() - sets up timers and rings
 * @probe: the instrument
 */
void canprobe_instrument_init(struct canprobe *probe);

/**
 * canprobe_start() - starts a plan; with the pair's lock
 * @probe: the instrument
 * @plan: what to send and when
 *
 * Return: 0, -EINVAL, -EBUSY, -ENODEV, or -EIO
 */
int canprobe_start(struct canprobe *probe, const struct canprobe_plan *plan);

/**
 * canprobe_stop() - ends the plan; with the pair's lock
 * @probe: the instrument
 */
void canprobe_stop(struct canprobe *probe);

/**
 * canprobe_floor() - measures the floor; with the pair's lock
 * @probe: the instrument
 *
 * Return: 0, -EAGAIN, -EBUSY, or -ENODEV
 */
int canprobe_floor(struct canprobe *probe);

/**
 * canprobe_received() - the handler of the receiving card
 * @irq: the line
 * @data: what the line was requested with
 *
 * Return: IRQ_HANDLED or IRQ_NONE
 */
irqreturn_t canprobe_received(int irq, void *data);

/**
 * canprobe_floor_reached() - the handler of the sending card, for the floor
 * @irq: the line
 * @data: what the line was requested with
 *
 * Return: IRQ_HANDLED or IRQ_NONE
 */
irqreturn_t canprobe_floor_reached(int irq, void *data);

/**
 * canprobe_watch() - records how long the handlers of a line run
 * @probe: the instrument
 * @line: the interrupt line, 0 for none
 *
 * Return: 0 or -EOPNOTSUPP
 */
int canprobe_watch(struct canprobe *probe, u32 line);

/**
 * canprobe_watch_end() - records no handlers any more
 * @probe: the instrument
 */
void canprobe_watch_end(struct canprobe *probe);

/**
 * canprobe_put() - adds a record, or counts it as lost; one producer
 * @ring: the ring
 * @record: the record
 */
void canprobe_put(struct canprobe_ring *ring, const struct canprobe_record *record);

/**
 * canprobe_rings_reset() - empties the rings while nobody uses them
 * @probe: the instrument
 */
void canprobe_rings_reset(struct canprobe *probe);

/**
 * canprobe_read() - takes the next record; one reader
 * @probe: the instrument
 * @record: the record
 *
 * Return: false when there is none
 */
bool canprobe_read(struct canprobe *probe, struct canprobe_record *record);

#endif
