// SPDX-License-Identifier: GPL-2.0-only
/*
 * canwire: a virtual CAN bus with bit timing. The module, its parameters, and the lists of buses
 * and nodes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "../compat.h"
#include "bus.h"

static char *nodes;
module_param(nodes, charp, 0444);
MODULE_PARM_DESC(nodes, "nodes to make, as name:bus,name:bus,...");

static uint fifo_bytes;
module_param(fifo_bytes, uint, 0444);
MODULE_PARM_DESC(fifo_bytes, "their receive FIFO in bytes (default: 64, or 32 frames while FD is on)");

static uint fifo_frames;
module_param(fifo_frames, uint, 0444);
MODULE_PARM_DESC(fifo_frames, "their receive FIFO in frames instead");

static uint tx_buffers = CW_TX_BUFFERS_DEFAULT;
module_param(tx_buffers, uint, 0444);
MODULE_PARM_DESC(tx_buffers, "their transmit buffers, 1 to 3 (default 2)");

static ulong slip_ns;
module_param(slip_ns, ulong, 0644);
MODULE_PARM_DESC(slip_ns, "of buses made from now on: lateness of the machine in ns above which the wire waits (default 0: three frames)");

static uint tap_records = CW_TAP_RECORDS_DEFAULT;
module_param(tap_records, uint, 0444);
MODULE_PARM_DESC(tap_records, "frames that a tap remembers, a power of two (default 16384)");

/* Guards the lists of buses and nodes; taken outside of RTNL. */
DEFINE_MUTEX(cw_mutex);
/* Guards cw_nodes for cw_bus_is_visible(), which runs where cw_mutex must not be taken. */
static DEFINE_SPINLOCK(cw_nodes_lock);
/*
 * Whether taps have their devices. Not before the module is sure to stay: one that fails to load is
 * freed, whatever files of its are open. Under cw_mutex.
 */
static bool cw_taps_exposed;
LIST_HEAD(cw_buses);
LIST_HEAD(cw_nodes);

struct cw_bus *cw_bus_find(const char *name)
{
	struct cw_bus *bus;

	list_for_each_entry(bus, &cw_buses, list)
		if (!strcmp(bus->name, name))
			return bus;
	return NULL;
}

struct cw_node *cw_node_find(struct net *net, const char *name)
{
	struct net_device *dev = dev_get_by_name(net, name);
	struct cw_node *node = cw_node_of(dev);

	/* Nodes go only under cw_mutex, so it stays without the reference. */
	dev_put(dev);
	return node;
}

/*
 * Whether processes of a network namespace may see the frames of the bus with this tap: those that
 * have a node of it, whose sockets see them, too.
 */
bool cw_bus_is_visible(const struct cw_tap *tap, const struct net *net)
{
	const struct cw_node *node;
	bool visible = false;

	spin_lock(&cw_nodes_lock);
	list_for_each_entry(node, &cw_nodes, list)
		visible |= node->bus->tap == tap && net_eq(dev_net(node->dev), net);
	spin_unlock(&cw_nodes_lock);
	return visible;
}

/* The bus's device file has this name. */
static bool cw_bus_name_is_valid(const char *name)
{
	size_t i;

	for (i = 0; name[i]; i++)
		if (!isalnum(name[i]) && name[i] != '-' && name[i] != '_')
			return false;
	return i > 0 && i < CANWIRE_BUS_NAME_SIZE;
}

/* 6.1.0 has no function that counts a list. */
static bool cw_too_many_buses(void)
{
	struct list_head *each;
	unsigned int count = 0;

	list_for_each(each, &cw_buses)
		count++;
	return count >= CW_BUSES_MAX;
}

static struct cw_bus *cw_bus_make(const char *name)
{
	struct cw_bus *bus;
	int err;

	if (!cw_bus_name_is_valid(name))
		return ERR_PTR(-EINVAL);
	if (cw_too_many_buses())
		return ERR_PTR(-ENOSPC);
	bus = kzalloc(sizeof(*bus), GFP_KERNEL);
	if (!bus)
		return ERR_PTR(-ENOMEM);
	strscpy(bus->name, name, sizeof(bus->name));
	bus->tap = cw_tap_make(name, tap_records);
	if (IS_ERR(bus->tap)) {
		err = PTR_ERR(bus->tap);
		goto free_bus;
	}
	err = cw_taps_exposed ? cw_tap_expose(bus->tap) : 0;
	if (err)
		goto destroy_tap;
	cw_wire_init(&bus->wire, &bus->source, bus->tap);
	bus->wire.slip = slip_ns == ULONG_MAX ? U64_MAX : 2 * (u64)slip_ns;
	cw_source_init(&bus->source, &bus->wire);
	list_add_tail(&bus->list, &cw_buses);
	return bus;

destroy_tap:
	cw_tap_destroy(bus->tap);
free_bus:
	kfree(bus);
	return ERR_PTR(err);
}

static void cw_bus_destroy(struct cw_bus *bus)
{
	list_del(&bus->list);
	cw_source_destroy(&bus->source);
	cw_wire_stop(&bus->wire);
	cw_tap_destroy(bus->tap);
	kfree(bus);
}

int cw_node_add(struct net *net, const char *name, const char *bus_name,
		const struct cw_node_config *config)
{
	struct cw_bus *bus = cw_bus_find(bus_name);
	struct cw_node *node;
	u32 slot;

	if (!bus)
		bus = cw_bus_make(bus_name);
	if (IS_ERR(bus))
		return PTR_ERR(bus);
	if (bus->slots == U64_MAX)
		return -ENOSPC;
	slot = __ffs64(~bus->slots);
	node = cw_node_make(net, name, bus, &bus->wire, slot, config);
	if (IS_ERR(node)) {
		if (!bus->slots)
			cw_bus_destroy(bus);
		return PTR_ERR(node);
	}
	bus->slots |= BIT_ULL(slot);
	spin_lock(&cw_nodes_lock);
	list_add_tail(&node->list, &cw_nodes);
	spin_unlock(&cw_nodes_lock);
	return 0;
}

void cw_node_remove(struct cw_node *node)
{
	struct cw_bus *bus = node->bus;
	u8 slot = node->port.slot;

	cw_driver_leave(node);
	spin_lock(&cw_nodes_lock);
	list_del(&node->list);
	spin_unlock(&cw_nodes_lock);
	bus->slots &= ~BIT_ULL(slot);
	cw_node_destroy(node);
	cw_wire_forget_fault(&bus->wire, slot);
	if (!bus->slots)
		cw_bus_destroy(bus);
}

static void cw_remove_all(void)
{
	struct cw_node *node, *next;

	mutex_lock(&cw_mutex);
	list_for_each_entry_safe(node, next, &cw_nodes, list)
		cw_node_remove(node);
	mutex_unlock(&cw_mutex);
}

/* "name:bus,name:bus" */
static int cw_add_from_parameter(void)
{
	const struct cw_node_config config = {
		.fifo_bytes = fifo_bytes,
		.fifo_frames = fifo_frames,
		.tx_buffers = tx_buffers,
	};
	char *copy, *rest, *name, *bus;
	int err = 0;

	if (!nodes || !*nodes)
		return 0;
	copy = kstrdup(nodes, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	rest = copy;
	mutex_lock(&cw_mutex);
	while (!err && (name = strsep(&rest, ",")) != NULL) {
		bus = strchr(name, ':');
		if (bus)
			*bus++ = '\0';
		if (!bus || strchr(name, '%') || !dev_valid_name(name))
			err = -EINVAL;
		else
			err = cw_node_add(&init_net, name, bus, &config);
		if (err)
			pr_err("node '%s' of parameter nodes=%s: error %d (wanted: name:bus,name:bus)\n",
			       name, nodes, err);
	}
	mutex_unlock(&cw_mutex);
	kfree(copy);
	return err;
}

static int cw_check_parameters(void)
{
	bool bytes = !fifo_bytes ||
		     (fifo_bytes >= CW_FIFO_BYTES_MIN && fifo_bytes <= CW_FIFO_BYTES_MAX);

	if (!bytes || fifo_frames > CW_FIFO_FRAMES_MAX || (fifo_bytes && fifo_frames)) {
		pr_err("fifo_bytes is %d to %d, or fifo_frames 1 to %d, not both\n",
		       CW_FIFO_BYTES_MIN, CW_FIFO_BYTES_MAX, CW_FIFO_FRAMES_MAX);
		return -EINVAL;
	}
	if (tx_buffers < 1 || tx_buffers > CW_TX_BUFFERS_MAX) {
		pr_err("tx_buffers is 1 to %d\n", CW_TX_BUFFERS_MAX);
		return -EINVAL;
	}
	if (!is_power_of_2(tap_records) || tap_records < CW_TAP_RECORDS_MIN ||
	    tap_records > CW_TAP_RECORDS_MAX) {
		pr_err("tap_records is a power of two, %d to %d\n", CW_TAP_RECORDS_MIN,
		       CW_TAP_RECORDS_MAX);
		return -EINVAL;
	}
	return 0;
}

/* From here on the module must not fail to load. */
static void cw_expose_taps(void)
{
	struct cw_bus *bus;
	int err;

	mutex_lock(&cw_mutex);
	cw_taps_exposed = true;
	list_for_each_entry(bus, &cw_buses, list) {
		err = cw_tap_expose(bus->tap);
		if (err)
			pr_err("bus '%s' has no tap: error %d\n", bus->name, err);
	}
	mutex_unlock(&cw_mutex);
}

static int __init cw_init(void)
{
	int err;

	err = cw_check_parameters();
	if (err)
		return err;
	cw_bits_init();
	err = cw_add_from_parameter();
	if (err)
		goto remove;
	err = cw_netlink_register();
	if (err)
		goto remove;
	cw_expose_taps();
	return 0;

remove:
	cw_remove_all();
	return err;
}

static void __exit cw_exit(void)
{
	cw_netlink_unregister();	/* no command runs any more */
	cw_remove_all();
}

module_init(cw_init);
module_exit(cw_exit);
MODULE_AUTHOR("The canter developers");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Virtual CAN bus that has time");
MODULE_VERSION("1");
