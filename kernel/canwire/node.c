// SPDX-License-Identifier: GPL-2.0-only
/*
 * The network device of a node: a CAN interface like that of hardware, with bit rates, modes
 * and restarts by ip-link(8).
 */
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "../compat.h"
#include "node.h"

static const struct can_bittiming_const cw_bittiming_const = {
	.name = KBUILD_MODNAME,
	.tseg1_min = CANWIRE_TSEG1_MIN,
	.tseg1_max = CANWIRE_TSEG1_MAX,
	.tseg2_min = CANWIRE_TSEG2_MIN,
	.tseg2_max = CANWIRE_TSEG2_MAX,
	.sjw_max = CANWIRE_SJW_MAX,
	.brp_min = 1,
	.brp_max = CANWIRE_BRP_MAX,
	.brp_inc = 1,
};

/* The node may be moved to another wire before this function has the lock. */
struct cw_wire *cw_node_lock(struct cw_node *node, unsigned long *flags)
{
	for (;;) {
		struct cw_wire *wire = READ_ONCE(node->port.wire);

		raw_spin_lock_irqsave(&wire->lock, *flags);
		if (likely(wire == node->port.wire))
			return wire;
		raw_spin_unlock_irqrestore(&wire->lock, *flags);
	}
}

void cw_node_unlock(struct cw_wire *wire, unsigned long flags)
{
	raw_spin_unlock_irqrestore(&wire->lock, flags);
}

void cw_node_join(struct cw_node *node, struct cw_wire *wire, u32 sequences)
{
	node->state = CW_NODE_ON;
	cw_node_choose(node);
	cw_wire_join(wire, &node->port, ktime_get_ns(), sequences);
}

void cw_node_go_down(struct cw_node *node, struct cw_wire *wire)
{
	if (node->state == CW_NODE_ON)
		cw_wire_leave(wire, &node->port, ktime_get_ns());
	node->state = CW_NODE_DOWN;
	node->port.next = NULL;
}

/*
 * Marks a socket as a user of this node's NAPI context when it sends: the CAN protocols do not mark
 * it on reception, and without the mark SO_BUSY_POLL does not know which device to poll.
 */
static void cw_mark_sender(const struct sk_buff *skb, const struct cw_node *node)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	u32 id = cw_napi_id(&node->napi);

	if (skb->sk && READ_ONCE(skb->sk->sk_napi_id) != id)
		WRITE_ONCE(skb->sk->sk_napi_id, id);
#endif
}

/* What a controller's registers take of an identifier; sockets may send any bits in it. */
static canid_t cw_id_of(canid_t id)
{
	if (id & CAN_EFF_FLAG)
		return id & (CAN_EFF_MASK | CAN_EFF_FLAG | CAN_RTR_FLAG);
	return id & (CAN_SFF_MASK | CAN_RTR_FLAG);
}

static void cw_buffer_measure(struct cw_buffer *buffer)
{
	buffer->key = cw_arbitration_key(&buffer->frame);
	cw_measure(&buffer->frame, &buffer->length);
}

void cw_buffer_fill_classic(struct cw_buffer *buffer, const struct can_frame *from, u8 dlc)
{
	struct canfd_frame *frame = &buffer->frame;

	frame->can_id = cw_id_of(from->can_id);
	frame->len = from->len;
	frame->flags = 0;
	frame->__res1 = dlc;
	memset(frame->data, 0, CAN_MAX_DLEN);
	memcpy(frame->data, from->data, cw_data_bytes(frame));
	cw_buffer_measure(buffer);
}

static void cw_buffer_fill(struct cw_node *node, struct cw_buffer *buffer,
			   const struct sk_buff *skb)
{
	struct canfd_frame *frame = &buffer->frame;

	if (can_is_canfd_skb(skb)) {
		const struct canfd_frame *from = (const struct canfd_frame *)skb->data;

		frame->can_id = cw_id_of(from->can_id) & ~CAN_RTR_FLAG;
		frame->len = cw_fd_len(from->len);
		frame->flags = (from->flags & (CANFD_BRS | CANFD_ESI)) | CANFD_FDF;
		buffer->esi = from->flags & CANFD_ESI;
		memcpy(frame->data, from->data, from->len);
		memset(frame->data + from->len, 0, frame->len - from->len);
		cw_buffer_measure(buffer);
	} else {
		const struct can_frame *from = (const struct can_frame *)skb->data;

		cw_buffer_fill_classic(buffer, from, can_get_cc_dlc(from, node->can.ctrlmode));
	}
}

/*
 * Classic and FD frames of exactly their size. An AF_PACKET socket may send anything: the core
 * checks it by protocol, and takes CAN XL at any MTU.
 */
static bool cw_can_send(const struct sk_buff *skb)
{
	switch (skb->protocol) {
	case htons(ETH_P_CAN):
		return can_is_can_skb(skb);
	case htons(ETH_P_CANFD):
		return can_is_canfd_skb(skb);
	default:
		return false;
	}
}

static bool cw_tx_is_full(const struct cw_node *node)
{
	return node->tx_head - smp_load_acquire(&node->tx_done) >= node->tx_buffers; /* C */
}

/* Stops the queue of a node without a free transmit buffer, unless one became free meanwhile. */
static bool cw_stop_if_full(struct cw_node *node)
{
	if (likely(!cw_tx_is_full(node)))
		return false;
	netif_stop_queue(node->dev);
	smp_mb();			/* D, pairs with cw_node_complete() */
	if (likely(cw_tx_is_full(node)) || READ_ONCE(node->state) == CW_NODE_BUS_OFF)
		return true;
	netif_start_queue(node->dev);
	return false;
}

void cw_node_submit(struct cw_node *node, u64 since_ns)
{
	struct cw_wire *wire;
	unsigned long flags;

	wire = cw_node_lock(node, &flags);
	WRITE_ONCE(node->tx_head, node->tx_head + 1);
	if (likely(node->state == CW_NODE_ON)) {
		struct cw_buffer *before = node->port.next;

		cw_node_choose(node);
		if (node->port.next != before)
			cw_wire_send(wire, &node->port, since_ns);
	} else if (node->state == CW_NODE_BUS_OFF) {
		cw_node_fail_all(node);
	}
	cw_node_unlock(wire, flags);
}

/*
 * On an idle wire the frame starts at the time this function was entered: the module's processing
 * time does not count.
 */
static netdev_tx_t cw_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct cw_node *node = netdev_priv(dev);
	u32 place = node->tx_head % CW_TX_RING;
	u64 now = ktime_get_ns();

	if (can_dev_dropped_skb(dev, skb))
		return NETDEV_TX_OK;
	if (unlikely(!cw_can_send(skb))) {
		kfree_skb(skb);
		dev->stats.tx_dropped++;
		return NETDEV_TX_OK;
	}
	if (unlikely(cw_stop_if_full(node)))
		return NETDEV_TX_BUSY;
	cw_mark_sender(skb, node);
	cw_buffer_fill(node, &node->tx[place], skb);
	/* Not under the lock: it frees and clones. */
	if (unlikely(can_put_echo_skb(skb, dev, place, 0))) {
		dev->stats.tx_dropped++;
		return NETDEV_TX_OK;
	}

	cw_node_submit(node, now);
	cw_stop_if_full(node);
	return NETDEV_TX_OK;
}

/* Takes over the bit rates and modes that ip-link(8) has set. */
static void cw_node_configure(struct cw_node *node)
{
	const struct can_bittiming *nominal = &node->can.bittiming;
	const struct can_bittiming *data = &cw_data_bittiming(&node->can);
	u32 mode = node->can.ctrlmode;

	node->port.bit = nominal->brp * can_bit_time(nominal);
	node->port.data_bit = mode & CAN_CTRLMODE_FD ? data->brp * can_bit_time(data) :
						       node->port.bit;
	node->port.mode = (mode & CAN_CTRLMODE_FD ? CW_MODE_FD : 0) |
			  (mode & CAN_CTRLMODE_LISTENONLY ? CW_MODE_LISTEN_ONLY : 0) |
			  (mode & CAN_CTRLMODE_LOOPBACK ? CW_MODE_LOOPBACK : 0) |
			  (mode & CAN_CTRLMODE_PRESUME_ACK ? CW_MODE_SELF_ACK : 0) |
			  (node->fd_tolerant ? CW_MODE_FD_TOLERANT : 0);

	node->fifo_in_bytes = node->fifo_bytes || (!node->fifo_frames && !(mode & CAN_CTRLMODE_FD));
	node->fifo_size = node->fifo_bytes ? node->fifo_bytes :
			  node->fifo_frames ? node->fifo_frames :
			  node->fifo_in_bytes ? CW_FIFO_BYTES_DEFAULT : CW_FIFO_FRAMES_DEFAULT;
}

void cw_node_reset(struct cw_node *node)
{
	node->tx_head = 0;
	node->tx_next = 0;
	node->tx_done = 0;
	node->rx_head = 0;
	node->rx_tail = 0;
	node->rx_in = 0;
	node->rx_out = 0;
	node->port.tx_errors = 0;
	node->port.rx_errors = 0;
	memset(&node->events, 0, sizeof(node->events));
	/* FD may have been switched off since the request. */
	if (node->babble.frame.flags & CANFD_FDF && !(node->port.mode & CW_MODE_FD))
		node->babble_left = 0;
}

static int cw_open(struct net_device *dev)
{
	struct cw_node *node = netdev_priv(dev);
	struct cw_wire *wire;
	unsigned long flags;
	int err;

	if (node->driver) {
		netdev_err(dev, "stays down: the driver of another module has this node\n");
		return -EBUSY;
	}
	err = open_candev(dev);
	if (err)
		return err;
	napi_enable(&node->napi);
	wire = cw_node_lock(node, &flags);
	cw_node_configure(node);
	cw_node_reset(node);
	node->can.state = CAN_STATE_ERROR_ACTIVE;
	cw_node_join(node, wire, CW_SEQUENCES_START);
	cw_node_unlock(wire, flags);
	netif_start_queue(dev);
	return 0;
}

static int cw_stop(struct net_device *dev)
{
	struct cw_node *node = netdev_priv(dev);
	struct cw_wire *wire;
	unsigned long flags;

	netif_stop_queue(dev);
	wire = cw_node_lock(node, &flags);
	cw_node_go_down(node, wire);
	cw_node_unlock(wire, flags);
	napi_disable(&node->napi);
	close_candev(dev);
	node->can.state = CAN_STATE_STOPPED;
	return 0;
}

/*
 * Restart after bus-off: by hand, or by a work of the core that may run while the interface goes
 * down. The waiting frames were returned before the core was notified of the bus-off, so they are
 * not touched here.
 */
static int cw_set_mode(struct net_device *dev, enum can_mode mode)
{
	struct cw_node *node = netdev_priv(dev);
	struct cw_wire *wire;
	unsigned long flags;
	bool restarted;

	if (mode != CAN_MODE_START)
		return -EOPNOTSUPP;
	wire = cw_node_lock(node, &flags);
	restarted = node->state == CW_NODE_BUS_OFF;
	if (restarted) {
		node->port.tx_errors = 0;
		node->port.rx_errors = 0;
		WRITE_ONCE(node->can.state, CAN_STATE_ERROR_ACTIVE);
		cw_node_join(node, wire, CW_SEQUENCES_BUS_OFF);
	}
	cw_node_unlock(wire, flags);
	if (restarted)
		netif_wake_queue(dev);
	return 0;
}

static int cw_get_berr_counter(const struct net_device *dev, struct can_berr_counter *counter)
{
	const struct cw_node *node = netdev_priv(dev);

	counter->txerr = READ_ONCE(node->port.tx_errors);
	counter->rxerr = READ_ONCE(node->port.rx_errors);
	return 0;
}

static const struct net_device_ops cw_netdev_ops = {
	.ndo_open = cw_open,
	.ndo_stop = cw_stop,
	.ndo_start_xmit = cw_xmit,
	CW_NDO_BY_VERSION
};

static const struct ethtool_ops cw_ethtool_ops = {
	.get_ts_info = can_ethtool_op_get_ts_info_hwts,
};

struct cw_node *cw_node_of(struct net_device *dev)
{
	return dev && dev->netdev_ops == &cw_netdev_ops ? netdev_priv(dev) : NULL;
}

/* Places for as many frames as fit: the shortest takes three bytes. */
static u32 cw_ring_size(const struct cw_node_config *config)
{
	u32 frames = max3(config->fifo_frames, DIV_ROUND_UP(config->fifo_bytes, 3),
			  (u32)CW_FIFO_FRAMES_DEFAULT);

	return roundup_pow_of_two(frames);
}

static int cw_node_register(struct cw_node *node)
{
	int err;

	err = register_candev(node->dev);
	if (err)
		return err;
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		/*
		 * Softirqs have no real-time priority there; a thread has that of the thread of a
		 * card's interrupt, which it stands for.
		 */
		rtnl_lock();
		err = cw_set_threaded(node->dev);
		if (!err && node->napi.thread)
			sched_set_fifo(node->napi.thread);
		rtnl_unlock();
		if (err)
			netdev_warn(node->dev, "no thread for NAPI: %d\n", err);
	}
	return 0;
}

struct cw_node *cw_node_make(struct net *net, const char *name, struct cw_bus *bus,
			     struct cw_wire *wire, u8 slot, const struct cw_node_config *config)
{
	struct net_device *dev;
	struct cw_node *node;
	int err = -ENOMEM;

	dev = alloc_candev(sizeof(*node), CW_TX_RING);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	node = netdev_priv(dev);
	node->dev = dev;
	node->bus = bus;
	node->port.node = node;
	node->port.wire = wire;
	node->port.slot = slot;
	node->connected = true;
	node->fifo_bytes = config->fifo_bytes;
	node->fifo_frames = config->fifo_frames;
	node->tx_buffers = config->tx_buffers;
	node->fd_tolerant = config->fd_tolerant;
	node->clock_drift = config->clock_drift;
	cw_driver_init(node);
	node->ring_size = cw_ring_size(config);
	node->ring = kvcalloc(node->ring_size, sizeof(*node->ring), GFP_KERNEL);
	if (!node->ring)
		goto free_dev;

	strscpy(dev->name, name, sizeof(dev->name));
	dev_net_set(dev, net);
	dev->netdev_ops = &cw_netdev_ops;
	dev->ethtool_ops = &cw_ethtool_ops;
	dev->flags |= IFF_ECHO;
	node->can.clock.freq = CANWIRE_CLOCK_HZ;
	node->can.bittiming_const = &cw_bittiming_const;
	cw_data_bittiming_const(&node->can) = &cw_bittiming_const;
	node->can.do_set_mode = cw_set_mode;
	node->can.do_get_berr_counter = cw_get_berr_counter;
	node->can.ctrlmode_supported = CAN_CTRLMODE_LOOPBACK | CAN_CTRLMODE_LISTENONLY |
		CAN_CTRLMODE_ONE_SHOT | CAN_CTRLMODE_BERR_REPORTING | CAN_CTRLMODE_FD |
		CAN_CTRLMODE_PRESUME_ACK | CAN_CTRLMODE_CC_LEN8_DLC;
	netif_napi_add(dev, &node->napi, cw_node_poll);

	err = cw_node_register(node);
	if (err)
		goto free_ring;
	return node;

free_ring:
	kvfree(node->ring);
free_dev:
	free_candev(dev);
	return ERR_PTR(err);
}

void cw_node_destroy(struct cw_node *node)
{
	unregister_candev(node->dev);	/* takes it down, off its wire */
	if (node->stub)
		cw_wire_stop(node->stub);
	kfree(node->stub);
	kvfree(node->ring);
	free_candev(node->dev);
}

static void cw_node_move(struct cw_node *node, struct cw_wire *to)
{
	struct cw_wire *from;
	unsigned long flags;
	bool on;

	from = cw_node_lock(node, &flags);
	on = node->state == CW_NODE_ON;
	if (on) {
		cw_wire_leave(from, &node->port, ktime_get_ns());
		node->state = CW_NODE_MOVING;
	}
	WRITE_ONCE(node->port.wire, to);
	cw_node_unlock(from, flags);

	if (!on)
		return;
	raw_spin_lock_irqsave(&to->lock, flags);
	/* A driver may have stopped or started it meanwhile. */
	if (node->state == CW_NODE_MOVING)
		cw_node_join(node, to, CW_SEQUENCES_START);
	raw_spin_unlock_irqrestore(&to->lock, flags);
}

int cw_node_connect(struct cw_node *node, struct cw_wire *wire, bool connected)
{
	if (node->connected == connected)
		return 0;
	if (!node->stub) {
		node->stub = kzalloc(sizeof(*node->stub), GFP_KERNEL);
		if (!node->stub)
			return -ENOMEM;
		cw_wire_init(node->stub, NULL, NULL);
	}
	rtnl_lock();	/* it neither goes up nor down meanwhile */
	cw_node_move(node, connected ? wire : node->stub);
	node->connected = connected;
	rtnl_unlock();
	return 0;
}
