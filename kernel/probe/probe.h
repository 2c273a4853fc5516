/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of canprobe know of each other.
 *
 *	main.c		cards, which come and go, and the file
 *	instrument.c	timer, interrupt handlers, records: what is measured by
 */
#ifndef CANPROBE_H
#define CANPROBE_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/types.h>

#include "../canchar/chip_sja1000.h"
#include "../uapi/canprobe.h"

/* Records of one side that wait to be read; a power of two. */
#define CANPROBE_RECORDS	16384

/* One producer, which never waits, and one reader. */
struct canprobe_ring {
	struct canprobe_record *records;
	u32 head, tail;
	u32 lost;
};

struct canprobe_card {
	struct sja1000 chip;
	unsigned long s5920;
};

struct canprobe {
	/* The first sends, the second receives. */
	struct canprobe_card cards[2];
	struct hrtimer timer;
	struct canprobe_plan plan;
	bool running;
	u32 sent;			/* of this plan */
	u32 sent_all, late, overruns;
	struct canprobe_ring rings[2];	/* by side */
	/* The floor. */
	struct hrtimer floor_timer;
	bool floor_armed;
	u64 floor_began_ns, floor_ns;
};

void canprobe_instrument_init(struct canprobe *probe);
int canprobe_start(struct canprobe *probe, const struct canprobe_plan *plan);
void canprobe_stop(struct canprobe *probe);
int canprobe_floor(struct canprobe *probe);
irqreturn_t canprobe_received(int irq, void *data);
irqreturn_t canprobe_floor_reached(int irq, void *data);
void canprobe_rings_reset(struct canprobe *probe);
bool canprobe_read(struct canprobe *probe, struct canprobe_record *record);

#endif
