// SPDX-License-Identifier: GPL-2.0-only
/* Virtual devices, all on one bus in memory: canchar.ko virtual=2 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "chip_virtual.h"

#define CANCHAR_VIRTUAL_MAX	8

static unsigned int canchar_virtual_count;
module_param_named(virtual, canchar_virtual_count, uint, 0444);
MODULE_PARM_DESC(virtual, "virtual devices on one bus, 0...8 (default 0)");

static struct canchar_virtual_bus canchar_virtual_bus;

/* The state that the controller reports next, for tests. */
static ssize_t report_store(struct device *device, struct device_attribute *attribute,
			    const char *text, size_t count)
{
	static const char *const states[] = { "error-active", "error-warning", "error-passive",
					      "bus-off" };
	struct canchar_device *dev = container_of(device, struct canchar_device, dev);
	int state = sysfs_match_string(states, text);

	if (state < 0)
		return state;
	canchar_virtual_report(dev->chip, state);
	return count;
}
static DEVICE_ATTR_WO(report);

/* 1: the controller does not start any more; for tests. */
static ssize_t broken_store(struct device *device, struct device_attribute *attribute,
			    const char *text, size_t count)
{
	struct canchar_device *dev = container_of(device, struct canchar_device, dev);
	bool broken;
	int err = kstrtobool(text, &broken);

	if (err)
		return err;
	canchar_virtual_break(dev->chip, broken);
	return count;
}
static DEVICE_ATTR_WO(broken);

static struct attribute *canchar_virtual_attrs[] = {
	&dev_attr_report.attr,
	&dev_attr_broken.attr,
	NULL
};
ATTRIBUTE_GROUPS(canchar_virtual);

/* A stopped device gets no new frames; frames on their way still arrive. */
static void canchar_virtual_drop(struct canchar_virtual *chip)
{
	struct device *device = &chip->dev->dev;

	get_device(device);
	/* One whose registration failed has nothing but its memory. */
	if (device_is_registered(device))
		canchar_unregister(chip->dev);
	else
		put_device(device);
	canchar_virtual_quiet(chip);
	put_device(device);
}

void canchar_virtual_exit(void)
{
	unsigned int i;

	for (i = 0; i < canchar_virtual_bus.count; i++)
		canchar_virtual_drop(&canchar_virtual_bus.chips[i]);
	kfree(canchar_virtual_bus.chips);
}

/* All that can fail; nobody can open a device yet. */
int canchar_virtual_init(void)
{
	unsigned int i, count = min_t(unsigned int, canchar_virtual_count, CANCHAR_VIRTUAL_MAX);

	if (!count)
		return 0;
	canchar_virtual_bus.chips = kcalloc(count, sizeof(*canchar_virtual_bus.chips), GFP_KERNEL);
	if (!canchar_virtual_bus.chips)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		struct canchar_virtual *chip = &canchar_virtual_bus.chips[i];
		struct canchar_device *dev;

		canchar_virtual_setup(chip, &canchar_virtual_bus);
		dev = canchar_alloc(NULL, "virtual", &canchar_virtual_ops, chip);
		if (IS_ERR(dev)) {
			canchar_virtual_exit();
			return PTR_ERR(dev);
		}
		dev->dev.groups = canchar_virtual_groups;
		chip->dev = dev;
		canchar_virtual_bus.count++;
	}
	return 0;
}

/* From here on the module must not fail to load: a program may have opened the first device. */
void canchar_virtual_expose(void)
{
	unsigned int i;
	int err;

	for (i = 0; i < canchar_virtual_bus.count; i++) {
		struct canchar_device *dev = canchar_virtual_bus.chips[i].dev;

		err = canchar_register(dev);
		if (!err)
			err = canchar_start(dev);
		if (err)
			pr_err("virtual device %d: error %d\n", dev->number, err);
	}
}
