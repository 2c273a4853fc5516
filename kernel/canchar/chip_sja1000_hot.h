/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The frame path, for direct calls: an indirect call would cost as much as the function.
 */
#ifndef CANCHAR_CHIP_SJA1000_HOT_H
#define CANCHAR_CHIP_SJA1000_HOT_H

#include "canchar.h"
#include "chip_sja1000.h"

#define SJA1000_SR_TROUBLE	(SJA1000_SR_ERROR | SJA1000_SR_BUS_OFF)
/*
 * They interrupt also while the chip is polled: SR does not show error-passive, and IR shows only
 * what is enabled.
 */
#define SJA1000_IR_STATE	(SJA1000_IR_WARNING | SJA1000_IR_PASSIVE)

static __always_inline void sja1000_write_ier(struct sja1000 *chip)
{
	sja1000_out(chip, SJA1000_IER, chip->masked ? chip->ier & SJA1000_IR_STATE : chip->ier);
}

static __always_inline unsigned int sja1000_events(struct canchar_device *dev)
{
	struct sja1000 *chip = dev->chip;
	unsigned int events = 0;
	u8 cause = sja1000_in(chip, SJA1000_IR);

	if (unlikely(cause == 0xff) && sja1000_in(chip, SJA1000_MOD) == 0xff)
		return CANCHAR_EVENT_GONE;
	if (cause & SJA1000_IR_RX)
		events |= CANCHAR_EVENT_RX;
	/* It is latched even when disabled. */
	if (cause & SJA1000_IR_TX && dev->tx_armed)
		events |= CANCHAR_EVENT_TX;
	if (unlikely(cause & SJA1000_IR_OVERRUN)) {
		sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_CLEAR);
		events |= CANCHAR_EVENT_OVERRUN;
	}
	if (unlikely(cause & SJA1000_IR_STATE))
		events |= CANCHAR_EVENT_STATE;
	return events;
}

/* The status alone: masked, IR shows state changes only, which an interrupt reports. */
static __always_inline unsigned int sja1000_look(struct canchar_device *dev)
{
	struct sja1000 *chip = dev->chip;
	unsigned int events = 0;
	u8 status = sja1000_in(chip, SJA1000_SR);

	if (status & SJA1000_SR_RX)
		events |= CANCHAR_EVENT_RX;
	if (likely(!((status ^ chip->status) & SJA1000_SR_TROUBLE) &&
		   !(status & SJA1000_SR_OVERRUN) && !chip->latched))
		return events;
	if (status == 0xff && sja1000_in(chip, SJA1000_MOD) == 0xff)
		return CANCHAR_EVENT_GONE;
	if (status & SJA1000_SR_OVERRUN) {
		sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_CLEAR);
		events |= CANCHAR_EVENT_OVERRUN;
	}
	if ((status ^ chip->status) & SJA1000_SR_TROUBLE || chip->latched)
		events |= CANCHAR_EVENT_STATE;
	chip->status = status & SJA1000_SR_TROUBLE;
	chip->latched = false;
	return events;
}

/* Reads one frame; IR or SR must have reported it. */
static __always_inline bool sja1000_receive(struct canchar_device *dev, struct canchar_frame *frame)
{
	sja1000_read_frame(dev->chip, frame);
	return true;
}

/*
 * In bus-off SR shows a free buffer, whose addresses are those of the acceptance filter then, and
 * the frame before has not been sent. A card that was removed shows all bits.
 */
static __always_inline bool sja1000_tx_free(struct canchar_device *dev)
{
	u8 status = sja1000_in(dev->chip, SJA1000_SR);

	return (status & (SJA1000_SR_TX_FREE | SJA1000_SR_BUS_OFF)) == SJA1000_SR_TX_FREE;
}

static __always_inline void sja1000_tx_interrupt(struct canchar_device *dev, bool wanted)
{
	struct sja1000 *chip = dev->chip;

	chip->ier = wanted ? chip->ier | SJA1000_IR_TX : chip->ier & ~SJA1000_IR_TX;
	sja1000_write_ier(chip);
}

static __always_inline void sja1000_send(struct canchar_device *dev,
					 const struct canchar_frame *frame)
{
	sja1000_write_frame(dev->chip, frame);
}

#endif
