// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nodes for the drivers of other modules (driver.h): the controller without its network device. A
 * driver calls with locks of its own, so it is not called under the wire's lock: causes are noted
 * there, and an irq_work is the interrupt.
 */
#include <linux/export.h>
#include <linux/rtnetlink.h>

#include "../compat.h"
#include "bus.h"
#include "driver.h"

static void cw_driver_interrupt_work(struct irq_work *work)
{
	struct cw_node *node = container_of(work, struct cw_node, interrupt);

	node->driver->interrupt(node->driver);
}

void cw_driver_init(struct cw_node *node)
{
	node->interrupt = IRQ_WORK_INIT_HARD(cw_driver_interrupt_work);
}

void cw_driver_note(struct cw_node *node, u8 causes)
{
	enum can_state state = cw_state_of(max(node->port.tx_errors, node->port.rx_errors));

	if (state != node->driver_state) {
		node->driver_state = state;
		causes |= CANWIRE_CAUSE_STATE;
	}
	/* RX is read off the FIFO; a free transmit buffer is seen without TX, too. */
	if (causes & CANWIRE_CAUSE_TX && !(node->enabled & CANWIRE_CAUSE_TX))
		causes &= ~CANWIRE_CAUSE_TX;
	if (causes & ~CANWIRE_CAUSE_RX)
		WRITE_ONCE(node->causes, node->causes | (causes & ~CANWIRE_CAUSE_RX));
	if (causes & node->enabled)
		irq_work_queue(&node->interrupt);
}

/* ---------------------------------------------------- coming and going -- */

/* A driver takes all frames of the FIFO in one interrupt, so their number is bounded. */
static bool cw_driver_fifo_is_small(const struct cw_node *node)
{
	return max(node->fifo_frames, node->fifo_bytes / 3) <= CANWIRE_DRIVER_FIFO_FRAMES_MAX;
}

static int cw_driver_take(struct cw_node *node, struct canwire_driver *driver)
{
	struct cw_wire *wire;
	unsigned long flags;

	ASSERT_RTNL();
	if (node->driver || netif_running(node->dev))
		return -EBUSY;
	if (!cw_driver_fifo_is_small(node))
		return -EINVAL;
	driver->node = node;
	wire = cw_node_lock(node, &flags);
	node->causes = 0;
	node->enabled = 0;
	node->driver = driver;
	cw_node_unlock(wire, flags);
	return 0;
}

static int cw_driver_claim(struct canwire_driver *driver, const char *name)
{
	struct cw_node *node;
	int err = -ENODEV;

	driver->node = NULL;
	mutex_lock(&cw_mutex);
	node = cw_node_find(&init_net, name);
	if (node) {
		rtnl_lock();	/* the interface neither goes up nor down meanwhile */
		err = cw_driver_take(node, driver);
		rtnl_unlock();
	}
	mutex_unlock(&cw_mutex);
	return err;
}

static void cw_driver_stop(struct canwire_driver *driver)
{
	struct cw_node *node = driver->node;
	struct cw_wire *wire;
	unsigned long flags;

	wire = cw_node_lock(node, &flags);
	node->enabled = 0;
	cw_node_go_down(node, wire);
	cw_node_unlock(wire, flags);
	irq_work_sync(&node->interrupt);
}

void cw_driver_leave(struct cw_node *node)
{
	struct canwire_driver *driver = node->driver;
	struct cw_wire *wire;
	unsigned long flags;

	if (!driver)
		return;
	driver->gone(driver);
	cw_driver_stop(driver);
	driver->node = NULL;
	rtnl_lock();	/* the interface may go up afterwards */
	wire = cw_node_lock(node, &flags);
	node->driver = NULL;
	cw_node_unlock(wire, flags);
	rtnl_unlock();
}

static void cw_driver_release(struct canwire_driver *driver)
{
	mutex_lock(&cw_mutex);
	if (driver->node)
		cw_driver_leave(driver->node);
	mutex_unlock(&cw_mutex);
}

static void cw_driver_name(struct canwire_driver *driver, char name[IFNAMSIZ])
{
	strscpy(name, driver->node->dev->name, IFNAMSIZ);
}

/* ------------------------------------------------------ on the bus -- */

static void cw_driver_configure(struct cw_node *node, u32 bit, bool listen_only)
{
	node->port.bit = bit;
	node->port.data_bit = bit;
	node->port.mode = (listen_only ? CW_MODE_LISTEN_ONLY : 0) |
			  (node->fd_tolerant ? CW_MODE_FD_TOLERANT : 0);
	node->fifo_in_bytes = node->fifo_bytes;
	node->fifo_size = node->fifo_bytes ?: node->fifo_frames ?: CANWIRE_DRIVER_FIFO_FRAMES;
}

static void cw_driver_start(struct canwire_driver *driver, u32 bit, bool listen_only)
{
	struct cw_node *node = driver->node;
	struct cw_wire *wire;
	unsigned long flags;
	u32 sequences;

	wire = cw_node_lock(node, &flags);
	sequences = node->state == CW_NODE_BUS_OFF ? CW_SEQUENCES_BUS_OFF : CW_SEQUENCES_START;
	cw_node_go_down(node, wire);
	cw_driver_configure(node, bit, listen_only);
	cw_node_reset(node);
	node->causes = 0;
	node->enabled = 0;
	node->driver_state = CAN_STATE_ERROR_ACTIVE;
	cw_node_join(node, wire, sequences);
	cw_node_unlock(wire, flags);
}

static void cw_driver_enable(struct canwire_driver *driver, u8 causes)
{
	struct cw_node *node = driver->node;
	struct cw_wire *wire;
	unsigned long flags;

	wire = cw_node_lock(node, &flags);
	node->enabled = causes;
	cw_node_unlock(wire, flags);
}

static u8 cw_driver_causes(struct canwire_driver *driver)
{
	struct cw_node *node = driver->node;
	struct cw_wire *wire;
	unsigned long flags;
	u8 causes = 0;

	/* Whatever is noted after this check interrupts, or is polled. */
	if (unlikely(READ_ONCE(node->causes))) {
		wire = cw_node_lock(node, &flags);
		causes = node->causes;
		node->causes = 0;
		cw_node_unlock(wire, flags);
	}
	if (READ_ONCE(node->rx_head) != node->rx_tail)
		causes |= CANWIRE_CAUSE_RX;
	return causes;
}

static bool cw_driver_receive(struct canwire_driver *driver, struct can_frame *frame)
{
	struct cw_node *node = driver->node;
	const struct cw_received *place;
	u32 tail = node->rx_tail;

	/* B, pairs with cw_node_receive() */
	if (tail == smp_load_acquire(&node->rx_head))
		return false;
	place = &node->ring[tail & (node->ring_size - 1)];
	memset(frame, 0, sizeof(*frame));
	frame->can_id = place->frame.can_id;
	frame->len = min_t(u8, place->frame.len, CAN_MAX_DLEN);
	if (!(frame->can_id & CAN_RTR_FLAG))
		memcpy(frame->data, place->frame.data, frame->len);
	cw_count(&node->handed_over.frames, 1);
	WRITE_ONCE(node->rx_out, node->rx_out + cw_fifo_units(node, &place->frame));
	smp_store_release(&node->rx_tail, tail + 1);	/* the place is free */
	return true;
}

static bool cw_driver_tx_free(struct canwire_driver *driver)
{
	struct cw_node *node = driver->node;

	/* A, pairs with cw_node_sent(); a frame that bus-off has discarded frees nothing */
	return smp_load_acquire(&node->tx_next) == node->tx_head &&
	       READ_ONCE(node->state) != CW_NODE_BUS_OFF;
}

/* As cw_xmit(): on an idle wire the frame starts at the time this function was entered. */
static void cw_driver_send(struct canwire_driver *driver, const struct can_frame *frame)
{
	struct cw_node *node = driver->node;
	u64 now = ktime_get_ns();

	cw_buffer_fill_classic(&node->tx[node->tx_head % CW_TX_RING], frame, frame->len);
	cw_node_submit(node, now);
}

static void cw_driver_standing(struct canwire_driver *driver, struct canwire_standing *standing)
{
	struct cw_node *node = driver->node;
	struct cw_wire *wire;
	unsigned long flags;

	wire = cw_node_lock(node, &flags);
	standing->tx_errors = node->port.tx_errors;
	standing->rx_errors = node->port.rx_errors;
	standing->bus_off = node->state == CW_NODE_BUS_OFF;
	cw_node_unlock(wire, flags);
}

const struct canwire_controller_ops canwire_controller_ops = {
	.claim = cw_driver_claim,
	.release = cw_driver_release,
	.name = cw_driver_name,
	.start = cw_driver_start,
	.stop = cw_driver_stop,
	.enable = cw_driver_enable,
	.causes = cw_driver_causes,
	.receive = cw_driver_receive,
	.tx_free = cw_driver_tx_free,
	.send = cw_driver_send,
	.standing = cw_driver_standing,
};
EXPORT_SYMBOL_GPL(canwire_controller_ops);
