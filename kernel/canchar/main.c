// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: the core, and every board in turn. A module that fails to load is freed, whatever
 * files of its are open; so no device exists before the last step that can fail.
 */

#include <linux/module.h>

#include "canchar.h"

static int __init canchar_init(void)
{
	int err = canchar_devices_init();

	if (err)
		return err;
	err = canchar_virtual_init();
	if (err)
		goto core;
	err = canchar_wire_init();
	if (err)
		goto virtual;
	err = canchar_kvaser_init();
	if (err)
		goto wire;
	canchar_virtual_expose();
	canchar_wire_expose();
	return 0;

wire:
	canchar_wire_exit();
virtual:
	canchar_virtual_exit();
core:
	canchar_devices_exit();
	return err;
}

static void __exit canchar_exit(void)
{
	canchar_kvaser_exit();
	canchar_wire_exit();
	canchar_virtual_exit();
	canchar_devices_exit();
}

module_init(canchar_init);
module_exit(canchar_exit);

MODULE_AUTHOR("The canter developers");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("CAN controllers as character devices");
