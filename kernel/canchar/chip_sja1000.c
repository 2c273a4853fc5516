// SPDX-License-Identifier: GPL-2.0-only
/* The SJA1000 in PeliCAN mode (Philips data sheet of 2000-01-04). */

#include <linux/delay.h>
#include <linux/math.h>

#include "canchar.h"
#include "chip_sja1000.h"

#define SJA1000_CLOCK_HZ	8000000		/* a crystal of 16 MHz, halved */
/* Wanted always; the transmit interrupt only when somebody waits. */
#define SJA1000_IER_ALWAYS	(SJA1000_IR_RX | SJA1000_IR_WARNING | SJA1000_IR_OVERRUN | \
				 SJA1000_IR_PASSIVE)
#define SJA1000_SR_TROUBLE	(SJA1000_SR_ERROR | SJA1000_SR_BUS_OFF)

/* --------------------------------------------------------- bit timing -- */

/* CiA 301: later sample points for slower buses. */
static u32 usual_sample_point(u32 bitrate)
{
	return bitrate > 800000 ? 750 : bitrate > 500000 ? 800 : 875;
}

static bool timing_possible(const struct canchar_timing *timing)
{
	return timing->brp >= 1 && timing->brp <= 64 && timing->tseg1 >= 2 &&
	       timing->tseg1 <= 16 && timing->tseg2 >= 1 && timing->tseg2 <= 8 &&
	       timing->sjw >= 1 && timing->sjw <= 4 && timing->sjw <= timing->tseg2;
}

/* The exact divisor with the best sample point, of those the longest bit. */
static int sja1000_calculate(struct canchar_timing *timing)
{
	u32 best = U32_MAX, quanta, wish = timing->sample_point;

	timing->sjw = timing->sjw ?: 1;
	if (timing->brp) {
		if (!timing_possible(timing))
			return -EINVAL;
		quanta = 1 + timing->tseg1 + timing->tseg2;
		timing->bitrate = SJA1000_CLOCK_HZ / (timing->brp * quanta);
		timing->sample_point = 1000 * (1 + timing->tseg1) / quanta;
		return 0;
	}
	if (!timing->bitrate || timing->bitrate > 1000000)
		return -EINVAL;
	wish = wish ?: usual_sample_point(timing->bitrate);
	for (quanta = 25; quanta >= 4; quanta--) {
		struct canchar_timing trial = *timing;
		u32 distance;

		trial.brp = SJA1000_CLOCK_HZ / (timing->bitrate * quanta);
		if (!trial.brp || trial.brp * quanta * timing->bitrate != SJA1000_CLOCK_HZ)
			continue;
		trial.tseg2 = clamp_t(u32, quanta - quanta * wish / 1000, 1, 8);
		trial.tseg1 = quanta - 1 - trial.tseg2;
		trial.sample_point = 1000 * (1 + trial.tseg1) / quanta;
		distance = max(trial.sample_point, wish) - min(trial.sample_point, wish);
		if (timing_possible(&trial) && distance < best) {
			best = distance;
			*timing = trial;
		}
	}
	return best == U32_MAX ? -EINVAL : 0;
}

/* ------------------------------------------------------ start and stop -- */

static bool set_mode(const struct sja1000 *chip, u8 mode)
{
	int tries;

	/* Out of reset it waits for 11 recessive bits, and MOD says so at once. */
	for (tries = 0; tries < 100; tries++) {
		sja1000_out(chip, SJA1000_MOD, mode);
		if ((sja1000_in(chip, SJA1000_MOD) & SJA1000_MOD_RESET) ==
		    (mode & SJA1000_MOD_RESET))
			return true;
		udelay(1);
	}
	return false;
}

static void write_ier(struct sja1000 *chip)
{
	sja1000_out(chip, SJA1000_IER, chip->masked ? 0 : chip->ier);
}

void canchar_sja1000_quiet(struct sja1000 *chip)
{
	sja1000_out(chip, SJA1000_IER, 0);
	set_mode(chip, SJA1000_MOD_RESET);
	sja1000_out(chip, SJA1000_CDR, chip->cdr | SJA1000_CDR_PELICAN);
	sja1000_in(chip, SJA1000_IR);
}

static int sja1000_start(struct canchar_device *dev)
{
	const struct canchar_timing *timing = &dev->timing;
	struct sja1000 *chip = dev->chip;
	bool listen_only = timing->flags & CANCHAR_LISTEN_ONLY;
	unsigned int i;

	if (!timing->brp)
		return -EINVAL;
	canchar_sja1000_quiet(chip);
	/* All frames pass. Two filters, not one: QEMU gets the single one wrong. */
	for (i = 0; i < 4; i++) {
		sja1000_out(chip, SJA1000_ACC0 + i, 0x00);
		sja1000_out(chip, SJA1000_ACM0 + i, 0xff);
	}
	sja1000_out(chip, SJA1000_BTR0, (timing->sjw - 1) << 6 | (timing->brp - 1));
	sja1000_out(chip, SJA1000_BTR1, (timing->tseg2 - 1) << 4 | (timing->tseg1 - 1));
	sja1000_out(chip, SJA1000_OCR, chip->ocr);
	sja1000_out(chip, SJA1000_TXERR, 0);
	sja1000_out(chip, SJA1000_RXERR, 0);
	chip->ier = SJA1000_IER_ALWAYS;
	chip->status = 0;
	chip->masked = false;
	if (!set_mode(chip, listen_only ? SJA1000_MOD_LISTEN_ONLY : 0))
		return -EIO;
	/* What an emulated FIFO kept through the reset is of another time. */
	for (i = 0; i < 64 && sja1000_in(chip, SJA1000_SR) & SJA1000_SR_RX; i++)
		sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_RELEASE);
	sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_CLEAR);
	write_ier(chip);
	return 0;
}

static void sja1000_stop(struct canchar_device *dev)
{
	canchar_sja1000_quiet(dev->chip);
}

/* ------------------------------------------------------------- events -- */

static unsigned int sja1000_events(struct canchar_device *dev)
{
	struct sja1000 *chip = dev->chip;
	unsigned int events = 0;
	u8 cause = sja1000_in(chip, SJA1000_IR);

	if (unlikely(cause == 0xff) && sja1000_in(chip, SJA1000_MOD) == 0xff)
		return CANCHAR_EVENT_GONE;
	if (cause & SJA1000_IR_RX)
		events |= CANCHAR_EVENT_RX;
	/* It is latched whether wanted or not. */
	if (cause & SJA1000_IR_TX && dev->tx_armed)
		events |= CANCHAR_EVENT_TX;
	if (unlikely(cause & SJA1000_IR_OVERRUN)) {
		sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_CLEAR);
		events |= CANCHAR_EVENT_OVERRUN;
	}
	if (unlikely(cause & (SJA1000_IR_WARNING | SJA1000_IR_PASSIVE)))
		events |= CANCHAR_EVENT_STATE;
	return events;
}

/* Masked, IR need not latch anything: the status alone. */
static unsigned int sja1000_look(struct canchar_device *dev)
{
	struct sja1000 *chip = dev->chip;
	unsigned int events = 0;
	u8 status = sja1000_in(chip, SJA1000_SR);

	if (status & SJA1000_SR_RX)
		events |= CANCHAR_EVENT_RX;
	if (likely(!((status ^ chip->status) & SJA1000_SR_TROUBLE) &&
		   !(status & SJA1000_SR_OVERRUN)))
		return events;
	if (status == 0xff && sja1000_in(chip, SJA1000_MOD) == 0xff)
		return CANCHAR_EVENT_GONE;
	if (status & SJA1000_SR_OVERRUN) {
		sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_CLEAR);
		events |= CANCHAR_EVENT_OVERRUN;
	}
	if ((status ^ chip->status) & SJA1000_SR_TROUBLE)
		events |= CANCHAR_EVENT_STATE;
	chip->status = status & SJA1000_SR_TROUBLE;
	return events;
}

static bool sja1000_receive(struct canchar_device *dev, struct canchar_frame *frame)
{
	const struct sja1000 *chip = dev->chip;

	if (!(sja1000_in(chip, SJA1000_SR) & SJA1000_SR_RX))
		return false;
	sja1000_read_frame(chip, frame);
	return true;
}

static bool sja1000_tx_free(struct canchar_device *dev)
{
	return sja1000_in(dev->chip, SJA1000_SR) & SJA1000_SR_TX_FREE;
}

static void sja1000_tx_interrupt(struct canchar_device *dev, bool wanted)
{
	struct sja1000 *chip = dev->chip;

	chip->ier = wanted ? chip->ier | SJA1000_IR_TX : chip->ier & ~SJA1000_IR_TX;
	write_ier(chip);
}

static void sja1000_send(struct canchar_device *dev, const struct canchar_frame *frame)
{
	sja1000_write_frame(dev->chip, frame);
}

static void sja1000_mask(struct canchar_device *dev, bool masked)
{
	struct sja1000 *chip = dev->chip;

	chip->masked = masked;
	write_ier(chip);
	if (masked)
		sja1000_in(chip, SJA1000_IR);	/* an emulated line falls only by this */
}

static void sja1000_standing(struct canchar_device *dev, struct canchar_standing *standing)
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
	.calculate = sja1000_calculate,
	.start = sja1000_start,
	.stop = sja1000_stop,
	.events = sja1000_events,
	.look = sja1000_look,
	.receive = sja1000_receive,
	.tx_free = sja1000_tx_free,
	.tx_interrupt = sja1000_tx_interrupt,
	.send = sja1000_send,
	.mask = sja1000_mask,
	.standing = sja1000_standing,
};
