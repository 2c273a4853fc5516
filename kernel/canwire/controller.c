// SPDX-License-Identifier: GPL-2.0-only
/*
 * The controller's side of a node: transmit buffers, receive FIFO and its notes for the driver.
 * All of it runs under the wire's lock, most of it in the wire's timer; NAPI takes over from there
 * (handover.c).
 */
#include "../compat.h"
#include "driver.h"
#include "node.h"

/* The controller interrupts its driver, or what stands for one. */
static void cw_node_interrupt(struct cw_node *node, u8 causes)
{
	if (unlikely(node->driver))
		cw_driver_note(node, causes);
	else
		napi_schedule(&node->napi);
}

enum can_state cw_state_of(u32 errors)
{
	return errors > 255 ? CAN_STATE_BUS_OFF :
	       errors >= 128 ? CAN_STATE_ERROR_PASSIVE :
	       errors >= 96 ? CAN_STATE_ERROR_WARNING : CAN_STATE_ERROR_ACTIVE;
}

/*
 * The frame that contends next. Its transmit buffers are a FIFO: two frames of one sender never
 * change places. Against its babbling the lower identifier wins.
 */
void cw_node_choose(struct cw_node *node)
{
	struct cw_buffer *next = NULL;

	if (node->tx_next != node->tx_head)
		next = &node->tx[node->tx_next % CW_TX_RING];
	if (unlikely(node->babble_left) && (!next || node->babble.key < next->key))
		next = &node->babble;
	node->port.next = next;
}

static void cw_node_drop_next(struct cw_node *node)
{
	node->tx_end[node->tx_next % CW_TX_RING] = 0;
	/* A, pairs with cw_node_hand_over() */
	smp_store_release(&node->tx_next, node->tx_next + 1);
	cw_node_choose(node);
	cw_node_interrupt(node, 0);
}

void cw_node_fail_all(struct cw_node *node)
{
	while (node->tx_next != node->tx_head)
		cw_node_drop_next(node);
	node->port.next = NULL;
}

bool cw_node_receive(struct cw_node *node, const struct canfd_frame *frame, u64 end)
{
	u32 units = cw_fifo_units(node, frame);
	u32 used = node->rx_in - READ_ONCE(node->rx_out) + units;
	struct cw_received *place;

	if (unlikely(used > node->fifo_size ||
		     node->rx_head - READ_ONCE(node->rx_tail) == node->ring_size)) {
		node->stats.overruns++;
		node->events.overrun = true;
		node->events.any = true;
		cw_node_interrupt(node, CANWIRE_CAUSE_OVERRUN);
		return false;
	}
	place = &node->ring[node->rx_head & (node->ring_size - 1)];
	place->end = end;
	if (frame->flags & CANFD_FDF)
		place->frame = *frame;
	else
		memcpy(&place->frame, frame, CAN_MTU);
	node->rx_in += units;
	/* B, pairs with cw_node_hand_over() */
	smp_store_release(&node->rx_head, node->rx_head + 1);
	node->stats.received++;
	if (used > node->stats.fifo_used_max)
		node->stats.fifo_used_max = used;
	cw_node_interrupt(node, CANWIRE_CAUSE_RX);
	return true;
}

void cw_node_sent(struct cw_node *node, const struct cw_buffer *buffer, u64 end)
{
	u32 place = node->tx_next % CW_TX_RING;

	node->stats.sent++;
	if (unlikely(buffer->babble)) {
		if (node->babble_left && node->babble_left != U32_MAX)
			node->babble_left--;
	} else {
		node->tx_end[place] = end;
		smp_store_release(&node->tx_next, node->tx_next + 1);	/* A */
		cw_node_interrupt(node, CANWIRE_CAUSE_TX);
	}
	cw_node_choose(node);
}

/* One-shot: no retry after a lost arbitration or an error. */
static void cw_node_give_up_one_shot(struct cw_node *node)
{
	struct cw_buffer *next = node->port.next;

	if (cw_ctrlmode(node) & CAN_CTRLMODE_ONE_SHOT && next && !next->babble)
		cw_node_drop_next(node);
}

void cw_node_lost_arbitration(struct cw_node *node, u32 winner)
{
	u32 differ = node->port.next->key ^ winner;

	node->stats.arbitration_lost++;
	node->can.can_stats.arbitration_lost++;
	if (cw_ctrlmode(node) & CAN_CTRLMODE_BERR_REPORTING) {
		node->events.lost = true;
		node->events.lost_bit = differ ? 32 - fls(differ) : 31;
		node->events.any = true;
		cw_node_interrupt(node, 0);
	}
	cw_node_give_up_one_shot(node);
}

void cw_node_error(struct cw_node *node, const struct cw_attempt *a, bool sending)
{
	struct cw_port *port = &node->port;
	enum can_state state = cw_state_of(max(port->tx_errors, port->rx_errors));

	if (sending) {
		node->stats.errors_sent++;
		node->dev->stats.tx_errors++;
	} else {
		node->stats.errors_received++;
		node->dev->stats.rx_errors++;
	}
	node->can.can_stats.bus_error++;
	/* Fourteen thousand per second when the node is alone: reported only with
	 * berr-reporting.
	 */
	if (cw_ctrlmode(node) & CAN_CTRLMODE_BERR_REPORTING) {
		node->events.errors++;
		node->events.error = a->error ? a->error : CANWIRE_ERROR_STUFF;
		node->events.error_sending = sending;
		node->events.any = true;
		cw_node_interrupt(node, 0);
	} else {
		node->stats.error_events_limited++;
		if (node->driver || state != READ_ONCE(node->can.state))
			cw_node_interrupt(node, 0);
	}
	if (sending) {
		cw_node_give_up_one_shot(node);
		cw_node_choose(node);	/* it may no longer babble */
	}
}

void cw_node_bus_off(struct cw_node *node)
{
	node->state = CW_NODE_BUS_OFF;
	node->stats.bus_offs++;
	cw_node_fail_all(node);
	node->events.any = true;
	cw_node_interrupt(node, 0);
}
