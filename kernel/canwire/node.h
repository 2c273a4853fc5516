/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A node: a CAN controller on a wire, and the network device in front of it.
 *
 * Four files: node.c is the network device, controller.c the wire's side (under its lock, in hard
 * interrupt), handover.c the delivery to the stack by NAPI. driver.c is what the driver of another
 * module has in place of the network device.
 *
 * Barriers between them: A publishes how a frame was sent, B a received frame, before NAPI looks;
 * both in the order of the wire, so that NAPI can hand them over in that order.
 * C hands transmit buffers back before xmit fills them again. D orders the stop of a full queue
 * before xmit checks again for room, and new room before NAPI checks for a stopped queue: one of
 * them sees the other, so no queue stays stopped.
 */
#ifndef CANWIRE_NODE_H
#define CANWIRE_NODE_H

#include <linux/can/dev.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/netdevice.h>

#include "wire.h"

struct canwire_driver;
struct cw_bus;

/* Places in the ring of transmit buffers: a power of two above CW_TX_BUFFERS_MAX. */
#define CW_TX_RING		4

enum cw_node_state {
	CW_NODE_DOWN,
	CW_NODE_ON,		/* in its wire's ports */
	CW_NODE_MOVING,		/* between two wires; frames to send wait */
	CW_NODE_BUS_OFF,	/* frames to send are lost */
};

/* A frame in the receive FIFO, and its end in half ns. */
struct cw_received {
	u64 end;
	struct canfd_frame frame;
};

/* What NAPI reports to the stack in addition to frames; under the wire's lock. */
struct cw_events {
	bool any;
	bool overrun;
	bool lost;	/* arbitration, at bit lost_bit */
	u8 lost_bit;
	u8 error;	/* the last one: enum canwire_error */
	bool error_sending;
	u32 errors;	/* since the last report */
};

/*
 * What NAPI, or the driver in its place, counts without the wire's lock. Nobody else does; others
 * read them by READ_ONCE().
 */
struct cw_handed_over {
	u64 frames, dropped, errors_limited;
};

struct cw_node {
	struct can_priv can;	/* first, for the CAN core */
	struct cw_port port;
	struct net_device *dev;
	struct cw_bus *bus;
	struct cw_wire *stub;	/* the private wire while it is disconnected, made on demand */
	struct napi_struct napi;
	struct list_head list;	/* in cw_nodes; cw_mutex */

	u32 fifo_bytes, fifo_frames;	/* both 0: by mode */
	u8 tx_buffers;
	bool fd_tolerant;		/* ignores FD frames while FD is off */
	bool connected;			/* to its bus */
	s32 clock_drift;		/* of its stamps' clock, in ppb; 0: the system's clock */

	enum cw_node_state state;	/* under the wire's lock */

	/*
	 * Transmit ring, by counters: xmit fills at tx_head, the wire sends at tx_next, NAPI hands
	 * back at tx_done.
	 */
	u32 tx_head, tx_next, tx_done;
	struct cw_buffer tx[CW_TX_RING];
	u64 tx_end[CW_TX_RING];	/* when each frame ended; 0: it was not sent */

	struct cw_buffer babble;
	u32 babble_left;	/* frames; U32_MAX: forever */

	/* Receive FIFO: the wire puts in at rx_head, NAPI takes out at rx_tail. */
	struct cw_received *ring;
	u32 ring_size;		/* power of two */
	u32 rx_head, rx_tail;
	u32 rx_in, rx_out;	/* bytes or frames that went in and out */
	u32 fifo_size;		/* bytes, or frames */
	bool fifo_in_bytes;

	struct cw_events events;
	struct canwire_node_stats stats;	/* without what is in handed_over */
	struct cw_handed_over handed_over;

	/*
	 * The driver that has claimed the node, NULL: its network device drives it. Changes under
	 * cw_mutex, RTNL and the wire's lock, while the node is down. The rest is under the last.
	 */
	struct canwire_driver *driver;
	struct irq_work interrupt;
	u8 causes, enabled;		/* CANWIRE_CAUSE_... */
	enum can_state driver_state;	/* that of the last CANWIRE_CAUSE_STATE */
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

/* node.c */
struct cw_node_config {
	u32 fifo_bytes, fifo_frames;	/* of the receive FIFO: one of them, or both 0: by mode */
	u8 tx_buffers;
	bool fd_tolerant;		/* ignores FD frames while FD is off */
	s32 clock_drift;		/* of its stamps' clock, in ppb; 0: the system's clock */
};

#define CW_FIFO_BYTES_DEFAULT	64	/* SJA1000 */
#define CW_FIFO_BYTES_MIN	16
#define CW_FIFO_BYTES_MAX	4096
#define CW_FIFO_FRAMES_DEFAULT	32	/* FD */
#define CW_FIFO_FRAMES_MAX	512
#define CW_TX_BUFFERS_DEFAULT	2
#define CW_CLOCK_DRIFT_MAX	1000000	/* ppb */

/* Makes and registers an interface; takes RTNL. */
struct cw_node *cw_node_make(struct net *net, const char *name, struct cw_bus *bus,
			     struct cw_wire *wire, u8 slot, const struct cw_node_config *config);

/* Unregisters the interface and frees the node; takes RTNL. */
void cw_node_destroy(struct cw_node *node);

/* NULL: not an interface of canwire. With RTNL or cw_mutex. */
struct cw_node *cw_node_of(struct net_device *dev);

/* Moves the node to its private wire or back; takes RTNL. */
int cw_node_connect(struct cw_node *node, struct cw_wire *wire, bool connected);

/* Locks the wire that the node is on, and returns it. */
struct cw_wire *cw_node_lock(struct cw_node *node, unsigned long *flags);
void cw_node_unlock(struct cw_wire *wire, unsigned long flags);

/* With the wire's lock: goes on the wire after @sequences of 11 recessive bits, or leaves it. */
void cw_node_join(struct cw_node *node, struct cw_wire *wire, u32 sequences);
void cw_node_go_down(struct cw_node *node, struct cw_wire *wire);

/* Empties buffers and FIFO of a node that is off the wire, and its error counters. */
void cw_node_reset(struct cw_node *node);

/* The next transmit buffer has been filled, at @since_ns. */
void cw_buffer_fill_classic(struct cw_buffer *buffer, const struct can_frame *from, u8 dlc);
void cw_node_submit(struct cw_node *node, u64 since_ns);

/* controller.c: all but cw_state_of() under the wire's lock */

/* Puts the node's next frame in front of its port. */
void cw_node_choose(struct cw_node *node);

/* All waiting frames are lost; NAPI returns their buffers. */
void cw_node_fail_all(struct cw_node *node);

/* Puts a frame into the receive FIFO; false: the FIFO is full. */
bool cw_node_receive(struct cw_node *node, const struct canfd_frame *frame, u64 end);

/* The node's frame was on the wire. */
void cw_node_sent(struct cw_node *node, const struct cw_buffer *buffer, u64 end);

/* Another frame won. */
void cw_node_lost_arbitration(struct cw_node *node, u32 winner);

/* The frame on the wire was destroyed. */
void cw_node_error(struct cw_node *node, const struct cw_attempt *attempt, bool sending);

/* The node leaves the wire by its errors. */
void cw_node_bus_off(struct cw_node *node);

/* The state that the greater error counter means. */
enum can_state cw_state_of(u32 errors);

/* driver.c */

void cw_driver_init(struct cw_node *node);

/* Tells the driver what has occurred, and whether the state has changed. With the wire's lock. */
void cw_driver_note(struct cw_node *node, u8 causes);

/* The driver, if there is one, loses the node. With cw_mutex. */
void cw_driver_leave(struct cw_node *node);

/* The control modes of the node's interface, which do not apply to a driver. */
static inline u32 cw_ctrlmode(const struct cw_node *node)
{
	return node->driver ? 0 : node->can.ctrlmode;
}

/* handover.c */

/* One more of what only this context counts, and others read. */
static inline void cw_count(u64 *counter, u64 more)
{
	WRITE_ONCE(*counter, *counter + more);
}

int cw_node_poll(struct napi_struct *napi, int budget);

#endif
