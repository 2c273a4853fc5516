/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generic netlink, in three files: netlink.c has the family and the commands for nodes and faults,
 * netlink_source.c those for the source, netlink_get.c the lists.
 */
#ifndef CANWIRE_NETLINK_H
#define CANWIRE_NETLINK_H

#include <net/genetlink.h>

#include "bus.h"

#define CW_PERIOD_NS_MIN	1000
#define CW_PERIOD_NS_MAX	(3600ULL * NSEC_PER_SEC)
/* Twice as much, in half ns, still has room for a schedule. */
#define CW_START_NS_MAX		BIT_ULL(62)

extern struct genl_family cw_family;

/* Whether an attribute is present; if not, sets the error message. */
#define cw_has(info, name) ({ \
	struct genl_info *_info = (info); \
	bool has_it = _info->attrs[CANWIRE_A_##name]; \
	\
	if (!has_it) \
		NL_SET_ERR_MSG(_info->extack, "attribute " #name " is missing"); \
	has_it; \
})

static inline u32 cw_u32(struct genl_info *info, int attribute, u32 otherwise)
{
	return info->attrs[attribute] ? nla_get_u32(info->attrs[attribute]) : otherwise;
}

static inline u64 cw_u64(struct genl_info *info, int attribute, u64 otherwise)
{
	return info->attrs[attribute] ? nla_get_u64(info->attrs[attribute]) : otherwise;
}

/**
 * cw_frame_is_valid() - whether a controller can send a frame; clears unused fields
 * @frame: the frame
 *
 * Return: true or false
 */
bool cw_frame_is_valid(struct canfd_frame *frame);

/**
 * cw_bus_of() - the bus that a request names; under cw_mutex
 * @info: the request
 *
 * Return: the bus, or an error pointer with a message
 */
struct cw_bus *cw_bus_of(struct genl_info *info);

/**
 * cw_node_of_info() - the node that a request names; under cw_mutex
 * @info: the request
 *
 * Return: the node, or an error pointer with a message
 */
struct cw_node *cw_node_of_info(struct genl_info *info);

/* netlink_source.c */

/**
 * cw_cmd_source_load() - CANWIRE_CMD_SOURCE_LOAD
 * @skb: the message
 * @info: the request
 *
 * Return: 0 or an error
 */
int cw_cmd_source_load(struct sk_buff *skb, struct genl_info *info);

/**
 * cw_cmd_source_start() - CANWIRE_CMD_SOURCE_START
 * @skb: the message
 * @info: the request
 *
 * Return: 0 or an error
 */
int cw_cmd_source_start(struct sk_buff *skb, struct genl_info *info);

/**
 * cw_cmd_source_stop() - CANWIRE_CMD_SOURCE_STOP
 * @skb: the message
 * @info: the request
 *
 * Return: 0 or an error
 */
int cw_cmd_source_stop(struct sk_buff *skb, struct genl_info *info);

/* netlink_get.c */

/**
 * cw_cmd_node_get() - CANWIRE_CMD_NODE_GET of one node
 * @skb: the message
 * @info: the request
 *
 * Return: 0 or an error
 */
int cw_cmd_node_get(struct sk_buff *skb, struct genl_info *info);

/**
 * cw_cmd_bus_get() - CANWIRE_CMD_BUS_GET of one bus
 * @skb: the message
 * @info: the request
 *
 * Return: 0 or an error
 */
int cw_cmd_bus_get(struct sk_buff *skb, struct genl_info *info);

/**
 * cw_dump_nodes() - CANWIRE_CMD_NODE_GET of many nodes
 * @skb: the message
 * @cb: the dump
 *
 * Return: bytes in the message, or an error
 */
int cw_dump_nodes(struct sk_buff *skb, struct netlink_callback *cb);

/**
 * cw_dump_buses() - CANWIRE_CMD_BUS_GET of all buses
 * @skb: the message
 * @cb: the dump
 *
 * Return: bytes in the message, or an error
 */
int cw_dump_buses(struct sk_buff *skb, struct netlink_callback *cb);

#endif
