/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Buses and nodes by name: for netlink and the module parameters. All of it under
 * cw_mutex, which is taken outside of RTNL.
 */
#ifndef CANWIRE_BUS_H
#define CANWIRE_BUS_H

#include <linux/list.h>
#include <linux/mutex.h>

#include "node.h"
#include "source.h"
#include "tap.h"
#include "wire.h"

#define CW_BUSES_MAX	32

struct cw_bus {
	char name[CANWIRE_BUS_NAME_SIZE];
	struct cw_wire wire;
	struct cw_source source;
	struct cw_tap *tap;
	struct list_head list;	/* in cw_buses */
	u64 slots;		/* taken by nodes, up or not */
};

extern struct mutex cw_mutex;
extern struct list_head cw_buses, cw_nodes;

/* Whether a bus has a node in a network namespace. */
bool cw_bus_is_visible(const struct cw_tap *tap, const struct net *net);

struct cw_bus *cw_bus_find(const char *name);
struct cw_node *cw_node_find(struct net *net, const char *name);

/* Creates a node, and the bus when it is its first one. */
int cw_node_add(struct net *net, const char *name, const char *bus,
		const struct cw_node_config *config);

/* Deletes a node, and the bus when it was its last one. */
void cw_node_remove(struct cw_node *node);

/* netlink.c */
int cw_netlink_register(void);
void cw_netlink_unregister(void);

#endif
