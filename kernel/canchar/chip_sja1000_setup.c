// SPDX-License-Identifier: GPL-2.0-only
/*
 * The SJA1000: bit timing, start and stop. It uses no canchar device, and is also compiled into
 * kernel/probe.
 */

#include <linux/delay.h>

#include "bit_timing.h"
#include "chip_sja1000.h"

/* --------------------------------------------------------- bit timing -- */

static const struct canchar_timing_limits canchar_sja1000_limits = {
	.clock_hz = SJA1000_CLOCK_HZ,
	.brp_max = 64,
	.tseg1_min = 2,
	.tseg1_max = 16,
	.tseg2_min = 1,
	.tseg2_max = 8,
	.sjw_max = 4,
};

int canchar_sja1000_calculate(struct canchar_timing *timing)
{
	return canchar_calculate_timing(&canchar_sja1000_limits, timing);
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
