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

/**
 * struct cw_bus - a bus
 * @name: its name
 * @wire: the wire
 * @source: the source
 * @tap: the tap
 * @list: of all buses
 * @slots: taken by nodes, up or not
 */
struct cw_bus {
	char name[CANWIRE_BUS_NAME_SIZE];
	struct cw_wire wire;
	struct cw_source source;
	struct cw_tap *tap;
	struct list_head list;
	u64 slots;
};

extern struct mutex cw_mutex;
extern struct list_head cw_buses, cw_nodes;

/**
 * cw_bus_is_visible() - whether a bus has a node in a network namespace
 * @tap: the tap
 * @net: the network namespace
 *
 * Return: true or false
 */
bool cw_bus_is_visible(const struct cw_tap *tap, const struct net *net);

/**
 * cw_bus_find() - finds a bus; under cw_mutex
 * @name: its name
 *
 * Return: the bus or NULL
 */
struct cw_bus *cw_bus_find(const char *name);

/**
 * cw_node_find() - finds a node; under cw_mutex
 * @net: the network namespace
 * @name: its name
 *
 * Return: the node or NULL
 */
struct cw_node *cw_node_find(struct net *net, const char *name);

/**
 * cw_node_add() - creates a node, and the bus when it is its first one; under cw_mutex
 * @net: the network namespace
 * @name: its name
 * @bus: the bus
 * @config: its controller
 *
 * Return: 0 or an error
 */
int cw_node_add(struct net *net, const char *name, const char *bus,
		const struct cw_node_config *config);

/**
 * cw_node_remove() - deletes a node, and the bus when it was its last one; under cw_mutex
 * @node: the node
 */
void cw_node_remove(struct cw_node *node);

/* netlink.c */

/**
 * cw_netlink_register() - registers the generic netlink family
 *
 * Return: 0 or an error
 */
int cw_netlink_register(void);

/**
 * cw_netlink_unregister() - unregisters the generic netlink family
 */
void cw_netlink_unregister(void);

#endif
