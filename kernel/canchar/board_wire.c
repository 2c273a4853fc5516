// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nodes of canwire: canchar.ko wire=wcan1,wcan3. Their interfaces stay down meanwhile. canwire is
 * needed, and stays, only for these: its interface is found by symbol_get().
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "chip_wire.h"

#define CANCHAR_WIRE_MAX	16

static char *canchar_wire_names[CANCHAR_WIRE_MAX];
static unsigned int canchar_wire_count;
module_param_array_named(wire, canchar_wire_names, charp, &canchar_wire_count, 0444);
MODULE_PARM_DESC(wire, "nodes of canwire to drive, by the names of their interfaces");

static struct canchar_wire *canchar_wire_chips;
static const struct canwire_controller_ops *canchar_wire_controllers;
/* A node may be deleted while its device appears. Taken by canchar_wire_gone() within canwire's. */
static DEFINE_MUTEX(canchar_wire_mutex);

static ssize_t node_show(struct device *device, struct device_attribute *attribute, char *text)
{
	struct canchar_wire *chip = container_of(device, struct canchar_device, dev)->chip;
	char name[IFNAMSIZ];

	chip->wire->name(&chip->driver, name);
	return sysfs_emit(text, "%s\n", name);
}
static DEVICE_ATTR_RO(node);

static struct attribute *wire_attrs[] = {
	&dev_attr_node.attr,
	NULL
};
ATTRIBUTE_GROUPS(wire);

static void canchar_wire_interrupt(struct canwire_driver *driver)
{
	canchar_interrupt(0, container_of(driver, struct canchar_wire, driver)->dev);
}

/* The node is deleted, or this module leaves: open files get ENODEV. */
static void canchar_wire_gone(struct canwire_driver *driver)
{
	struct canchar_wire *chip = container_of(driver, struct canchar_wire, driver);
	struct canchar_device *dev;

	mutex_lock(&canchar_wire_mutex);
	dev = chip->dev;
	/* One that has not appeared yet has nothing but its memory. */
	if (device_is_registered(&dev->dev))
		canchar_unregister(dev);
	else
		put_device(&dev->dev);
	chip->dev = NULL;
	mutex_unlock(&canchar_wire_mutex);
}

static int canchar_wire_claim(struct canchar_wire *chip, const char *name)
{
	struct canchar_device *dev;
	int err;

	dev = canchar_alloc(NULL, "canwire", &canchar_wire_ops, chip);
	if (IS_ERR(dev))
		return PTR_ERR(dev);
	dev->dev.groups = wire_groups;
	chip->dev = dev;
	chip->wire = canchar_wire_controllers;
	chip->driver.interrupt = canchar_wire_interrupt;
	chip->driver.gone = canchar_wire_gone;
	err = canchar_wire_controllers->claim(&chip->driver, name);
	if (err) {
		chip->dev = NULL;
		put_device(&dev->dev);
		pr_err("wire=%s: %s\n", name,
		       err == -EBUSY ? "its interface is up, or it has a driver already" :
		       err == -EINVAL ? "its receive FIFO is larger than 64 frames" :
		       "canwire has no such node");
	}
	return err;
}

void canchar_wire_exit(void)
{
	unsigned int i;

	if (!canchar_wire_controllers)
		return;
	for (i = 0; i < canchar_wire_count; i++)
		canchar_wire_controllers->release(&canchar_wire_chips[i].driver);
	symbol_put(canwire_controller_ops);
	kfree(canchar_wire_chips);
}

/* All that can fail; nobody can open a device yet. */
int canchar_wire_init(void)
{
	unsigned int i;
	int err = 0;

	if (!canchar_wire_count)
		return 0;
	canchar_wire_chips = kcalloc(canchar_wire_count, sizeof(*canchar_wire_chips), GFP_KERNEL);
	if (!canchar_wire_chips)
		return -ENOMEM;
	canchar_wire_controllers = symbol_get(canwire_controller_ops);
	if (!canchar_wire_controllers) {
		pr_err("wire=%s: canwire is not loaded\n", canchar_wire_names[0]);
		kfree(canchar_wire_chips);
		return -ENODEV;
	}
	for (i = 0; i < canchar_wire_count && !err; i++)
		err = canchar_wire_claim(&canchar_wire_chips[i], canchar_wire_names[i]);
	if (err)
		canchar_wire_exit();
	return err;
}

/* From here on the module must not fail to load. */
void canchar_wire_expose(void)
{
	unsigned int i;
	int err;

	mutex_lock(&canchar_wire_mutex);
	for (i = 0; i < canchar_wire_count; i++) {
		err = canchar_wire_chips[i].dev ? canchar_register(canchar_wire_chips[i].dev) : 0;
		if (err)
			pr_err("wire=%s: error %d\n", canchar_wire_names[i], err);
	}
	mutex_unlock(&canchar_wire_mutex);
}
