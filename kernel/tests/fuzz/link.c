// SPDX-License-Identifier: GPL-2.0-only
/*
 * The interfaces of nodes by rtnetlink, as ip-link(8) sets them: up, down, bit rates, modes, restart,
 * MTU, another network namespace, deleted.
 */

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/can.h>
#include <linux/can/netlink.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "fuzz.h"

/* The first ones are names of canwire's nodes. */
#define NODE_NAMES	8

static const char *const names[] = {
	"wcan0", "fz0", "wcan1", "fz1", "wcan2", "fz2", "fz3", "fz4", "can0", "vcan0", "lo",
	"", "%d", "fz012345678901234", "a/b",
};

const char *node_name(struct worker *worker)
{
	return names[below(worker, one_in(worker, 16) ? sizeof(names) / sizeof(*names) :
				   one_in(worker, 4) ? NODE_NAMES : 4)];
}

int any_interface(struct worker *worker)
{
	static const char *const more[] = { "vcan0", "can0" };

	return one_in(worker, 8) ? (int)if_nametoindex(more[below(worker, 2)]) :
				   (int)if_nametoindex(node_name(worker));
}

/* Of canwire's nodes in this namespace: the drawn one, or the next that exists; 0: none does. */
int any_node(struct worker *worker)
{
	unsigned int first = below(worker, NODE_NAMES);
	int index = 0;

	for (unsigned int i = 0; i < NODE_NAMES && !index; i++)
		index = (int)if_nametoindex(names[(first + i) % NODE_NAMES]);
	return index;
}

static void begin(struct message *message, struct worker *worker, uint16_t type, int index,
		  unsigned int flags, unsigned int change)
{
	struct ifinfomsg info = { .ifi_index = index, .ifi_flags = flags, .ifi_change = change };

	message_begin(message, worker, type, 0);
	message_put(message, &info, sizeof(info));
}

static long set_flags(struct worker *worker, int index, unsigned int flags)
{
	struct message message;

	begin(&message, worker, RTM_NEWLINK, index, flags, IFF_UP);
	return message_send(&message, NETLINK_ROUTE);
}

#define U32_OF(speed, ...) { 0, sizeof(uint32_t), VALUES_OF(speed, __VA_ARGS__) }

static const struct field bitrates = U32_OF(BIT_RATE, 1000000, 500000, 125000, 20000, 8000000, 1);
static const struct field data_bitrates = U32_OF(BIT_RATE, 4000000, 1000000, 8000000, 1);
static const struct field prescalers = U32_OF(PRESCALER, 0, 1, 2, 8, 128, 256);
static const struct field quanta = U32_OF(NO_SPEED, 0, 1, 2, 8, 128, 256);
static const struct field modes =
	U32_OF(NO_SPEED, 0, CAN_CTRLMODE_LOOPBACK, CAN_CTRLMODE_LISTENONLY, CAN_CTRLMODE_ONE_SHOT,
	       CAN_CTRLMODE_BERR_REPORTING, CAN_CTRLMODE_FD, CAN_CTRLMODE_PRESUME_ACK,
	       CAN_CTRLMODE_CC_LEN8_DLC, CAN_CTRLMODE_FD_NON_ISO, CAN_CTRLMODE_3_SAMPLES);
static const struct field restarts = U32_OF(NO_SPEED, 10, 0, 1, 100, 0xffffffff);
static const struct field mtus = U32_OF(NO_SPEED, CAN_MTU, CANFD_MTU, 2060, 0, 0xffffffff);

/* Not what the kernel divides by 0 for (docs/upstream.md): a multiple of 2^22 times the quanta of a bit, in 32 bits. */
static uint32_t bitrate_of(struct worker *worker, const struct field *rates)
{
	uint32_t bitrate = value_of(worker, rates);

	return !kernel_is_mended && bitrate && !(bitrate & 0x3fffff) ? bitrate | 1 : bitrate;
}

static void put_timing(struct message *message, uint16_t type, const struct field *rates)
{
	struct worker *worker = message->worker;
	struct can_bittiming timing = { .bitrate = bitrate_of(worker, rates) };

	if (one_in(worker, 6)) {
		timing.bitrate = 0;
		timing.tq = any_value(worker, 4) * slower;
		timing.brp = value_of(worker, &prescalers);
		timing.prop_seg = value_of(worker, &quanta);
		timing.phase_seg1 = value_of(worker, &quanta);
		timing.phase_seg2 = value_of(worker, &quanta);
		timing.sjw = value_of(worker, &quanta);
	}
	message_attribute(message, type, &timing, sizeof(timing));
}

/* "ip link set NAME type can ..." */
static long set_can(struct worker *worker, const struct row *row)
{
	struct can_ctrlmode mode = { .mask = 0xffffffff, .flags = value_of(worker, &modes) };
	uint32_t restart = value_of(worker, &restarts), one = 1;
	unsigned int info, data;
	struct message message;

	(void)row;
	begin(&message, worker, RTM_NEWLINK, any_interface(worker), 0, 0);
	info = message_nest(&message, IFLA_LINKINFO);
	message_attribute(&message, IFLA_INFO_KIND, "can", 4);
	data = message_nest(&message, IFLA_INFO_DATA);
	if (!one_in(worker, 3))
		put_timing(&message, IFLA_CAN_BITTIMING, &bitrates);
	if (one_in(worker, 2)) {
		mode.mask = one_in(worker, 4) ? mode.flags : 0xff;
		message_attribute(&message, IFLA_CAN_CTRLMODE, &mode, sizeof(mode));
	}
	if (mode.flags & CAN_CTRLMODE_FD || one_in(worker, 8))
		put_timing(&message, IFLA_CAN_DATA_BITTIMING, &data_bitrates);
	if (one_in(worker, 4))
		message_attribute(&message, IFLA_CAN_RESTART_MS, &restart, sizeof(restart));
	if (one_in(worker, 6))
		message_attribute(&message, IFLA_CAN_RESTART, &one, sizeof(one));
	message_nest_end(&message, data);
	message_nest_end(&message, info);
	return message_send(&message, NETLINK_ROUTE);
}

static long set_other(struct worker *worker, const struct row *row)
{
	uint32_t mtu = value_of(worker, &mtus), queue = any_value(worker, 4) % 5000;
	struct message message;

	(void)row;
	begin(&message, worker, RTM_NEWLINK, any_interface(worker), 0, 0);
	if (one_in(worker, 2))
		message_attribute(&message, IFLA_MTU, &mtu, sizeof(mtu));
	else
		message_attribute(&message, IFLA_TXQLEN, &queue, sizeof(queue));
	return message_send(&message, NETLINK_ROUTE);
}

/* To the namespace of the first process, from that of another one; or the other way. */
static long move(struct worker *worker, const struct row *row)
{
	uint32_t process = one_in(worker, 2) ? 1 : worker->process;
	struct message message;

	(void)row;
	begin(&message, worker, RTM_NEWLINK, any_interface(worker), 0, 0);
	message_attribute(&message, IFLA_NET_NS_PID, &process, sizeof(process));
	return message_send(&message, NETLINK_ROUTE);
}

static long delete(struct worker *worker, const struct row *row)
{
	struct message message;

	(void)row;
	begin(&message, worker, RTM_DELLINK, any_interface(worker), 0, 0);
	return message_send(&message, NETLINK_ROUTE);
}

static long get(struct worker *worker, const struct row *row)
{
	struct message message;

	(void)row;
	begin(&message, worker, RTM_GETLINK, any_interface(worker), 0, 0);
	return message_send(&message, NETLINK_ROUTE);
}

/* NAPI in a thread, or in a softirq again. */
static long set_threaded(struct worker *worker, const struct row *row)
{
	const char *name = node_name(worker);
	char path[96];

	(void)row;
	if (!*name || strchr(name, '/'))
		return -ENODEV;
	snprintf(path, sizeof(path), "/sys/class/net/%s/threaded", name);
	return write_text(path, one_in(worker, 2) ? "1" : "0");
}

long link_up(struct worker *worker, const char *name, uint32_t bitrate, bool fd)
{
	struct can_ctrlmode mode = { .mask = CAN_CTRLMODE_FD, .flags = fd ? CAN_CTRLMODE_FD : 0 };
	struct can_bittiming timing = { .bitrate = bitrate };
	unsigned int info, data;
	struct message message;

	begin(&message, worker, RTM_NEWLINK, if_nametoindex(name), IFF_UP, IFF_UP);
	info = message_nest(&message, IFLA_LINKINFO);
	message_attribute(&message, IFLA_INFO_KIND, "can", 4);
	data = message_nest(&message, IFLA_INFO_DATA);
	message_attribute(&message, IFLA_CAN_BITTIMING, &timing, sizeof(timing));
	message_attribute(&message, IFLA_CAN_CTRLMODE, &mode, sizeof(mode));
	if (fd)
		message_attribute(&message, IFLA_CAN_DATA_BITTIMING, &timing, sizeof(timing));
	message_nest_end(&message, data);
	message_nest_end(&message, info);
	return message_send(&message, NETLINK_ROUTE);
}

long link_down(struct worker *worker, const char *name)
{
	return set_flags(worker, if_nametoindex(name), 0);
}

static long up(struct worker *worker, const struct row *row)
{
	(void)row;
	if (one_in(worker, 2))
		return link_up(worker, node_name(worker), bitrate_of(worker, &bitrates),
			       one_in(worker, 2));
	return set_flags(worker, any_interface(worker), IFF_UP);
}

static long down(struct worker *worker, const struct row *row)
{
	(void)row;
	return set_flags(worker, any_interface(worker), 0);
}

static const struct row rows[] = {
	{ "up", 12, up, NULL },
	{ "down", 4, down, NULL },
	{ "can", 12, set_can, NULL },
	{ "other", 2, set_other, NULL },
	{ "move", 1, move, NULL },
	{ "delete", 1, delete, NULL },
	{ "get", 2, get, NULL },
	{ "threaded", 2, set_threaded, NULL },
};

const struct table link_table = { "link", ROWS(rows) };
