// SPDX-License-Identifier: GPL-2.0-only
/*
 * Packet sockets, which send anything as any protocol of CAN, and raw CAN sockets, at nodes of
 * canwire and at vcan.
 */

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/can.h>
#include <linux/can/raw.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <arpa/inet.h>

#include "fuzz.h"

#ifndef ETH_P_CANXL
#define ETH_P_CANXL	0x000E
#endif

static const uint16_t protocols[] = { ETH_P_CAN, ETH_P_CANFD, ETH_P_CANXL, ETH_P_ALL, ETH_P_IP, 0 };

/* Not where the kernel divides by 0 when the interface goes meanwhile (docs/upstream.md). */
void bypass_queue(struct worker *worker, int fd)
{
	int one = 1;

	if (one_in(worker, 2) && kernel_is_mended)
		setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one));
}

static long open_packet(struct worker *worker, const struct row *row)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocols[below(worker, 6)]),
		.sll_ifindex = any_interface(worker),
	};
	int fd = socket(AF_PACKET, (one_in(worker, 2) ? SOCK_RAW : SOCK_DGRAM) | SOCK_NONBLOCK, 0);
	int one = 1;

	(void)row;
	if (fd < 0)
		return -errno;
	bypass_queue(worker, fd);
	if (one_in(worker, 16))
		setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one));
	if (one_in(worker, 2))
		bind(fd, (void *)&at, sizeof(at));
	return keep(worker, PACKET, fd);
}

/* Of a struct canxl_frame: flags with CANXL_XLF, and a len that agrees with the packet's. */
static void make_canxl(char *frame, size_t bytes)
{
	uint16_t len = bytes - 12;

	frame[4] |= 0x80;
	memcpy(frame + 6, &len, sizeof(len));
}

/* Mostly of a size that the kernel's own checks let through for the protocol at some MTU. */
static size_t packet_size(struct worker *worker, uint16_t protocol)
{
	static const size_t sizes[] = { 16, 72, 0, 1, 8, 12, 13, 14, 15, 17, 64, 71, 73, 76, 2060,
					2061, 2072, 4096 };

	if (one_in(worker, 4))
		return sizes[below(worker, sizeof(sizes) / sizeof(*sizes))];
	switch (protocol) {
	case ETH_P_CANXL:
		return one_in(worker, 4) ? 17 + below(worker, 56) : 13 + below(worker, 4);
	case ETH_P_CANFD:
		return CANFD_MTU;
	default:
		return CAN_MTU;
	}
}

static long send_packet(struct worker *worker, const struct row *row)
{
	uint16_t protocol = protocols[below(worker, one_in(worker, 4) ? 6 : 3)];
	size_t bytes = packet_size(worker, protocol);
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = any_interface(worker),
		.sll_halen = one_in(worker, 16) ? any_value(worker, 1) : 0,
	};
	unsigned int count = 1 + below(worker, 8);
	int fd = slot(worker, PACKET);
	long result = 0;

	(void)row;
	for (unsigned int i = 0; i < count && result >= 0; i++) {
		fill_can_frame(worker, worker->scratch, bytes);
		if (protocol == ETH_P_CANXL && bytes > 12 && !one_in(worker, 4))
			make_canxl(worker->scratch, bytes);
		result = made(sendto(fd, worker->scratch, bytes, MSG_DONTWAIT, (void *)&to,
				     sizeof(to)));
	}
	return result;
}

/* Of a raw socket: a struct can_frame or canfd_frame with a length that it has room for. */
static void check_frame(const char *bytes, ssize_t len)
{
	const struct canfd_frame *frame = (const void *)bytes;

	if ((len != CAN_MTU || frame->len > CAN_MAX_DLEN) &&
	    (len != CANFD_MTU || frame->len > CANFD_MAX_DLEN))
		found_wrong("a raw socket receives %zd bytes, a frame of %u", len, frame->len);
}

static long receive(struct worker *worker, const struct row *row)
{
	int fd = slot(worker, (enum kind)(uintptr_t)row->data);
	long result = -EAGAIN;

	for (unsigned int i = 0; i < 16; i++) {
		struct sockaddr_storage from = {};
		socklen_t bytes = sizeof(from);
		ssize_t len = recvfrom(fd, worker->scratch, 4096, MSG_DONTWAIT, (void *)&from, &bytes);

		if (len < 0)
			return i ? result : -errno;
		if (from.ss_family == AF_CAN)	/* of a packet socket: AF_PACKET */
			check_frame(worker->scratch, len);
		result = len;
	}
	return result;
}

static long open_raw(struct worker *worker, const struct row *row)
{
	struct sockaddr_can at = {
		.can_family = AF_CAN,
		.can_ifindex = one_in(worker, 2) ? 0 : any_interface(worker),
	};
	int fd = socket(AF_CAN, SOCK_RAW | SOCK_NONBLOCK, CAN_RAW), one = 1;
	can_err_mask_t errors = CAN_ERR_MASK;

	(void)row;
	if (fd < 0)
		return -errno;
	if (!one_in(worker, 3))
		setsockopt(fd, SOL_CAN_RAW, CAN_RAW_FD_FRAMES, &one, sizeof(one));
	if (one_in(worker, 2))
		setsockopt(fd, SOL_CAN_RAW, CAN_RAW_ERR_FILTER, &errors, sizeof(errors));
	if (one_in(worker, 2))
		setsockopt(fd, SOL_CAN_RAW, CAN_RAW_RECV_OWN_MSGS, &one, sizeof(one));
	if (one_in(worker, 4))
		setsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &one, sizeof(one));
	if (one_in(worker, 4)) {
		one = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_HARDWARE |
		      SOF_TIMESTAMPING_TX_HARDWARE | SOF_TIMESTAMPING_RAW_HARDWARE;
		setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &one, sizeof(one));
	}
	if (!one_in(worker, 16) && bind(fd, (void *)&at, sizeof(at))) {
		close(fd);
		return -errno;
	}
	return keep(worker, RAW, fd);
}

/* A burst: it fills the queues of a node. */
static long send_raw(struct worker *worker, const struct row *row)
{
	size_t bytes = one_in(worker, 16) ? below(worker, 80) :
					    one_in(worker, 2) ? CAN_MTU : CANFD_MTU;
	struct sockaddr_can to = { .can_family = AF_CAN, .can_ifindex = any_interface(worker) };
	unsigned int count = 1 + below(worker, 8);
	int fd = slot(worker, RAW);
	long result = 0;

	(void)row;
	for (unsigned int i = 0; i < count && result >= 0; i++) {
		fill_can_frame(worker, worker->scratch, bytes);
		result = made(sendto(fd, worker->scratch, bytes, MSG_DONTWAIT, (void *)&to,
				     sizeof(to)));
	}
	return result;
}

/* Of the interface: stamps by hardware, as ethtool(8) and hwstamp_ctl(8) ask for them. */
static long interface_ioctl(struct worker *worker, const struct row *row)
{
	static const unsigned long requests[] = { SIOCSHWTSTAMP, SIOCGHWTSTAMP, SIOCETHTOOL };
	static const unsigned int commands[] = { ETHTOOL_GET_TS_INFO, ETHTOOL_GDRVINFO,
						 ETHTOOL_GLINK, ETHTOOL_GRINGPARAM };
	struct ifreq request = {};

	(void)row;
	strncpy(request.ifr_name, node_name(worker), sizeof(request.ifr_name) - 1);
	fill_bytes(worker, worker->scratch, 256);
	for (unsigned int i = 0; i < 3; i++)
		((uint32_t *)worker->scratch)[i] = below(worker, 4);
	request.ifr_data = worker->scratch;
	if (below(worker, 2))
		*(uint32_t *)worker->scratch = commands[below(worker, 4)];
	return made(ioctl(slot(worker, RAW), requests[below(worker, 3)], &request));
}

static const struct row rows[] = {
	{ "packet open", 3, open_packet, NULL },
	{ "packet close", 1, close_one, (void *)PACKET },
	{ "packet send", 12, send_packet, NULL },
	{ "packet ring", 2, send_by_ring, NULL },
	{ "packet receive", 3, receive, (void *)PACKET },
	{ "raw open", 4, open_raw, NULL },
	{ "raw close", 1, close_one, (void *)RAW },
	{ "raw send", 16, send_raw, NULL },
	{ "raw receive", 6, receive, (void *)RAW },
	{ "raw poll", 2, poll_one, (void *)RAW },
	{ "interface ioctl", 1, interface_ioctl, NULL },
};

const struct table socket_table = { "socket", ROWS(rows) };
