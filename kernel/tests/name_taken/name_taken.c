// SPDX-License-Identifier: GPL-2.0-only
/*
 * Has the name of canchar's driver of cards, so that canchar's last step that can fail does: a name is
 * given to one PCI driver only. For tests of a module that is refused while programs open its files.
 */

#include <linux/module.h>
#include <linux/pci.h>

static struct pci_driver name_taken_driver = { .name = "canchar_kvaser_pci" };

module_pci_driver(name_taken_driver);

MODULE_AUTHOR("The canter developers");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Takes the name of canchar's PCI driver");
