/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nodes for the drivers of other modules. A driver that claims a node gets its controller, and the
 * node's network device stays down until the driver releases it: at no time do both drive it.
 *
 * The controller has one transmit buffer, a receive FIFO of five frames (or as large as the node
 * was made with), and an interrupt with four causes. Everything is reached through one symbol,
 * which a driver takes with symbol_get(): it is then loaded without canwire, too, and canwire stays
 * while it is used.
 */
#ifndef CANWIRE_DRIVER_H
#define CANWIRE_DRIVER_H

#include <linux/bits.h>
#include <linux/can.h>
#include <linux/if.h>
#include <linux/types.h>

/* Causes of an interrupt. */
#define CANWIRE_CAUSE_RX	BIT(0)	/* a frame waits in the FIFO */
#define CANWIRE_CAUSE_TX	BIT(1)	/* the transmit buffer has become free */
#define CANWIRE_CAUSE_STATE	BIT(2)	/* error-warning, error-passive, bus-off, or back */
#define CANWIRE_CAUSE_OVERRUN	BIT(3)	/* frames were lost because the FIFO was full */

/* Bit timing: the clock, and what the registers hold; also of the interface of a node. */
#define CANWIRE_CLOCK_HZ	80000000
#define CANWIRE_BRP_MAX		512
#define CANWIRE_TSEG1_MIN	2
#define CANWIRE_TSEG1_MAX	256
#define CANWIRE_TSEG2_MIN	2
#define CANWIRE_TSEG2_MAX	128
#define CANWIRE_SJW_MAX		128

/* What the FIFO holds unless the node was made with another size, and the largest. */
#define CANWIRE_DRIVER_FIFO_FRAMES	5
#define CANWIRE_DRIVER_FIFO_FRAMES_MAX	64

/**
 * struct canwire_driver - a driver of one node
 * @interrupt: an enabled cause has occurred; in hard interrupt context, without locks
 * @gone: the driver must not use the node when this returns: the node is deleted, or the driver
 *	releases it. Called once, in task context
 * @node: canwire's
 */
struct canwire_driver {
	void (*interrupt)(struct canwire_driver *driver);
	void (*gone)(struct canwire_driver *driver);
	struct cw_node *node;
};

/**
 * struct canwire_standing - what a controller reports of itself
 * @tx_errors: transmit error counter
 * @rx_errors: receive error counter
 * @bus_off: off the bus until the next start
 */
struct canwire_standing {
	u16 tx_errors, rx_errors;
	bool bus_off;
};

/**
 * struct canwire_controller_ops - what a driver may do with nodes
 * @claim: takes a node by the name of its interface: 0, -ENODEV: no such node, -EBUSY: its
 *	interface is up or it has a driver, -EINVAL: its FIFO is too large. May sleep
 * @release: returns the node, by way of @gone; nothing if it has been deleted. May sleep
 * @name: the name of its interface, and a NUL
 * @start: goes on the bus with bits of this many cycles of CANWIRE_CLOCK_HZ, the interrupt still
 *	off; after bus-off it takes part when it has seen 128 sequences of 11 recessive bits
 * @stop: leaves the bus and cuts off its frame; @interrupt does not run any more when it returns
 * @enable: the causes that interrupt from now on. What has occurred before raises none;
 *	CANWIRE_CAUSE_TX is forgotten while it is not enabled
 * @causes: returns the causes that occurred, and forgets them; CANWIRE_CAUSE_RX while frames wait
 * @receive: takes a frame out of the FIFO; false: it is empty
 * @tx_free: the transmit buffer is empty, and the controller on the bus
 * @send: fills the transmit buffer, which must be free
 * @standing: error counters and state
 *
 * @claim, @release and @stop need task context, the others none. A driver calls @receive from one
 * context at a time, @send likewise, and neither of them during @start or @stop.
 */
struct canwire_controller_ops {
	int (*claim)(struct canwire_driver *driver, const char *name);
	void (*release)(struct canwire_driver *driver);
	void (*name)(struct canwire_driver *driver, char name[IFNAMSIZ]);
	void (*start)(struct canwire_driver *driver, u32 bit, bool listen_only);
	void (*stop)(struct canwire_driver *driver);
	void (*enable)(struct canwire_driver *driver, u8 causes);
	u8 (*causes)(struct canwire_driver *driver);
	bool (*receive)(struct canwire_driver *driver, struct can_frame *frame);
	bool (*tx_free)(struct canwire_driver *driver);
	void (*send)(struct canwire_driver *driver, const struct can_frame *frame);
	void (*standing)(struct canwire_driver *driver, struct canwire_standing *standing);
};

extern const struct canwire_controller_ops canwire_controller_ops;

#endif
