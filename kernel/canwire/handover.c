// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the controller to the stack, in NAPI: echoes of sent frames, received frames, and error
 * frames as the sja1000 driver makes them. In softirq, or in the thread that PREEMPT_RT and busy
 * polling have for it.
 */
#include <linux/can/error.h>
#include <net/busy_poll.h>

#include "../compat.h"
#include "node.h"

/* A clock of a controller's own: it counts from the machine's start and gains @ppb. */
static u64 cw_drifted(u64 ns, s32 ppb)
{
	u32 rest;
	u64 seconds = div_u64_rem(ns, NSEC_PER_SEC, &rest);

	return ns + (s64)seconds * ppb + div_s64((s64)rest * ppb, NSEC_PER_SEC);
}

static ktime_t cw_stamp(const struct cw_node *node, u64 halves)
{
	u64 ns = cw_to_ns(halves);

	if (unlikely(node->clock_drift))
		return ns_to_ktime(cw_drifted(ns, node->clock_drift));
	return ktime_mono_to_real(ns_to_ktime(ns));
}

/*
 * The echo of a frame that was sent at @end, which the core keeps; NULL: nobody asked for one. As
 * can_get_echo_skb() does it, which delivers by way of the backlog: behind later frames.
 */
static struct sk_buff *cw_take_echo(struct cw_node *node, u32 place, u64 end)
{
	struct sk_buff *skb = node->can.echo_skb[place];

	if (!skb)
		return NULL;
	node->can.echo_skb[place] = NULL;
	/*
	 * can-gw sends a clone of what it has received, and clones share their stamp: that of the
	 * received frame would be replaced before sockets have read it.
	 */
	if (likely(!skb_unclone(skb, GFP_ATOMIC)))
		skb_hwtstamps(skb)->hwtstamp = cw_stamp(node, end);
	if (unlikely(skb_shinfo(skb)->tx_flags & SKBTX_IN_PROGRESS))
		skb_tstamp_tx(skb, skb_hwtstamps(skb));
	if (unlikely(skb->pkt_type != PACKET_LOOPBACK)) {
		dev_consume_skb_any(skb);
		return NULL;
	}
	skb->pkt_type = PACKET_BROADCAST;
	return skb;
}

static void cw_count_failed(struct cw_node *node)
{
	unsigned long flags;
	struct cw_wire *wire = cw_node_lock(node, &flags);

	node->dev->stats.tx_errors++;	/* cw_node_error() counts there, too */
	cw_node_unlock(wire, flags);
}

/* The oldest frame that was sent, or failed: room for another, and the echo to the sockets. */
static void cw_node_complete(struct cw_node *node)
{
	u32 done = node->tx_done, place = done % CW_TX_RING;
	struct net_device *dev = node->dev;
	u64 end = node->tx_end[place];
	struct sk_buff *skb = NULL;

	if (likely(end)) {
		skb = cw_take_echo(node, place, end);
		dev->stats.tx_packets++;
		dev->stats.tx_bytes += cw_data_bytes(&node->tx[place].frame);
	} else {
		can_free_echo_skb(dev, place, NULL);
		cw_count_failed(node);
	}
	/* C, pairs with cw_xmit() */
	smp_store_release(&node->tx_done, done + 1);
	/* D, pairs with cw_xmit() */
	smp_mb();
	if (netif_queue_stopped(dev) && READ_ONCE(node->state) != CW_NODE_BUS_OFF)
		netif_wake_queue(dev);
	if (skb)
		netif_receive_skb(skb);
}

static struct sk_buff *cw_skb_of(struct cw_node *node, const struct canfd_frame *frame)
{
	struct canfd_frame *fd;
	struct can_frame *classic;
	struct sk_buff *skb;

	if (frame->flags & CANFD_FDF) {
		skb = alloc_canfd_skb(node->dev, &fd);
		if (!skb)
			return NULL;
		fd->can_id = frame->can_id;
		fd->len = frame->len;
		fd->flags |= frame->flags & (CANFD_BRS | CANFD_ESI);
		memcpy(fd->data, frame->data, frame->len);
		return skb;
	}
	skb = alloc_can_skb(node->dev, &classic);
	if (!skb)
		return NULL;
	classic->can_id = frame->can_id;
	classic->len = frame->len;
	if (node->can.ctrlmode & CAN_CTRLMODE_CC_LEN8_DLC)
		classic->len8_dlc = cw_dlc(frame) > CAN_MAX_DLEN ? cw_dlc(frame) : 0;
	if (!(frame->can_id & CAN_RTR_FLAG))
		memcpy(classic->data, frame->data, CAN_MAX_DLEN);
	return skb;
}

/* Delivers the oldest received frame. */
static void cw_node_deliver(struct cw_node *node)
{
	u32 tail = node->rx_tail;
	const struct cw_received *place = &node->ring[tail & (node->ring_size - 1)];
	struct net_device *dev = node->dev;
	struct sk_buff *skb;

	skb = cw_skb_of(node, &place->frame);
	if (skb) {
		skb_hwtstamps(skb)->hwtstamp = cw_stamp(node, place->end);
		dev->stats.rx_packets++;
		dev->stats.rx_bytes += cw_data_bytes(&place->frame);
		cw_count(&node->handed_over.frames, 1);
	} else {
		dev->stats.rx_dropped++;
		cw_count(&node->handed_over.dropped, 1);
	}
	WRITE_ONCE(node->rx_out, node->rx_out + cw_fifo_units(node, &place->frame));
	smp_store_release(&node->rx_tail, tail + 1);	/* the place is free */
	if (skb) {
		skb_mark_napi_id(skb, &node->napi);
		netif_receive_skb(skb);
	}
}

/* Whether a sent frame ended before the oldest received one; a failed one has no end. */
static bool cw_sent_is_next(const struct cw_node *node)
{
	/* Again, after tx_next: a frame that was received before that one is seen. B */
	if (node->rx_tail == smp_load_acquire(&node->rx_head))
		return true;
	return node->tx_end[node->tx_done % CW_TX_RING] <=
	       node->ring[node->rx_tail & (node->ring_size - 1)].end;
}

/*
 * Hands over one frame, sent or received, in the order of their ends: stamps never go back. False:
 * there is none. The wire publishes frames in that order, so the other kind is looked for after the
 * one that may be handed over.
 */
static bool cw_node_hand_over(struct cw_node *node)
{
	/* B, pairs with cw_node_receive() */
	bool received = node->rx_tail != smp_load_acquire(&node->rx_head);

	/* A, pairs with cw_node_sent(); after rx_head */
	if (node->tx_done != smp_load_acquire(&node->tx_next)) {
		if (cw_sent_is_next(node)) {
			cw_node_complete(node);
			return true;
		}
		received = true;
	}
	if (received)
		cw_node_deliver(node);
	return received;
}

/* The report of an error that a node saw, as data[2] and data[3] of an error frame. */
static const struct {
	u8 type_receiving, location_receiving;
	u8 type_sending, location_sending;
} cw_errors[] = {
	[CANWIRE_ERROR_BIT] = {
		.type_receiving = CAN_ERR_PROT_STUFF,
		.location_receiving = CAN_ERR_PROT_LOC_DATA,
		.type_sending = CAN_ERR_PROT_BIT,
		.location_sending = CAN_ERR_PROT_LOC_DATA,
	},
	[CANWIRE_ERROR_STUFF] = {
		.type_receiving = CAN_ERR_PROT_STUFF,
		.location_receiving = CAN_ERR_PROT_LOC_DATA,
		.type_sending = CAN_ERR_PROT_BIT,
		.location_sending = CAN_ERR_PROT_LOC_DATA,
	},
	[CANWIRE_ERROR_FORM] = {
		.type_receiving = CAN_ERR_PROT_FORM,
		.location_receiving = CAN_ERR_PROT_LOC_CRC_DEL,
		.type_sending = CAN_ERR_PROT_FORM,
		.location_sending = CAN_ERR_PROT_LOC_ACK_DEL,
	},
	[CANWIRE_ERROR_CRC] = {	/* a CRC error has no type of its own */
		.location_receiving = CAN_ERR_PROT_LOC_CRC_SEQ,
		.type_sending = CAN_ERR_PROT_FORM,
		.location_sending = CAN_ERR_PROT_LOC_EOF,
	},
	[CANWIRE_ERROR_ACK] = {
		.type_receiving = CAN_ERR_PROT_FORM,
		.location_receiving = CAN_ERR_PROT_LOC_ACK_DEL,
		.location_sending = CAN_ERR_PROT_LOC_ACK,
	},
	[CANWIRE_ERROR_RATE] = {
		.type_receiving = CAN_ERR_PROT_STUFF,
		.location_receiving = CAN_ERR_PROT_LOC_ID20_18,
		.type_sending = CAN_ERR_PROT_BIT,
		.location_sending = CAN_ERR_PROT_LOC_ID20_18,
	},
	[CANWIRE_ERROR_ABORTED] = {
		.type_receiving = CAN_ERR_PROT_STUFF,
		.location_receiving = CAN_ERR_PROT_LOC_DATA,
		.type_sending = CAN_ERR_PROT_BIT,
		.location_sending = CAN_ERR_PROT_LOC_DATA,
	},
};

static void cw_describe_error(struct can_frame *cf, const struct cw_events *e)
{
	cf->can_id |= CAN_ERR_PROT | CAN_ERR_BUSERROR;
	if (e->error_sending) {
		cf->data[2] |= cw_errors[e->error].type_sending | CAN_ERR_PROT_TX;
		cf->data[3] = cw_errors[e->error].location_sending;
		if (e->error == CANWIRE_ERROR_ACK)
			cf->can_id |= CAN_ERR_ACK;
	} else {
		cf->data[2] |= cw_errors[e->error].type_receiving;
		cf->data[3] = cw_errors[e->error].location_receiving;
	}
}

/*
 * Off the bus: no frame may come any more until the restart, which flushes what the core keeps for
 * echoes. From the moment of the new state on, the core restarts a node by hand, and what is done
 * here after that would hit the restarted one: its carrier, for ever. With restart-ms it restarts
 * by can_bus_off() only, and before that it must know the state.
 */
static void cw_node_go_off(struct cw_node *node, struct can_frame *cf, enum can_state rx_state)
{
	struct net_device *dev = node->dev;

	netif_tx_disable(dev);	/* waits until no processor is in cw_xmit() */
	/* And the frames that came before the last sent one: no more than fit in the FIFO. */
	while (node->tx_done != READ_ONCE(node->tx_next))
		cw_node_hand_over(node);
	if (!node->can.restart_ms)
		can_bus_off(dev);
	can_change_state(dev, cf, CAN_STATE_BUS_OFF, rx_state);
	if (node->can.restart_ms)
		can_bus_off(dev);
}

/* Error frame, state, counters. One frame reports all changes since the previous one. */
static void cw_node_report(struct cw_node *node)
{
	bool each = node->can.ctrlmode & CAN_CTRLMODE_BERR_REPORTING;
	struct net_device *dev = node->dev;
	enum can_state tx_state, rx_state;
	struct can_frame *cf = NULL;
	struct sk_buff *skb = NULL;
	u16 tx_errors, rx_errors;
	struct cw_wire *wire;
	struct cw_events e;
	unsigned long flags;
	bool changed;

	wire = cw_node_lock(node, &flags);
	e = node->events;
	memset(&node->events, 0, sizeof(node->events));
	tx_errors = node->port.tx_errors;
	rx_errors = node->port.rx_errors;
	tx_state = cw_state_of(tx_errors);
	rx_state = cw_state_of(rx_errors);
	changed = max(tx_state, rx_state) != node->can.state && node->state != CW_NODE_DOWN;
	/*
	 * Like the sja1000 driver: one frame for any number of losses. stats.overruns counts all.
	 */
	if (e.overrun) {
		dev->stats.rx_over_errors++;
		dev->stats.rx_errors++;
	}
	cw_node_unlock(wire, flags);

	if (changed || e.overrun || (each && (e.errors || e.lost)))
		skb = alloc_can_err_skb(dev, &cf);
	if (e.errors)
		cw_count(&node->handed_over.errors_limited, e.errors - !!skb);
	if (skb && max(tx_state, rx_state) != CAN_STATE_BUS_OFF) {
		cf->can_id |= CAN_ERR_CNT;
		cf->data[6] = tx_errors;
		cf->data[7] = rx_errors;
	}
	if (skb && e.overrun) {
		cf->can_id |= CAN_ERR_CRTL;
		cf->data[1] = CAN_ERR_CRTL_RX_OVERFLOW;
	}
	if (skb && each && e.errors)
		cw_describe_error(cf, &e);
	if (skb && each && e.lost) {
		cf->can_id |= CAN_ERR_LOSTARB;
		cf->data[0] = e.lost_bit;
	}
	if (changed && tx_state == CAN_STATE_BUS_OFF)
		cw_node_go_off(node, cf, rx_state);
	else if (changed)
		can_change_state(dev, cf, tx_state, rx_state);
	if (skb)
		netif_receive_skb(skb);
}

static bool cw_node_has_news(const struct cw_node *node)
{
	u32 errors = max(READ_ONCE(node->port.tx_errors), READ_ONCE(node->port.rx_errors));

	return READ_ONCE(node->events.any) || cw_state_of(errors) != READ_ONCE(node->can.state);
}

int cw_node_poll(struct napi_struct *napi, int budget)
{
	struct cw_node *node = container_of(napi, struct cw_node, napi);
	int work = 0;

	while (work < budget && cw_node_hand_over(node))
		work++;
	if (unlikely(cw_node_has_news(node)) && budget)
		cw_node_report(node);
	if (work < budget)
		napi_complete_done(napi, work);
	return work;
}
