// SPDX-License-Identifier: GPL-2.0-only
/*
 * The generic netlink family: commands in, lists out (uapi/canwire.h documents the attributes of
 * each). A command that fails returns an error and a sentence.
 */
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "../compat.h"
#include "netlink.h"

#define CW_PROBABILITY_ONE	1000000000

/* Not const, because a policy of 6.1 points to one that is not. */
static struct netlink_range_validation_signed cw_clock_drifts = {
	.min = -CW_CLOCK_DRIFT_MAX,
	.max = CW_CLOCK_DRIFT_MAX,
};

static const struct nla_policy cw_policy[CANWIRE_A_MAX + 1] = {
	[CANWIRE_A_NODE] = { .type = NLA_NUL_STRING, .len = IFNAMSIZ - 1 },
	[CANWIRE_A_BUS] = { .type = NLA_NUL_STRING, .len = CANWIRE_BUS_NAME_SIZE - 1 },
	[CANWIRE_A_FIFO_BYTES] = NLA_POLICY_RANGE(NLA_U32, CW_FIFO_BYTES_MIN, CW_FIFO_BYTES_MAX),
	[CANWIRE_A_FIFO_FRAMES] = NLA_POLICY_RANGE(NLA_U32, 1, CW_FIFO_FRAMES_MAX),
	[CANWIRE_A_TX_BUFFERS] = NLA_POLICY_RANGE(NLA_U8, 1, CW_TX_BUFFERS_MAX),
	[CANWIRE_A_FD_TOLERANT] = NLA_POLICY_MAX(NLA_U8, 1),
	[CANWIRE_A_CONNECTED] = NLA_POLICY_MAX(NLA_U8, 1),
	[CANWIRE_A_SLIP_NS] = { .type = NLA_U64 },
	[CANWIRE_A_BITRATE] = { .type = NLA_U32 },
	[CANWIRE_A_DATA_BITRATE] = { .type = NLA_U32 },
	[CANWIRE_A_ERROR] = NLA_POLICY_RANGE(NLA_U8, CANWIRE_ERROR_BIT, CANWIRE_ERROR_ACK),
	[CANWIRE_A_PROBABILITY] = { .type = NLA_U32 },
	[CANWIRE_A_COUNT] = { .type = NLA_U32 },
	[CANWIRE_A_FRAME] = NLA_POLICY_EXACT_LEN(sizeof(struct canfd_frame)),
	[CANWIRE_A_SCHEDULE] = { .type = NLA_BINARY },
	[CANWIRE_A_RESET] = { .type = NLA_FLAG },
	[CANWIRE_A_PERIOD_NS] = { .type = NLA_U64 },
	[CANWIRE_A_LOAD] = NLA_POLICY_RANGE(NLA_U32, 1, 1000),
	[CANWIRE_A_JITTER_NS] = { .type = NLA_U64 },
	[CANWIRE_A_BURST] = NLA_POLICY_MIN(NLA_U32, 1),
	[CANWIRE_A_SOURCE_FLAGS] = NLA_POLICY_MASK(NLA_U32, 0x3f),
	[CANWIRE_A_SEED] = { .type = NLA_U64 },
	[CANWIRE_A_START_NS] = { .type = NLA_U64 },
	[CANWIRE_A_CLOCK_DRIFT] = NLA_POLICY_FULL_RANGE_SIGNED(NLA_S32, &cw_clock_drifts),
};

bool cw_frame_is_valid(struct canfd_frame *frame)
{
	if (frame->can_id & CAN_ERR_FLAG)
		return false;
	if (!(frame->can_id & CAN_EFF_FLAG) && frame->can_id & (CAN_EFF_MASK & ~CAN_SFF_MASK))
		return false;
	if (frame->flags & CANFD_FDF) {
		if (frame->can_id & CAN_RTR_FLAG || frame->len > CANFD_MAX_DLEN ||
		    frame->len != cw_fd_len(frame->len))
			return false;
		frame->flags &= CANFD_FDF | CANFD_BRS | CANFD_ESI;
	} else {
		if (frame->len > CAN_MAX_DLEN)
			return false;
		frame->flags = 0;
		if (frame->can_id & CAN_RTR_FLAG)
			memset(frame->data, 0, CAN_MAX_DLEN);
	}
	memset(frame->data + frame->len, 0, CANFD_MAX_DLEN - frame->len);
	return true;
}

struct cw_bus *cw_bus_of(struct genl_info *info)
{
	struct cw_bus *bus;

	if (!cw_has(info, BUS))
		return ERR_PTR(-EINVAL);
	bus = cw_bus_find(nla_data(info->attrs[CANWIRE_A_BUS]));
	if (bus)
		return bus;
	NL_SET_ERR_MSG(info->extack, "there is no bus of this name: it exists while it has nodes");
	return ERR_PTR(-ENODEV);
}

struct cw_node *cw_node_of_info(struct genl_info *info)
{
	struct cw_node *node;

	if (!cw_has(info, NODE))
		return ERR_PTR(-EINVAL);
	node = cw_node_find(genl_info_net(info), nla_data(info->attrs[CANWIRE_A_NODE]));
	if (node)
		return node;
	NL_SET_ERR_MSG(info->extack, "no interface of this name is a node of canwire");
	return ERR_PTR(-ENODEV);
}

static int cw_cmd_node_add(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr **attrs = info->attrs;
	struct cw_node_config config = {
		.fifo_bytes = cw_u32(info, CANWIRE_A_FIFO_BYTES, 0),
		.fifo_frames = cw_u32(info, CANWIRE_A_FIFO_FRAMES, 0),
		.tx_buffers = CW_TX_BUFFERS_DEFAULT,
	};
	const char *name;
	int err;

	if (!cw_has(info, NODE) || !cw_has(info, BUS))
		return -EINVAL;
	if (config.fifo_bytes && config.fifo_frames) {
		NL_SET_ERR_MSG(info->extack, "the FIFO's size is in bytes or in frames, not both");
		return -EINVAL;
	}
	if (attrs[CANWIRE_A_TX_BUFFERS])
		config.tx_buffers = nla_get_u8(attrs[CANWIRE_A_TX_BUFFERS]);
	if (attrs[CANWIRE_A_FD_TOLERANT])
		config.fd_tolerant = nla_get_u8(attrs[CANWIRE_A_FD_TOLERANT]);
	if (attrs[CANWIRE_A_CLOCK_DRIFT])
		config.clock_drift = nla_get_s32(attrs[CANWIRE_A_CLOCK_DRIFT]);
	name = nla_data(attrs[CANWIRE_A_NODE]);
	if (strchr(name, '%') || !dev_valid_name(name)) {
		NL_SET_ERR_MSG(info->extack, "not a name that an interface can have");
		return -EINVAL;
	}

	mutex_lock(&cw_mutex);
	err = cw_node_add(genl_info_net(info), name, nla_data(attrs[CANWIRE_A_BUS]), &config);
	mutex_unlock(&cw_mutex);
	if (err == -EINVAL)
		NL_SET_ERR_MSG(info->extack, "a bus's name is 1 to 15 letters, digits, '-' or '_'");
	else if (err == -EEXIST)
		NL_SET_ERR_MSG(info->extack, "there is an interface of this name");
	else if (err == -ENOSPC)
		NL_SET_ERR_MSG(info->extack, "no more than 64 nodes on a bus and 32 buses");
	return err;
}

static int cw_cmd_node_delete(struct sk_buff *skb, struct genl_info *info)
{
	struct cw_node *node;
	int err;

	mutex_lock(&cw_mutex);
	node = cw_node_of_info(info);
	err = PTR_ERR_OR_ZERO(node);
	if (!err)
		cw_node_remove(node);
	mutex_unlock(&cw_mutex);
	return err;
}

static int cw_cmd_connect(struct sk_buff *skb, struct genl_info *info)
{
	struct cw_node *node;
	int err;

	if (!cw_has(info, CONNECTED))
		return -EINVAL;
	mutex_lock(&cw_mutex);
	node = cw_node_of_info(info);
	err = PTR_ERR_OR_ZERO(node);
	if (!err)
		err = cw_node_connect(node, &node->bus->wire,
				      nla_get_u8(info->attrs[CANWIRE_A_CONNECTED]));
	mutex_unlock(&cw_mutex);
	return err;
}

static void cw_babble(struct cw_node *node, const struct canfd_frame *frame, u32 count)
{
	struct cw_buffer *before;
	struct cw_wire *wire;
	unsigned long flags;
	bool on_the_wire;

	wire = cw_node_lock(node, &flags);
	before = node->port.next;
	/* A babbling frame that is on the wire keeps its content. */
	on_the_wire = wire->now.buffer == &node->babble && wire->now.sof <= 2 * ktime_get_ns();
	node->babble_left = count;
	if (count && !on_the_wire) {
		node->babble.frame = *frame;
		node->babble.babble = true;
		node->babble.key = cw_arbitration_key(frame);
		cw_measure(frame, &node->babble.length);
	}
	if (node->state == CW_NODE_ON && !on_the_wire) {
		cw_node_choose(node);
		if (node->port.next && !before)
			cw_wire_send(wire, &node->port, ktime_get_ns());
		else
			cw_wire_withdraw(wire, &node->port, ktime_get_ns());
	}
	cw_node_unlock(wire, flags);
}

static int cw_cmd_babble(struct sk_buff *skb, struct genl_info *info)
{
	u32 count = cw_u32(info, CANWIRE_A_COUNT, U32_MAX);
	struct canfd_frame frame = {};
	struct cw_node *node;
	int err = 0;

	if (count && !cw_has(info, FRAME))
		return -EINVAL;
	if (count)
		nla_memcpy(&frame, info->attrs[CANWIRE_A_FRAME], sizeof(frame));
	if (!cw_frame_is_valid(&frame)) {
		NL_SET_ERR_MSG(info->extack, "not a frame that can be sent");
		return -EINVAL;
	}
	mutex_lock(&cw_mutex);
	node = cw_node_of_info(info);
	err = PTR_ERR_OR_ZERO(node);
	if (!err && frame.flags & CANFD_FDF && !(cw_ctrlmode(node) & CAN_CTRLMODE_FD)) {
		NL_SET_ERR_MSG(info->extack, "an FD frame, and FD is off on this node");
		err = -EINVAL;
	} else if (!err && node->babble_left && count) {
		NL_SET_ERR_MSG(info->extack, "it babbles already; stop that first");
		err = -EBUSY;
	} else if (!err) {
		cw_babble(node, &frame, count);
	}
	mutex_unlock(&cw_mutex);
	return err;
}

static void cw_inject(struct cw_wire *wire, const struct cw_fault *fault)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&wire->lock, flags);
	wire->fault = *fault;
	raw_spin_unlock_irqrestore(&wire->lock, flags);
}

static int cw_cmd_inject(struct sk_buff *skb, struct genl_info *info)
{
	u64 probability = cw_u32(info, CANWIRE_A_PROBABILITY, CW_PROBABILITY_ONE);
	struct cw_fault fault = {
		.count = cw_u32(info, CANWIRE_A_COUNT, U32_MAX),
		.slot = -1,
	};
	struct cw_node *node;
	struct cw_bus *bus;
	int err;

	if (fault.count && probability) {
		if (!cw_has(info, ERROR))
			return -EINVAL;
		fault.kind = nla_get_u8(info->attrs[CANWIRE_A_ERROR]);
		if (probability > CW_PROBABILITY_ONE) {
			NL_SET_ERR_MSG(info->extack, "a probability is out of 1000000000");
			return -EINVAL;
		}
		/* 0 means every frame, because a probability of one does not fit. */
		if (probability < CW_PROBABILITY_ONE)
			fault.probability = max_t(u64, 1, div_u64(probability << 32,
								  CW_PROBABILITY_ONE));
	}
	mutex_lock(&cw_mutex);
	bus = cw_bus_of(info);
	err = PTR_ERR_OR_ZERO(bus);
	if (!err && info->attrs[CANWIRE_A_NODE]) {
		node = cw_node_of_info(info);
		err = PTR_ERR_OR_ZERO(node);
		if (!err && node->bus != bus) {
			NL_SET_ERR_MSG(info->extack, "this node is on another bus");
			err = -EINVAL;
		}
		if (!err)
			fault.slot = node->port.slot;
	}
	if (!err)
		cw_inject(&bus->wire, &fault);
	mutex_unlock(&cw_mutex);
	return err;
}

static int cw_cmd_bus_set(struct sk_buff *skb, struct genl_info *info)
{
	u64 slip = cw_u64(info, CANWIRE_A_SLIP_NS, 0), seed = cw_u64(info, CANWIRE_A_SEED, 1);
	struct cw_bus *bus;
	unsigned long flags;

	if (!seed || (slip != U64_MAX && slip > CW_PERIOD_NS_MAX)) {
		NL_SET_ERR_MSG(info->extack, "the slip limit is up to 1 h or ~0, a seed not 0");
		return -EINVAL;
	}
	mutex_lock(&cw_mutex);
	bus = cw_bus_of(info);
	if (!IS_ERR(bus)) {
		raw_spin_lock_irqsave(&bus->wire.lock, flags);
		if (info->attrs[CANWIRE_A_SLIP_NS])
			bus->wire.slip = slip == U64_MAX ? slip : 2 * slip;
		if (info->attrs[CANWIRE_A_SEED])
			bus->wire.random = seed;
		raw_spin_unlock_irqrestore(&bus->wire.lock, flags);
	}
	mutex_unlock(&cw_mutex);
	return PTR_ERR_OR_ZERO(bus);
}

static const struct genl_small_ops cw_operations[] = {
	{ .cmd = CANWIRE_CMD_NODE_ADD, .flags = GENL_ADMIN_PERM, .doit = cw_cmd_node_add },
	{ .cmd = CANWIRE_CMD_NODE_DELETE, .flags = GENL_ADMIN_PERM, .doit = cw_cmd_node_delete },
	{ .cmd = CANWIRE_CMD_NODE_GET, .doit = cw_cmd_node_get, .dumpit = cw_dump_nodes },
	{ .cmd = CANWIRE_CMD_BUS_GET, .doit = cw_cmd_bus_get, .dumpit = cw_dump_buses },
	{ .cmd = CANWIRE_CMD_BUS_SET, .flags = GENL_ADMIN_PERM, .doit = cw_cmd_bus_set },
	{ .cmd = CANWIRE_CMD_CONNECT, .flags = GENL_ADMIN_PERM, .doit = cw_cmd_connect },
	{ .cmd = CANWIRE_CMD_BABBLE, .flags = GENL_ADMIN_PERM, .doit = cw_cmd_babble },
	{ .cmd = CANWIRE_CMD_INJECT, .flags = GENL_ADMIN_PERM, .doit = cw_cmd_inject },
	{ .cmd = CANWIRE_CMD_SOURCE_LOAD, .flags = GENL_ADMIN_PERM, .doit = cw_cmd_source_load },
	{ .cmd = CANWIRE_CMD_SOURCE_START, .flags = GENL_ADMIN_PERM, .doit = cw_cmd_source_start },
	{ .cmd = CANWIRE_CMD_SOURCE_STOP, .flags = GENL_ADMIN_PERM, .doit = cw_cmd_source_stop },
};

struct genl_family cw_family = {
	.name = CANWIRE_GENL_NAME,
	.version = CANWIRE_GENL_VERSION,
	.maxattr = CANWIRE_A_MAX,
	.policy = cw_policy,
	.module = THIS_MODULE,
	.small_ops = cw_operations,
	.n_small_ops = ARRAY_SIZE(cw_operations),
	.netnsok = true,
	.parallel_ops = true,	/* cw_mutex is enough, and RTNL is taken inside */
};

int cw_netlink_register(void)
{
	return genl_register_family(&cw_family);
}

void cw_netlink_unregister(void)
{
	genl_unregister_family(&cw_family);
}
