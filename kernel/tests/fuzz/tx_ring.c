// SPDX-License-Identifier: GPL-2.0-only
/*
 * PACKET_TX_RING (packet_mmap): frames in a mapped ring, sent by one call. The kernel makes packets of
 * the ring's pages; a node of canwire gets them as it gets those of sendto(2), and says in tp_status
 * when it has freed one.
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/can.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "fuzz.h"

#define BLOCK_BYTES	4096
#define BLOCKS		4
#define SLOT_BYTES	256
#define RING_SLOTS	(BLOCKS * BLOCK_BYTES / SLOT_BYTES)

/* Where the kernel looks for the packet of a slot, without PACKET_TX_HAS_OFF. */
#define DATA_AT		(TPACKET2_HDRLEN - sizeof(struct sockaddr_ll))

static char *map_ring(int fd)
{
	struct tpacket_req ring = { BLOCK_BYTES, BLOCKS, SLOT_BYTES, RING_SLOTS };
	int version = TPACKET_V2;

	if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &ring, sizeof(ring)))
		return MAP_FAILED;
	return mmap(NULL, BLOCKS * BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static void fill_slot(struct worker *worker, char *slot, size_t usual)
{
	static const uint64_t states[] = { TP_STATUS_SEND_REQUEST, TP_STATUS_AVAILABLE, TP_STATUS_SENDING,
					   TP_STATUS_WRONG_FORMAT, 0xffffffff };
	static const uint64_t lens[] = { CAN_MTU, CANFD_MTU, 0, 1, 15, 17, 71, 73, SLOT_BYTES, 0xffffffff };
	const struct field state = { 0, 4, 5, NO_SPEED, NULL, states };
	const struct field len = { 0, 4, 10, NO_SPEED, NULL, lens };
	struct tpacket2_hdr *header = (void *)slot;

	fill_can_frame(worker, slot + DATA_AT, usual);
	header->tp_len = one_in(worker, 4) ? value_of(worker, &len) : usual;
	header->tp_snaplen = header->tp_len;
	/* The kernel sends from here on, in whichever thread. */
	__atomic_store_n(&header->tp_status, one_in(worker, 4) ? value_of(worker, &state) : TP_STATUS_SEND_REQUEST,
			 __ATOMIC_RELEASE);
}

static long send_ring(struct worker *worker, int fd, char *ring)
{
	uint16_t protocol = one_in(worker, 2) ? ETH_P_CAN : ETH_P_CANFD;
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = one_in(worker, 16) ? any_interface(worker) : any_node(worker),
	};
	unsigned int at = 0, rounds = 1 + below(worker, 4);
	long result = 0;

	for (unsigned int i = 0; i < rounds && result >= 0; i++) {
		unsigned int count = 1 + below(worker, RING_SLOTS);

		for (; count; count--, at = (at + 1) % RING_SLOTS)
			fill_slot(worker, ring + at * SLOT_BYTES, protocol == ETH_P_CAN ? CAN_MTU : CANFD_MTU);
		result = made(sendto(fd, NULL, 0, one_in(worker, 8) ? 0 : MSG_DONTWAIT, (void *)&to,
				     sizeof(to)));
	}
	return result;
}

/* A socket, its ring, and what is sent; the socket is closed while a node may have frames of it. */
long send_by_ring(struct worker *worker, const struct row *row)
{
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), one = 1;
	long result;
	char *ring;

	(void)row;
	if (fd < 0)
		return -errno;
	bypass_queue(worker, fd);
	if (one_in(worker, 2))	/* drops what has a wrong length instead of stopping there */
		setsockopt(fd, SOL_PACKET, PACKET_LOSS, &one, sizeof(one));
	ring = map_ring(fd);
	result = ring == MAP_FAILED ? -errno : send_ring(worker, fd, ring);
	if (ring != MAP_FAILED)
		munmap(ring, BLOCKS * BLOCK_BYTES);
	close(fd);
	return result;
}
