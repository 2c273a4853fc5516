/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two Kvaser PCI cards and a file for one module: shared by canprobe and canbare. Each of them
 * builds card_pair.c into itself.
 *
 * The module takes only cards that are bound to it by driver_override. The card bound
 * first is card 0, the next one card 1; of each the first channel.
 */
#ifndef CANTER_CARD_PAIR_H
#define CANTER_CARD_PAIR_H

#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/pci.h>

#include "canchar/chip_sja1000.h"

/**
 * struct card_pair_card - one of the two cards
 * @pdev: NULL: no card
 * @chip: of the first channel
 * @s5920: ports of the bridge
 */
struct card_pair_card {
	struct pci_dev *pdev;
	struct sja1000 chip;
	unsigned long s5920;
};

/**
 * struct card_pair - two cards and a file
 * @driver: the module fills in its name
 * @file: the module fills in its name and operations
 * @bound: a card was bound, its interrupts are off; an error refuses it. May be NULL
 * @unbind: a card is being unbound: the last chance to access it
 * @lock: guards the cards and the module's file
 * @cards: in the order in which they were bound
 */
struct card_pair {
	struct pci_driver driver;
	struct miscdevice file;
	int (*bound)(struct pci_dev *pdev, unsigned int place);
	void (*unbind)(struct pci_dev *pdev, unsigned int place);

	/* Guards the cards and the module's file. */
	struct mutex lock;
	struct card_pair_card cards[2];
};

/**
 * card_pair_register() - registers driver and file
 * @pair: the cards
 *
 * Return: 0 or an error
 */
int card_pair_register(struct card_pair *pair);

/**
 * card_pair_unregister() - unregisters file and driver
 * @pair: the cards
 */
void card_pair_unregister(struct card_pair *pair);

/* Whether both cards are bound. Under the lock. */
static inline bool card_pair_complete(const struct card_pair *pair)
{
	return pair->cards[0].pdev && pair->cards[1].pdev;
}

#endif
