/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kvaser PCIcan: the layout of a card, for its driver here, for kernel/probe and kernel/canbare.
 * An AMCC S5920 bridge in the first region, SJA1000 in the second.
 */
#ifndef CANCHAR_BOARD_KVASER_PCI_H
#define CANCHAR_BOARD_KVASER_PCI_H

#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/pci.h>

#include "chip_sja1000.h"

/**
 * struct kvaser_card - a card is a row
 * @vendor: PCI vendor
 * @device: PCI device
 * @name: its name
 * @channels_max: chips on it
 * @channel_ports: from one chip to the next
 * @ocr: how the outputs are wired
 * @cdr: the clock output
 */
struct kvaser_card {
	u16 vendor, device;
	const char *name;
	unsigned int channels_max;
	unsigned int channel_ports;
	u8 ocr, cdr;
};

static const struct kvaser_card kvaser_cards[] = {
	/* Both outputs push-pull, normal mode; clock divider by one, comparator bypassed. */
	{ 0x10e8, 0x8406, "kvaser-pci", 4, SJA1000_PORTS, 0xda, 0x47 },
	{ 0x1a07, 0x0008, "kvaser-pci", 4, SJA1000_PORTS, 0xda, 0x47 },
};

#define KVASER_CHANNELS_MAX	4

/* S5920 */
#define S5920_INTCSR		0x38
#define S5920_INTCSR_ADDON	0x2000	/* the add-on's interrupt reaches the line */
#define S5920_PTCR		0x60
#define S5920_PTCR_WAIT		0x80808080

static inline const struct kvaser_card *kvaser_find_card(const struct pci_dev *pdev)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(kvaser_cards); i++) {
		const struct kvaser_card *card = &kvaser_cards[i];

		if (card->vendor == pdev->vendor && card->device == pdev->device)
			return card;
	}
	return NULL;
}

static inline void kvaser_allow_interrupts(unsigned long s5920, bool allow)
{
	u32 control = inl(s5920 + S5920_INTCSR);

	control = allow ? control | S5920_INTCSR_ADDON : control & ~S5920_INTCSR_ADDON;
	outl(control, s5920 + S5920_INTCSR);
}

/* Reserves the card's ports in this driver's name; the bridge's are at s5920 then. */
static inline int kvaser_take_card(struct pci_dev *pdev, const char *driver, unsigned long *s5920)
{
	int err = pci_enable_device(pdev);

	if (err)
		return err;
	err = pci_request_regions(pdev, driver);
	if (err) {
		pci_disable_device(pdev);
		return err;
	}
	*s5920 = pci_resource_start(pdev, 0);
	outl(S5920_PTCR_WAIT, *s5920 + S5920_PTCR);
	return 0;
}

static inline void kvaser_release_card(struct pci_dev *pdev)
{
	pci_release_regions(pdev);
	pci_disable_device(pdev);
}

/* Describes the card's chip of this number; false if it does not exist: reset mode cannot be
 * set.
 */
static inline bool kvaser_find_chip(struct pci_dev *pdev, const struct kvaser_card *card,
				    unsigned int number, struct sja1000 *chip)
{
	if (number >= card->channels_max ||
	    (number + 1) * card->channel_ports > pci_resource_len(pdev, 1))
		return false;
	chip->port = pci_resource_start(pdev, 1) + number * card->channel_ports;
	chip->ocr = card->ocr;
	chip->cdr = card->cdr;
	sja1000_out(chip, SJA1000_MOD, SJA1000_MOD_RESET);
	return sja1000_in(chip, SJA1000_MOD) != 0xff &&
	       (sja1000_in(chip, SJA1000_MOD) & SJA1000_MOD_RESET);
}

#endif
