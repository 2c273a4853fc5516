// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two cards that can be added and removed, and a file: see card_pair.h.
 */

#include <linux/module.h>

#include "canchar/board_kvaser_pci.h"
#include "card_pair.h"

static struct card_pair *card_pair_of(struct pci_dev *pdev)
{
	return container_of(to_pci_driver(pdev->dev.driver), struct card_pair, driver);
}

static int card_pair_take(struct card_pair *pair, struct pci_dev *pdev, unsigned int place)
{
	const struct kvaser_card *row = kvaser_find_card(pdev);
	struct card_pair_card *card = &pair->cards[place];
	int err;

	if (!row)
		return -ENODEV;
	err = kvaser_take_card(pdev, pair->driver.name, &card->s5920);
	if (err)
		return err;
	kvaser_allow_interrupts(card->s5920, false);
	err = -ENODEV;
	if (!kvaser_find_chip(pdev, row, 0, &card->chip))
		goto release;
	err = pair->bound ? pair->bound(pdev, place) : 0;
	if (err)
		goto release;
	card->pdev = pdev;
	return 0;

release:
	kvaser_release_card(pdev);
	return err;
}

static int card_pair_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct card_pair *pair = card_pair_of(pdev);
	int err = -EBUSY;

	mutex_lock(&pair->lock);
	if (!pair->cards[0].pdev)
		err = card_pair_take(pair, pdev, 0);
	else if (!pair->cards[1].pdev)
		err = card_pair_take(pair, pdev, 1);
	mutex_unlock(&pair->lock);
	return err;
}

static void card_pair_remove(struct pci_dev *pdev)
{
	struct card_pair *pair = card_pair_of(pdev);
	unsigned int place;

	mutex_lock(&pair->lock);
	place = pair->cards[1].pdev == pdev;
	pair->unbind(pdev, place);
	kvaser_release_card(pdev);
	pair->cards[place].pdev = NULL;
	mutex_unlock(&pair->lock);
}

/* No table of ids: only driver_override leads here. */
int card_pair_register(struct card_pair *pair)
{
	int err;

	mutex_init(&pair->lock);
	pair->driver.probe = card_pair_probe;
	pair->driver.remove = card_pair_remove;
	pair->file.minor = MISC_DYNAMIC_MINOR;
	pair->file.mode = 0600;
	err = pci_register_driver(&pair->driver);
	if (err)
		return err;
	err = misc_register(&pair->file);
	if (err)
		pci_unregister_driver(&pair->driver);
	return err;
}

void card_pair_unregister(struct card_pair *pair)
{
	misc_deregister(&pair->file);
	pci_unregister_driver(&pair->driver);
}
