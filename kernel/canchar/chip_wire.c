// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller of a node of canwire: bit timing, a receive FIFO that overruns, one transmit
 * buffer, arbitration and error states are the wire's. It interrupts in hard interrupt context,
 * with causes that can be enabled one by one.
 */

#include "bit_timing.h"
#include "chip_wire.h"

static_assert(CANWIRE_CAUSE_RX == CANCHAR_EVENT_RX);
static_assert(CANWIRE_CAUSE_TX == CANCHAR_EVENT_TX);
static_assert(CANWIRE_CAUSE_STATE == CANCHAR_EVENT_STATE);
static_assert(CANWIRE_CAUSE_OVERRUN == CANCHAR_EVENT_OVERRUN);
/* An interrupt handler empties the FIFO. */
static_assert(CANWIRE_DRIVER_FIFO_FRAMES_MAX <= CANCHAR_BURST_MAX);

/* --------------------------------------------------------- bit timing -- */

static const struct canchar_timing_limits canchar_wire_limits = {
	.clock_hz = CANWIRE_CLOCK_HZ,
	.brp_max = CANWIRE_BRP_MAX,
	.tseg1_min = CANWIRE_TSEG1_MIN,
	.tseg1_max = CANWIRE_TSEG1_MAX,
	.tseg2_min = CANWIRE_TSEG2_MIN,
	.tseg2_max = CANWIRE_TSEG2_MAX,
	.sjw_max = CANWIRE_SJW_MAX,
};

static int canchar_wire_calculate(struct canchar_timing *timing)
{
	int err = canchar_calculate_timing(&canchar_wire_limits, timing);

	return !err && timing->bitrate > 1000000 ? -EINVAL : err;
}

/* ------------------------------------------------------ start and stop -- */

static void canchar_wire_enable(struct canchar_wire *chip)
{
	u8 frames = CANWIRE_CAUSE_RX | CANWIRE_CAUSE_OVERRUN |
		    (chip->tx_wanted ? CANWIRE_CAUSE_TX : 0);

	chip->wire->enable(&chip->driver, CANWIRE_CAUSE_STATE | (chip->masked ? 0 : frames));
}

static int canchar_wire_start(struct canchar_device *dev)
{
	const struct canchar_timing *timing = &dev->timing;
	struct canchar_wire *chip = dev->chip;

	if (!timing->brp)
		return -EINVAL;
	chip->tx_wanted = false;
	chip->wire->start(&chip->driver, timing->brp * (1 + timing->tseg1 + timing->tseg2),
			  timing->flags & CANCHAR_LISTEN_ONLY);
	return 0;
}

static void canchar_wire_silence(struct canchar_device *dev)
{
	struct canchar_wire *chip = dev->chip;

	chip->wire->enable(&chip->driver, 0);
}

static void canchar_wire_stop(struct canchar_device *dev)
{
	struct canchar_wire *chip = dev->chip;

	chip->wire->stop(&chip->driver);
}

/* ------------------------------------------------------------- events -- */

static unsigned int canchar_wire_events(struct canchar_device *dev)
{
	struct canchar_wire *chip = dev->chip;

	return chip->wire->causes(&chip->driver);
}

/* All that interrupts while masked is a change of state, which look finds. */
static bool canchar_wire_acknowledge(struct canchar_device *dev)
{
	return true;
}

static void canchar_wire_mask(struct canchar_device *dev, bool masked)
{
	struct canchar_wire *chip = dev->chip;

	chip->masked = masked;
	canchar_wire_enable(chip);
}

static bool canchar_wire_receive(struct canchar_device *dev, struct canchar_frame *frame)
{
	struct canchar_wire *chip = dev->chip;
	struct can_frame from;

	if (!chip->wire->receive(&chip->driver, &from))
		return false;
	frame->can_id = from.can_id;
	frame->len = from.len;
	frame->flags = 0;
	frame->lost = 0;
	memcpy(frame->data, from.data, sizeof(frame->data));
	return true;
}

static bool canchar_wire_tx_free(struct canchar_device *dev)
{
	struct canchar_wire *chip = dev->chip;

	return chip->wire->tx_free(&chip->driver);
}

static void canchar_wire_tx_interrupt(struct canchar_device *dev, bool wanted)
{
	struct canchar_wire *chip = dev->chip;

	chip->tx_wanted = wanted;
	canchar_wire_enable(chip);
}

static void canchar_wire_send(struct canchar_device *dev, const struct canchar_frame *frame)
{
	struct canchar_wire *chip = dev->chip;
	struct can_frame to = { .can_id = frame->can_id, .len = frame->len };

	memcpy(to.data, frame->data, sizeof(to.data));
	chip->wire->send(&chip->driver, &to);
}

static void canchar_wire_standing(struct canchar_device *dev, struct canchar_standing *standing)
{
	struct canchar_wire *chip = dev->chip;
	struct canwire_standing now;
	u16 most;

	chip->wire->standing(&chip->driver, &now);
	standing->tx_errors = min_t(u16, now.tx_errors, U8_MAX);
	standing->rx_errors = min_t(u16, now.rx_errors, U8_MAX);
	most = max(now.tx_errors, now.rx_errors);
	standing->state = now.bus_off ? CANCHAR_BUS_OFF :
			  most >= 128 ? CANCHAR_ERROR_PASSIVE :
			  most >= 96 ? CANCHAR_ERROR_WARNING : CANCHAR_ERROR_ACTIVE;
}

const struct canchar_chip_ops canchar_wire_ops = {
	.name = "wire",
	.clock_hz = CANWIRE_CLOCK_HZ,
	.calculate = canchar_wire_calculate,
	.silence = canchar_wire_silence,
	.start = canchar_wire_start,
	.stop = canchar_wire_stop,
	.events = canchar_wire_events,
	.look = canchar_wire_events,
	.receive = canchar_wire_receive,
	.tx_free = canchar_wire_tx_free,
	.tx_interrupt = canchar_wire_tx_interrupt,
	.send = canchar_wire_send,
	.mask = canchar_wire_mask,
	.acknowledge = canchar_wire_acknowledge,
	.standing = canchar_wire_standing,
};
