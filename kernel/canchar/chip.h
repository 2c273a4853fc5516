/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls of a chip on the frame path. The chip of real cards is called directly, any other through
 * its operations.
 */
#ifndef CANCHAR_CHIP_H
#define CANCHAR_CHIP_H

#include "canchar.h"
#include "chip_sja1000_hot.h"

static __always_inline bool canchar_is_sja1000(const struct canchar_device *dev)
{
	return likely(dev->ops == &canchar_sja1000_ops);
}

static __always_inline unsigned int canchar_chip_events(struct canchar_device *dev)
{
	return canchar_is_sja1000(dev) ? sja1000_events(dev) : dev->ops->events(dev);
}

static __always_inline unsigned int canchar_chip_look(struct canchar_device *dev)
{
	return canchar_is_sja1000(dev) ? sja1000_look(dev) : dev->ops->look(dev);
}

static __always_inline bool canchar_chip_receive(struct canchar_device *dev,
						 struct canchar_frame *frame)
{
	return canchar_is_sja1000(dev) ? sja1000_receive(dev, frame) :
					 dev->ops->receive(dev, frame);
}

static __always_inline bool canchar_chip_tx_free(struct canchar_device *dev)
{
	return canchar_is_sja1000(dev) ? sja1000_tx_free(dev) : dev->ops->tx_free(dev);
}

static __always_inline void canchar_chip_send(struct canchar_device *dev,
					      const struct canchar_frame *frame)
{
	if (canchar_is_sja1000(dev))
		sja1000_send(dev, frame);
	else
		dev->ops->send(dev, frame);
}

#endif
