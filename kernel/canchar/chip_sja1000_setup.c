// SPDX-License-Identifier: GPL-2.0-only
/*
 * The SJA1000: bit timing, start and stop. It uses no canchar device, and is also compiled into
 * kernel/probe.
 */

#include <linux/delay.h>
#include <linux/math.h>
#include <linux/minmax.h>

#include "chip_sja1000.h"

/* --------------------------------------------------------- bit timing -- */

/* CiA 301: later sample points for slower buses. */
static u32 canchar_sja1000_usual_sample_point(u32 bitrate)
{
	return bitrate > 800000 ? 750 : bitrate > 500000 ? 800 : 875;
}

static bool canchar_sja1000_timing_possible(const struct canchar_timing *timing)
{
	return timing->brp >= 1 && timing->brp <= 64 && timing->tseg1 >= 2 &&
	       timing->tseg1 <= 16 && timing->tseg2 >= 1 && timing->tseg2 <= 8 &&
	       timing->sjw >= 1 && timing->sjw <= 4 && timing->sjw <= timing->tseg2;
}

/* The exact divisor with the best sample point, of those the longest bit. */
int canchar_sja1000_calculate(struct canchar_timing *timing)
{
	u32 best = U32_MAX, quanta, wish = timing->sample_point;

	timing->sjw = timing->sjw ?: 1;
	if (timing->brp) {
		if (!canchar_sja1000_timing_possible(timing))
			return -EINVAL;
		quanta = 1 + timing->tseg1 + timing->tseg2;
		timing->bitrate = SJA1000_CLOCK_HZ / (timing->brp * quanta);
		timing->sample_point = 1000 * (1 + timing->tseg1) / quanta;
		return 0;
	}
	if (!timing->bitrate || timing->bitrate > 1000000)
		return -EINVAL;
	wish = wish ?: canchar_sja1000_usual_sample_point(timing->bitrate);
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
		if (canchar_sja1000_timing_possible(&trial) && distance < best) {
			best = distance;
			*timing = trial;
		}
	}
	return best == U32_MAX ? -EINVAL : 0;
}

/* ------------------------------------------------------ start and stop -- */

static bool canchar_sja1000_set_mode(const struct sja1000 *chip, u8 mode)
{
	int tries;

	/* Out of reset it waits for 11 recessive bits, and MOD shows it at once. */
	for (tries = 0; tries < 100; tries++) {
		sja1000_out(chip, SJA1000_MOD, mode);
		if ((sja1000_in(chip, SJA1000_MOD) & SJA1000_MOD_RESET) ==
		    (mode & SJA1000_MOD_RESET))
			return true;
		udelay(1);
	}
	return false;
}

void canchar_sja1000_quiet(struct sja1000 *chip)
{
	sja1000_out(chip, SJA1000_IER, 0);
	canchar_sja1000_set_mode(chip, SJA1000_MOD_RESET);
	sja1000_out(chip, SJA1000_CDR, chip->cdr | SJA1000_CDR_PELICAN);
	sja1000_in(chip, SJA1000_IR);
}

/*
 * Goes on the bus with this timing; all frames pass, no interrupt is enabled. -EINVAL
 * without a timing, -EIO when the chip does not leave reset mode.
 */
int canchar_sja1000_begin(struct sja1000 *chip, const struct canchar_timing *timing)
{
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
	/*
	 * After bus-off the counters are the chip's: writing TXERR would let it recover after 11
	 * recessive bits instead of 128 times as many (data sheet, 6.4.12).
	 */
	if (!(sja1000_in(chip, SJA1000_SR) & SJA1000_SR_BUS_OFF)) {
		sja1000_out(chip, SJA1000_TXERR, 0);
		sja1000_out(chip, SJA1000_RXERR, 0);
	}
	if (!canchar_sja1000_set_mode(chip, listen_only ? SJA1000_MOD_LISTEN_ONLY : 0))
		return -EIO;
	/* Discards frames that an emulated FIFO kept through the reset. */
	for (i = 0; i < 64 && sja1000_in(chip, SJA1000_SR) & SJA1000_SR_RX; i++)
		sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_RELEASE);
	sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_CLEAR);
	return 0;
}
