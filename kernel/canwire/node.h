/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A node: a CAN controller on a wire, and the network device in front of it.
 *
 * Three files: node.c is the network device, controller.c the wire's side (under its lock, in hard
 * interrupt), handover.c the delivery to the stack by NAPI.
 */
#ifndef CANWIRE_NODE_H
#define CANWIRE_NODE_H

#include <linux/can/dev.h>
#include <linux/list.h>
#include <linux/netdevice.h>

#include "wire.h"

struct cw_bus;

/* Of the ring of transmit buffers, a power of two above CW_TX_BUFFERS_MAX. */
#define CW_TX_RING		4

enum cw_node_state {
	CW_NODE_DOWN,
	CW_NODE_ON,		/* in its wire's ports */
	CW_NODE_MOVING,		/* between two wires; frames to send wait */
	CW_NODE_BUS_OFF,	/* frames to send are lost */
};

/**
 * struct cw_received - a frame in the receive FIFO
 * @end: half ns
 * @frame: the frame
 */
struct cw_received {
	u64 end;
	struct canfd_frame frame;
};

/**
 * struct cw_events - what NAPI reports to the stack beside frames
 * @any: there is something to report
 * @overrun: frames were lost
 * @lost: arbitration, at bit lost_bit
 * @lost_bit: where arbitration was lost
 * @error: the last one: enum canwire_error
 * @error_sending: the node was the sender
 * @errors: since the last report
 *
 * What NAPI reports to the stack in addition to frames; under the wire's lock.
 */
struct cw_events {
	bool any;
	bool overrun;
	bool lost;
	u8 lost_bit;
	u8 error;
	bool error_sending;
	u32 errors;
};

/**
 * struct cw_node - a node
 * @can: first: the core's
 * @port: the wire's view of it
 * @dev: its interface
 * @bus: the bus
 * @stub: the private wire while it is disconnected, made on demand
 * @napi: delivery to the stack
 * @list: of all nodes; cw_mutex
 * @fifo_bytes: both 0: by mode
 * @fifo_frames: both 0: by mode
 * @tx_buffers: how many the controller has
 * @fd_tolerant: ignores FD frames while FD is off
 * @connected: is on its bus
 * @state: under the wire's lock
 * @tx_head: xmit fills here
 * @tx_next: the wire sends here
 * @tx_done: NAPI hands back here
 * @tx_failed: a bit per place: not sent
 * @tx: transmit ring
 * @tx_end: when each frame ended
 * @babble: the frame that is repeated
 * @babble_left: U32_MAX: forever
 * @ring: memory
 * @ring_size: power of two
 * @rx_head: the wire puts in here
 * @rx_tail: NAPI takes out here
 * @rx_in: units of fifo_size that went in and out
 * @rx_out: units of fifo_size that went in and out
 * @fifo_size: in its unit
 * @fifo_in_bytes: its unit
 * @events: what NAPI has to report
 * @stats: counters
 */
struct cw_node {
	struct can_priv can;
	struct cw_port port;
	struct net_device *dev;
	struct cw_bus *bus;
	struct cw_wire *stub;
	struct napi_struct napi;
	struct list_head list;

	/* As it was made. */
	u32 fifo_bytes, fifo_frames;
	u8 tx_buffers;
	bool fd_tolerant;
	bool connected;

	enum cw_node_state state;

	/*
	 * Transmit ring, by counters: xmit fills at tx_head, the wire sends at tx_next, NAPI hands
	 * back at tx_done. tx_failed has a bit per place.
	 */
	u32 tx_head, tx_next, tx_done;
	unsigned long tx_failed;
	struct cw_buffer tx[CW_TX_RING];
	u64 tx_end[CW_TX_RING];

	struct cw_buffer babble;
	u32 babble_left;

	/* Receive FIFO: the wire puts in at rx_head, NAPI takes out at rx_tail. */
	struct cw_received *ring;
	u32 ring_size;
	u32 rx_head, rx_tail;
	u32 rx_in, rx_out;
	u32 fifo_size;
	bool fifo_in_bytes;

	struct cw_events events;
	struct canwire_node_stats stats;
};

static inline int cw_node_ifindex(const struct cw_node *node)
{
	return node->dev->ifindex;
}

/* Bytes of data; an RTR frame's length is that of the data it requests. */
static inline u32 cw_data_bytes(const struct canfd_frame *frame)
{
	return !(frame->can_id & CAN_RTR_FLAG) || frame->flags & CANFD_FDF ? frame->len : 0;
}

/* The size of a frame in the receive FIFO: bytes as an SJA1000 counts them, or one frame. */
static inline u32 cw_fifo_units(const struct cw_node *node, const struct canfd_frame *frame)
{
	if (!node->fifo_in_bytes)
		return 1;
	return (frame->can_id & CAN_EFF_FLAG ? 5 : 3) + cw_data_bytes(frame);
}

/**
 * struct cw_node_config - how a node is made
 * @fifo_bytes: size of the receive FIFO in bytes, or 0
 * @fifo_frames: the same in frames, or 0
 * @tx_buffers: how many the controller has
 * @fd_tolerant: ignores FD frames while FD is off
 *
 * node.c
 */
struct cw_node_config {
	u32 fifo_bytes, fifo_frames;
	u8 tx_buffers;
	bool fd_tolerant;
};

#define CW_FIFO_BYTES_DEFAULT	64	/* SJA1000 */
#define CW_FIFO_BYTES_MIN	16
#define CW_FIFO_BYTES_MAX	4096
#define CW_FIFO_FRAMES_DEFAULT	32	/* FD */
#define CW_FIFO_FRAMES_MAX	512
#define CW_TX_BUFFERS_DEFAULT	2

/**
 * cw_node_make() - makes and registers an interface; takes RTNL
 * @net: the network namespace
 * @name: its name
 * @bus: the bus
 * @wire: the wire
 * @slot: its place on the bus
 * @config: its controller
 *
 * Return: the node or an error pointer
 */
struct cw_node *cw_node_make(struct net *net, const char *name, struct cw_bus *bus,
			     struct cw_wire *wire, u8 slot, const struct cw_node_config *config);

/**
 * cw_node_destroy() - unregisters the interface and frees the node; takes RTNL
 * @node: the node
 */
void cw_node_destroy(struct cw_node *node);

/**
 * cw_node_of() - the node of an interface; with RTNL or cw_mutex
 * @dev: the device
 *
 * Return: the node, or NULL: not an interface of canwire
 */
struct cw_node *cw_node_of(struct net_device *dev);

/**
 * cw_node_connect() - moves the node to its private wire or back; takes RTNL
 * @node: the node
 * @wire: the wire
 * @connected: whether it is to be on its bus
 *
 * Return: 0 or an error
 */
int cw_node_connect(struct cw_node *node, struct cw_wire *wire, bool connected);

/**
 * cw_node_lock() - locks the wire that the node is on
 * @node: the node
 * @flags: of the interrupts
 *
 * Return: the wire
 */
struct cw_wire *cw_node_lock(struct cw_node *node, unsigned long *flags);

/**
 * cw_node_unlock() - unlocks what cw_node_lock() locked
 * @wire: the wire
 * @flags: of the interrupts
 */
void cw_node_unlock(struct cw_wire *wire, unsigned long flags);

/* controller.c, all under the wire's lock */

/**
 * cw_node_choose() - puts the node's next frame in front of its port; under the wire's lock
 * @node: the node
 */
void cw_node_choose(struct cw_node *node);

/**
 * cw_node_fail_all() - fails the frames that wait to be sent; under the wire's lock
 * @node: the node
 */
void cw_node_fail_all(struct cw_node *node);

/**
 * cw_node_receive() - puts a frame into the receive FIFO; under the wire's lock
 * @node: the node
 * @frame: the frame
 * @end: in half nanoseconds
 *
 * Return: false: the FIFO is full
 */
bool cw_node_receive(struct cw_node *node, const struct canfd_frame *frame, u64 end);

/**
 * cw_node_sent() - the node's frame was on the wire; under the wire's lock
 * @node: the node
 * @buffer: what was sent
 * @end: in half nanoseconds
 */
void cw_node_sent(struct cw_node *node, const struct cw_buffer *buffer, u64 end);

/**
 * cw_node_lost_arbitration() - another frame won; under the wire's lock
 * @node: the node
 * @winner: key of the frame that won
 */
void cw_node_lost_arbitration(struct cw_node *node, u32 winner);

/**
 * cw_node_error() - the frame on the wire was destroyed; under the wire's lock
 * @node: the node
 * @attempt: the attempt
 * @sending: whether the node was the sender
 */
void cw_node_error(struct cw_node *node, const struct cw_attempt *attempt, bool sending);

/**
 * cw_node_bus_off() - the node leaves the wire by its errors; under the wire's lock
 * @node: the node
 */
void cw_node_bus_off(struct cw_node *node);

/**
 * cw_state_of() - the state that an error counter means
 * @errors: the greater error counter
 *
 * Return: enum can_state
 */
enum can_state cw_state_of(u32 errors);

/* handover.c */

/**
 * cw_node_poll() - NAPI: hands frames and events to the stack
 * @napi: of the node
 * @budget: frames at most
 *
 * Return: the number of frames
 */
int cw_node_poll(struct napi_struct *napi, int budget);

#endif
