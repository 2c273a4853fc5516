// SPDX-License-Identifier: GPL-2.0-only
/* The SJA1000 in PeliCAN mode (Philips data sheet of 2000-01-04). */

#include "canchar.h"
#include "chip_sja1000_hot.h"

/* Always enabled; the transmit interrupt only when a sender waits. */
#define SJA1000_IER_ALWAYS	(SJA1000_IR_RX | SJA1000_IR_WARNING | SJA1000_IR_OVERRUN | \
				 SJA1000_IR_PASSIVE)

/* ------------------------------------------------------ start and stop -- */

static int canchar_sja1000_start(struct canchar_device *dev)
{
	struct sja1000 *chip = dev->chip;
	int err = canchar_sja1000_begin(chip, &dev->timing);

	if (err)
		return err;
	chip->ier = SJA1000_IER_ALWAYS;
	chip->status = sja1000_in(chip, SJA1000_SR) & SJA1000_SR_TROUBLE;
	chip->latched = false;
	return 0;
}

static void canchar_sja1000_silence(struct canchar_device *dev)
{
	struct sja1000 *chip = dev->chip;

	sja1000_out(chip, SJA1000_IER, 0);
	sja1000_in(chip, SJA1000_IR);	/* on QEMU only this clears the line */
}

static void canchar_sja1000_stop(struct canchar_device *dev)
{
	canchar_sja1000_quiet(dev->chip);
}

/* ------------------------------------------------------------- events -- */

/* Reading IR clears it: what look cannot see in SR is kept. */
static bool canchar_sja1000_acknowledge(struct canchar_device *dev)
{
	struct sja1000 *chip = dev->chip;
	u8 cause = sja1000_in(chip, SJA1000_IR);

	if (!(cause & SJA1000_IR_STATE))
		return false;
	chip->latched = true;
	return true;
}

static void canchar_sja1000_mask(struct canchar_device *dev, bool masked)
{
	struct sja1000 *chip = dev->chip;

	chip->masked = masked;
	sja1000_write_ier(chip);
	if (masked)
		canchar_sja1000_acknowledge(dev);	/* on QEMU only this clears the line */
}

static void canchar_sja1000_standing(struct canchar_device *dev, struct canchar_standing *standing)
{
	const struct sja1000 *chip = dev->chip;
	u8 most, status = sja1000_in(chip, SJA1000_SR);

	standing->rx_errors = sja1000_in(chip, SJA1000_RXERR);
	standing->tx_errors = sja1000_in(chip, SJA1000_TXERR);
	most = max(standing->rx_errors, standing->tx_errors);
	if (status & SJA1000_SR_BUS_OFF)
		standing->state = CANCHAR_BUS_OFF;
	else if (most >= 128)
		standing->state = CANCHAR_ERROR_PASSIVE;
	else if (most >= 96 || status & SJA1000_SR_ERROR)
		standing->state = CANCHAR_ERROR_WARNING;
	else
		standing->state = CANCHAR_ERROR_ACTIVE;
}

const struct canchar_chip_ops canchar_sja1000_ops = {
	.name = "sja1000",
	.clock_hz = SJA1000_CLOCK_HZ,
	.calculate = canchar_sja1000_calculate,
	.silence = canchar_sja1000_silence,
	.start = canchar_sja1000_start,
	.stop = canchar_sja1000_stop,
	.events = sja1000_events,
	.look = sja1000_look,
	.receive = sja1000_receive,
	.tx_free = sja1000_tx_free,
	.tx_interrupt = sja1000_tx_interrupt,
	.send = sja1000_send,
	.mask = canchar_sja1000_mask,
	.acknowledge = canchar_sja1000_acknowledge,
	.standing = canchar_sja1000_standing,
};
