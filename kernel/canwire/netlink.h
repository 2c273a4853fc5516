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

/* Whether a controller can send a frame; clears unused fields. */
bool cw_frame_is_valid(struct canfd_frame *frame);

/* The bus or node that a request names, or an error pointer and a message; under cw_mutex. */
struct cw_bus *cw_bus_of(struct genl_info *info);
struct cw_node *cw_node_of_info(struct genl_info *info);

/* netlink_source.c */
int cw_cmd_source_load(struct sk_buff *skb, struct genl_info *info);
int cw_cmd_source_start(struct sk_buff *skb, struct genl_info *info);
int cw_cmd_source_stop(struct sk_buff *skb, struct genl_info *info);

/* netlink_get.c: one node, one bus; many nodes, all buses */
int cw_cmd_node_get(struct sk_buff *skb, struct genl_info *info);
int cw_cmd_bus_get(struct sk_buff *skb, struct genl_info *info);
int cw_dump_nodes(struct sk_buff *skb, struct netlink_callback *cb);
int cw_dump_buses(struct sk_buff *skb, struct netlink_callback *cb);

#endif
