// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lists of nodes and buses, with their counters.
 */
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "../compat.h"
#include "netlink.h"

static void cw_node_stats(struct cw_node *node, struct canwire_node_stats *stats)
{
	struct cw_wire *wire;
	unsigned long flags;

	wire = cw_node_lock(node, &flags);
	*stats = node->stats;
	stats->handed_over = READ_ONCE(node->handed_over.frames);
	stats->dropped = READ_ONCE(node->handed_over.dropped);
	stats->error_events_limited += READ_ONCE(node->handed_over.errors_limited);
	stats->tx_errors = node->port.tx_errors;
	stats->rx_errors = node->port.rx_errors;
	stats->fifo_used = node->rx_in - READ_ONCE(node->rx_out);
	cw_node_unlock(wire, flags);
}

/* RTNL is held: the name stays. */
static int cw_put_node(struct sk_buff *skb, struct cw_node *node, u32 portid, u32 seq, int flags)
{
	struct canwire_node_stats stats;
	void *header;

	header = genlmsg_put(skb, portid, seq, &cw_family, flags, CANWIRE_CMD_NODE_GET);
	if (!header)
		return -EMSGSIZE;
	cw_node_stats(node, &stats);
	if (nla_put_string(skb, CANWIRE_A_NODE, node->dev->name) ||
	    nla_put_string(skb, CANWIRE_A_BUS, node->bus->name) ||
	    nla_put_u32(skb, CANWIRE_A_IFINDEX, node->dev->ifindex) ||
	    nla_put_u8(skb, CANWIRE_A_SLOT, node->port.slot) ||
	    (node->fifo_bytes && nla_put_u32(skb, CANWIRE_A_FIFO_BYTES, node->fifo_bytes)) ||
	    (node->fifo_frames && nla_put_u32(skb, CANWIRE_A_FIFO_FRAMES, node->fifo_frames)) ||
	    nla_put_u8(skb, CANWIRE_A_TX_BUFFERS, node->tx_buffers) ||
	    nla_put_u8(skb, CANWIRE_A_FD_TOLERANT, node->fd_tolerant) ||
	    nla_put_u8(skb, CANWIRE_A_CONNECTED, node->connected) ||
	    nla_put_s32(skb, CANWIRE_A_CLOCK_DRIFT, node->clock_drift) ||
	    nla_put_u32(skb, CANWIRE_A_NAPI_ID, cw_napi_id(&node->napi)) ||
	    nla_put(skb, CANWIRE_A_NODE_STATS, sizeof(stats), &stats)) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

static u32 cw_bitrate(u32 ticks)
{
	return ticks ? CANWIRE_CLOCK_HZ / ticks : 0;
}

static int cw_put_bus(struct sk_buff *skb, struct cw_bus *bus, u32 portid, u32 seq, int flags)
{
	struct canwire_source_stats source;
	struct canwire_bus_stats stats;
	u32 bit = 0, data_bit = 0;
	unsigned long irq_flags;
	struct cw_port *port;
	u64 slip;	/* half ns */
	void *header;

	raw_spin_lock_irqsave(&bus->wire.lock, irq_flags);
	stats = *cw_tap_stats(bus->tap);
	port = cw_wire_reference(&bus->wire);
	if (port) {
		bit = port->bit;
		data_bit = port->data_bit;
	}
	slip = bus->wire.slip;
	raw_spin_unlock_irqrestore(&bus->wire.lock, irq_flags);
	cw_source_stats(&bus->source, &source);

	header = genlmsg_put(skb, portid, seq, &cw_family, flags, CANWIRE_CMD_BUS_GET);
	if (!header)
		return -EMSGSIZE;
	if (nla_put_string(skb, CANWIRE_A_BUS, bus->name) ||
	    nla_put_u32(skb, CANWIRE_A_NODES, hweight64(bus->slots)) ||
	    nla_put_u64_64bit(skb, CANWIRE_A_SLIP_NS, slip == U64_MAX ? slip : slip / 2,
			      CANWIRE_A_PAD) ||
	    nla_put_u32(skb, CANWIRE_A_BITRATE, cw_bitrate(bit)) ||
	    nla_put_u32(skb, CANWIRE_A_DATA_BITRATE, cw_bitrate(data_bit)) ||
	    nla_put_u32(skb, CANWIRE_A_TAP_SIZE, cw_tap_size(bus->tap)) ||
	    nla_put(skb, CANWIRE_A_BUS_STATS, sizeof(stats), &stats) ||
	    nla_put(skb, CANWIRE_A_SOURCE_STATS, sizeof(source), &source)) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

/* Only CAP_NET_ADMIN sees buses without a node in its network namespace. */
static bool cw_may_see(struct sk_buff *request, const struct cw_bus *bus)
{
	return netlink_capable(request, CAP_NET_ADMIN) ||
	       cw_bus_is_visible(bus->tap, sock_net(request->sk));
}

int cw_cmd_node_get(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *answer = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	struct cw_node *node;
	int err;

	if (!answer)
		return -ENOMEM;
	mutex_lock(&cw_mutex);
	node = cw_node_of_info(info);
	err = PTR_ERR_OR_ZERO(node);
	if (!err) {
		rtnl_lock();
		err = cw_put_node(answer, node, info->snd_portid, info->snd_seq, 0);
		rtnl_unlock();
	}
	mutex_unlock(&cw_mutex);
	if (err) {
		nlmsg_free(answer);
		return err;
	}
	return genlmsg_reply(answer, info);
}

int cw_cmd_bus_get(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *answer = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	struct cw_bus *bus;
	int err;

	if (!answer)
		return -ENOMEM;
	mutex_lock(&cw_mutex);
	bus = cw_bus_of(info);
	err = PTR_ERR_OR_ZERO(bus);
	if (!err && !cw_may_see(skb, bus)) {
		NL_SET_ERR_MSG(info->extack,
			       "no node in this network namespace (CAP_NET_ADMIN sees all)");
		err = -EPERM;
	}
	if (!err)
		err = cw_put_bus(answer, bus, info->snd_portid, info->snd_seq, 0);
	mutex_unlock(&cw_mutex);
	if (err) {
		nlmsg_free(answer);
		return err;
	}
	return genlmsg_reply(answer, info);
}

/* Nodes of the caller's network namespace; args[0]: how many of all are done. */
int cw_dump_nodes(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nlattr *bus = cw_dump_attributes(cb)[CANWIRE_A_BUS];
	struct net *net = sock_net(cb->skb->sk);
	struct cw_node *node;
	long index = 0;

	mutex_lock(&cw_mutex);
	rtnl_lock();
	list_for_each_entry(node, &cw_nodes, list) {
		if (index++ < cb->args[0] || !net_eq(dev_net(node->dev), net) ||
		    (bus && nla_strcmp(bus, node->bus->name)))
			continue;
		if (cw_put_node(skb, node, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				NLM_F_MULTI)) {
			index--;
			break;
		}
	}
	cb->args[0] = index;
	rtnl_unlock();
	mutex_unlock(&cw_mutex);
	return skb->len;
}

int cw_dump_buses(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct cw_bus *bus;
	long index = 0;

	mutex_lock(&cw_mutex);
	list_for_each_entry(bus, &cw_buses, list) {
		if (index++ < cb->args[0] || !cw_may_see(cb->skb, bus))
			continue;
		if (cw_put_bus(skb, bus, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			       NLM_F_MULTI)) {
			index--;
			break;
		}
	}
	cb->args[0] = index;
	mutex_unlock(&cw_mutex);
	return skb->len;
}
