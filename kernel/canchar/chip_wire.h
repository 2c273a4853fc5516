/* SPDX-License-Identifier: GPL-2.0-only */
/* The controller of a node of canwire: frames take the time of their bits. */
#ifndef CANCHAR_CHIP_WIRE_H
#define CANCHAR_CHIP_WIRE_H

#include "../canwire/driver.h"
#include "canchar.h"

struct canchar_wire {
	struct canwire_driver driver;	/* what canwire knows of it */
	const struct canwire_controller_ops *wire;
	struct canchar_device *dev;
	bool masked;	/* under the device's lock */
	bool tx_wanted;	/* likewise */
};

extern const struct canchar_chip_ops canchar_wire_ops;

#endif
