// SPDX-License-Identifier: GPL-2.0-only
/* /sys/class/canchar/cancharN: settings as ip(8) has for interfaces, by echo and cat. */

#include <linux/kstrtox.h>
#include <linux/sysfs.h>

#include "canchar.h"

static struct canchar_device *canchar_of(struct device *device)
{
	return container_of(device, struct canchar_device, dev);
}

static ssize_t bitrate_show(struct device *device, struct device_attribute *attribute, char *text)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(canchar_of(device)->timing.bitrate));
}

static ssize_t bitrate_store(struct device *device, struct device_attribute *attribute,
			     const char *text, size_t count)
{
	u32 bitrate;
	int err = kstrtou32(text, 0, &bitrate);

	if (!err)
		err = canchar_set_bitrate(canchar_of(device), bitrate);
	return err ? err : count;
}
static DEVICE_ATTR_RW(bitrate);

static ssize_t restart_ms_show(struct device *device, struct device_attribute *attribute,
			       char *text)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(canchar_of(device)->timing.restart_ms));
}

static ssize_t restart_ms_store(struct device *device, struct device_attribute *attribute,
				const char *text, size_t count)
{
	struct canchar_device *dev = canchar_of(device);
	u32 restart_ms;
	int err = kstrtou32(text, 0, &restart_ms);

	if (err)
		return err;
	mutex_lock(&dev->mutex);
	WRITE_ONCE(dev->timing.restart_ms, restart_ms);
	mutex_unlock(&dev->mutex);
	return count;
}
static DEVICE_ATTR_RW(restart_ms);

static ssize_t running_show(struct device *device, struct device_attribute *attribute, char *text)
{
	return sysfs_emit(text, "%d\n", READ_ONCE(canchar_of(device)->running));
}

static ssize_t running_store(struct device *device, struct device_attribute *attribute,
			     const char *text, size_t count)
{
	struct canchar_device *dev = canchar_of(device);
	bool running;
	int err = kstrtobool(text, &running);

	if (!err)
		err = running ? canchar_start(dev) : canchar_stop(dev);
	return err ? err : count;
}
static DEVICE_ATTR_RW(running);

static ssize_t threaded_show(struct device *device, struct device_attribute *attribute, char *text)
{
	return sysfs_emit(text, "%d\n", !!READ_ONCE(canchar_of(device)->thread));
}

static ssize_t threaded_store(struct device *device, struct device_attribute *attribute,
			      const char *text, size_t count)
{
	bool on;
	int err = kstrtobool(text, &on);

	if (!err)
		err = canchar_set_threaded(canchar_of(device), on);
	return err ? err : count;
}
static DEVICE_ATTR_RW(threaded);

static ssize_t thread_priority_show(struct device *device, struct device_attribute *attribute,
				    char *text)
{
	return sysfs_emit(text, "%u\n", READ_ONCE(canchar_of(device)->thread_priority));
}

static ssize_t thread_priority_store(struct device *device, struct device_attribute *attribute,
				     const char *text, size_t count)
{
	unsigned int priority;
	int err = kstrtouint(text, 0, &priority);

	if (!err)
		err = canchar_set_thread_priority(canchar_of(device), priority);
	return err ? err : count;
}
static DEVICE_ATTR_RW(thread_priority);

static ssize_t state_show(struct device *device, struct device_attribute *attribute, char *text)
{
	static const char *const names[] = {
		[CANCHAR_ERROR_ACTIVE] = "error-active",
		[CANCHAR_ERROR_WARNING] = "error-warning",
		[CANCHAR_ERROR_PASSIVE] = "error-passive",
		[CANCHAR_BUS_OFF] = "bus-off",
		[CANCHAR_STOPPED] = "stopped",
	};

	return sysfs_emit(text, "%s\n", names[READ_ONCE(canchar_of(device)->state)]);
}
static DEVICE_ATTR_RO(state);

static ssize_t chip_show(struct device *device, struct device_attribute *attribute, char *text)
{
	return sysfs_emit(text, "%s\n", canchar_of(device)->ops->name);
}
static DEVICE_ATTR_RO(chip);

static ssize_t board_show(struct device *device, struct device_attribute *attribute, char *text)
{
	return sysfs_emit(text, "%s\n", canchar_of(device)->board);
}
static DEVICE_ATTR_RO(board);

static struct attribute *canchar_attrs[] = {
	&dev_attr_bitrate.attr, &dev_attr_restart_ms.attr, &dev_attr_running.attr,
	&dev_attr_state.attr,	&dev_attr_chip.attr,	   &dev_attr_board.attr,
	&dev_attr_threaded.attr, &dev_attr_thread_priority.attr,
	NULL,
};

static const struct attribute_group canchar_group = { .attrs = canchar_attrs };

const struct attribute_group *canchar_groups[] = { &canchar_group, NULL };
