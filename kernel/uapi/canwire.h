/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * canwire: a virtual CAN bus with bit timing.
 *
 * Two ways in: the generic netlink family "canwire" creates and deletes nodes, controls the traffic
 * source, injects faults and returns statistics; the read-only device /dev/canwire-BUS is an
 * analyzer's tap: a ring in memory with every frame that was on the wire. Everything is in the
 * machine's byte order. All times are nanoseconds, on CLOCK_MONOTONIC for points in time.
 *
 * Words: a BUS is one wire, named by 1 to 15 letters, digits, '-' or '_'. It exists from its first
 * node to its last. A NODE is a CAN controller on it and a CAN network interface (bit rates, modes,
 * up and down, restart: by ip-link(8) as for any hardware). The SOURCE is one more controller on
 * each bus, without an interface, from which the kernel sends by a hard timer.
 */
#ifndef _UAPI_CANWIRE_H
#define _UAPI_CANWIRE_H

#include <linux/types.h>
#include <linux/can.h>

#define CANWIRE_GENL_NAME	"canwire"
#define CANWIRE_GENL_VERSION	1

/* Bytes of a bus's name with its terminating 0. */
#define CANWIRE_BUS_NAME_SIZE	16
/* Nodes on one bus. A node's slot is 0 to 63, the lowest free one when it is added. */
#define CANWIRE_NODES_MAX	64
/* Slot of the source in tap records. */
#define CANWIRE_SLOT_SOURCE	255

/*
 * Commands. All but the two GETs need CAP_NET_ADMIN and answer with an acknowledgment (NLM_F_ACK)
 * or an error, whose extended acknowledgment explains the error in a sentence. "needs" and "may"
 * name attributes (CANWIRE_A_...).
 *
 * A node is found by NODE (its interface name) in the caller's network namespace; it is created
 * there too.
 */
enum canwire_command {
	CANWIRE_CMD_UNSPEC = 0,
	/*
	 * Creates a node, and the bus when it is the first node on it. The interface is down and
	 * without a bit rate. needs NODE, BUS; may FIFO_BYTES or FIFO_FRAMES, TX_BUFFERS,
	 * FD_TOLERANT, CLOCK_DRIFT. EEXIST: the interface exists. ENOSPC: 64 nodes on the bus, or
	 * too many buses.
	 */
	CANWIRE_CMD_NODE_ADD = 1,
	/*
	 * Deletes a node, up or down; deleting the last node deletes the bus. needs NODE. ENODEV:
	 * no node has this name.
	 */
	CANWIRE_CMD_NODE_DELETE = 2,
	/*
	 * Lists nodes. A dump (NLM_F_DUMP): all in the caller's network namespace, or on BUS only;
	 * or one with NODE. Answers NODE, IFINDEX, BUS, SLOT, FIFO_BYTES or FIFO_FRAMES,
	 * TX_BUFFERS, FD_TOLERANT, CONNECTED, CLOCK_DRIFT, NAPI_ID, NODE_STATS.
	 */
	CANWIRE_CMD_NODE_GET = 3,
	/*
	 * Lists buses: a dump of all, or one with BUS.
	 * Answers BUS, NODES, SLIP_NS, BITRATE, DATA_BITRATE, BUS_STATS, SOURCE_STATS, TAP_SIZE.
	 */
	CANWIRE_CMD_BUS_GET = 4,
	/* Changes a bus. needs BUS; may SLIP_NS (see there), SEED (of random errors; default 1). */
	CANWIRE_CMD_BUS_SET = 5,
	/*
	 * Disconnects a node from the wire, or connects it (CONNECTED u8 0 or 1). A disconnected
	 * node runs alone: no node acknowledges its frames, and it repeats the current frame until
	 * it is connected again. needs NODE, CONNECTED.
	 */
	CANWIRE_CMD_CONNECT = 6,
	/*
	 * Makes a node babble: in addition to the frames of its interface it sends FRAME repeatedly
	 * without a pause, COUNT times (absent: until stopped; 0: stop). Its error counters count
	 * as usual, so it may go bus-off. needs NODE, FRAME unless COUNT is 0; may COUNT.
	 */
	CANWIRE_CMD_BABBLE = 7,
	/*
	 * Destroys frames on the bus: each one with PROBABILITY, COUNT of them at most (absent: no
	 * end). Replaces an earlier injection; COUNT 0 ends it. needs BUS, ERROR unless COUNT is
	 * 0; may PROBABILITY (absent: every frame), COUNT, NODE (the affected node: for a bit or
	 * acknowledgment error only frames that NODE sends are affected; for others NODE is the
	 * receiver that detects the error first).
	 */
	CANWIRE_CMD_INJECT = 8,
	/*
	 * Appends to the schedule of the bus's source, which must be stopped. needs BUS, SCHEDULE;
	 * may RESET. EBUSY: it runs. E2BIG: more than CANWIRE_SCHEDULE_MAX entries. EINVAL: times
	 * that go backwards. ERANGE: one of 2^61 ns or more.
	 */
	CANWIRE_CMD_SOURCE_LOAD = 9,
	/*
	 * Starts the source. needs BUS and, unless SOURCE_FLAGS has CANWIRE_SOURCE_SCHEDULE, FRAME;
	 * may PERIOD_NS or LOAD, JITTER_NS, BURST, COUNT, SOURCE_FLAGS, SEED, START_NS, BITRATE,
	 * DATA_BITRATE. EBUSY: it runs. ENETDOWN: no node is up and there is no BITRATE.
	 */
	CANWIRE_CMD_SOURCE_START = 10,
	/* Stops the source: a frame on the wire ends normally, a waiting frame is not sent. needs
	 * BUS.
	 */
	CANWIRE_CMD_SOURCE_STOP = 11,
	__CANWIRE_CMD_MAX
};

/* Attributes. */
enum canwire_attribute {
	CANWIRE_A_UNSPEC = 0,
	/* string, up to IFNAMSIZ - 1: the interface's name */
	CANWIRE_A_NODE = 1,
	/* string, up to CANWIRE_BUS_NAME_SIZE - 1 */
	CANWIRE_A_BUS = 2,
	/* u32 */
	CANWIRE_A_IFINDEX = 3,
	/* u8, 0 to 63 */
	CANWIRE_A_SLOT = 4,
	/*
	 * u32, 16 to 4096: the receive FIFO's size in bytes, in which a frame takes its data and 3
	 * (SFF) or 5 (EFF), as in an SJA1000, which has 64. Without this and FIFO_FRAMES a node has
	 * 64 bytes while FD is off, 32 frames while FD is on.
	 */
	CANWIRE_A_FIFO_BYTES = 5,
	/* u32, 1 to 512: the receive FIFO's size in frames of any length; an MPC5200 has 5 */
	CANWIRE_A_FIFO_FRAMES = 6,
	/* u8, 1 to 3, default 2; with 1 the controller never sends back to back */
	CANWIRE_A_TX_BUFFERS = 7,
	/*
	 * u8, default 0: how a node handles an FD frame while FD is off. 0: destroys it by an error
	 * frame, like classic CAN controllers. 1: ignores it, like "FD tolerant" controllers.
	 */
	CANWIRE_A_FD_TOLERANT = 8,
	/* u8, 0 or 1 */
	CANWIRE_A_CONNECTED = 9,
	/* u32: for SO_BUSY_POLL; 0 on kernels without */
	CANWIRE_A_NAPI_ID = 10,
	/* struct canwire_node_stats; more may be appended to it in later versions */
	CANWIRE_A_NODE_STATS = 11,
	/* u32: nodes on the bus */
	CANWIRE_A_NODES = 12,
	/*
	 * u64: how late the wire's timer may be before the wire waits (slips) instead of catching
	 * up: it then pauses for the time that it was late, up to 2 ms, so that the machine can
	 * recover. 0 (default): three times the duration of the late frame. ~0: never slip.
	 */
	CANWIRE_A_SLIP_NS = 13,
	/*
	 * u32, bit/s: the source's bit rate; absent or 0: that of the node with the lowest slot
	 * that is up. In BUS_GET: the rate at which the source would send now, 0 without one.
	 */
	CANWIRE_A_BITRATE = 14,
	/* u32, bit/s: the same for the data phase */
	CANWIRE_A_DATA_BITRATE = 15,
	/* struct canwire_bus_stats, the same that is in the tap's header */
	CANWIRE_A_BUS_STATS = 16,
	/* struct canwire_source_stats */
	CANWIRE_A_SOURCE_STATS = 17,
	/* u32: bytes to map of /dev/canwire-BUS */
	CANWIRE_A_TAP_SIZE = 18,
	/* u8: enum canwire_error, CANWIRE_ERROR_BIT to CANWIRE_ERROR_ACK */
	CANWIRE_A_ERROR = 19,
	/* u32: out of 1 000 000 000 frames */
	CANWIRE_A_PROBABILITY = 20,
	/* u32: of frames, errors or, for a schedule, rounds */
	CANWIRE_A_COUNT = 21,
	/*
	 * struct canfd_frame, 72 bytes; an FD frame has CANFD_FDF in its flags, any other is
	 * classic. The source and a babbling node send CANFD_ESI as these flags say, error-passive
	 * or not; frames of a node's interface have it also while the node is error-passive.
	 */
	CANWIRE_A_FRAME = 22,
	/* array of struct canwire_schedule_entry, up to 800 of them in one message */
	CANWIRE_A_SCHEDULE = 23,
	/* flag (no value): delete the previous schedule */
	CANWIRE_A_RESET = 24,
	/*
	 * u64: from one start to the next, at least 1000. For a schedule the length of a round (0:
	 * until its last time, and its first frame follows at once). Absent or 0, and no LOAD: the
	 * source always has a frame ready.
	 */
	CANWIRE_A_PERIOD_NS = 25,
	/*
	 * u32, 1 to 1000: per mille of the wire's time. Each start is the one before plus the exact
	 * duration of the frame sent there, interframe space included, divided by this. 1000:
	 * always a frame ready.
	 */
	CANWIRE_A_LOAD = 26,
	/*
	 * u64: each start is later by a random time, 0 to this; the time base does not move. Below
	 * the period.
	 */
	CANWIRE_A_JITTER_NS = 27,
	/* u32, default 1: frames at each start, back to back */
	CANWIRE_A_BURST = 28,
	/* u32: CANWIRE_SOURCE_... */
	CANWIRE_A_SOURCE_FLAGS = 29,
	/* u64, not 0: of the random numbers */
	CANWIRE_A_SEED = 30,
	/* u64, CLOCK_MONOTONIC: the first start; absent or past: 1 ms after the command */
	CANWIRE_A_START_NS = 31,
	/* padding for 64-bit attributes */
	CANWIRE_A_PAD = 32,
	/*
	 * s32, -1 000 000 to 1 000 000, default 0: what the clock of a node's hardware stamps
	 * gains, in ppb. 0: the stamps are of the real-time clock. Otherwise they are of a clock
	 * of the node's own, as a controller's: it counts from the machine's start
	 * (CLOCK_MONOTONIC, and what it gains since then).
	 */
	CANWIRE_A_CLOCK_DRIFT = 33,
	__CANWIRE_A_MAX
};

#define CANWIRE_A_MAX	(__CANWIRE_A_MAX - 1)
#define CANWIRE_SCHEDULE_MAX	1000000

/* SOURCE_FLAGS. */
/*
 * Frames are numbered from 0: two bytes at the start of the data, low byte first. Needs a length of
 * at least 2.
 */
#define CANWIRE_SOURCE_NUMBER	0x01
/* Any identifier, SFF or EFF as FRAME is. */
#define CANWIRE_SOURCE_RANDOM_ID	0x02
/* Random format: SFF or EFF; classic frames may be RTR; FD frames have BRS and ESI or not. */
#define CANWIRE_SOURCE_RANDOM_FORMAT	0x04
/* Any length that the format has. */
#define CANWIRE_SOURCE_RANDOM_LEN	0x08
/* Random data, with more runs of equal bits than uniformly random data. */
#define CANWIRE_SOURCE_RANDOM_DATA	0x10
/*
 * Sends what SOURCE_LOAD loaded, COUNT times (absent: once; 0: for ever). FRAME, LOAD and BURST
 * have no meaning.
 */
#define CANWIRE_SOURCE_SCHEDULE	0x20

/* Why a frame was destroyed or not acknowledged. */
enum canwire_error {
	CANWIRE_ERROR_NONE = 0,
	/* the sender read back another bit than it sent */
	CANWIRE_ERROR_BIT = 1,
	/* receivers saw six equal bits */
	CANWIRE_ERROR_STUFF = 2,
	/* receivers saw a wrong fixed bit: the CRC delimiter */
	CANWIRE_ERROR_FORM = 3,
	/* receivers computed another CRC */
	CANWIRE_ERROR_CRC = 4,
	/* no node acknowledged it */
	CANWIRE_ERROR_ACK = 5,
	/* nodes with other bit rates (or without FD) sent an error flag */
	CANWIRE_ERROR_RATE = 6,
	/*
	 * the sender was removed (down, disconnected, deleted) during the frame: six bits later the
	 * others detect a stuff error
	 */
	CANWIRE_ERROR_ABORTED = 7,
};

/**
 * struct canwire_schedule_entry - one frame of a schedule
 * @at_ns: start of frame after the start of the round; never less than the one before
 * @frame: as CANWIRE_A_FRAME
 *
 * One frame of a schedule: 80 bytes.
 */
struct canwire_schedule_entry {
	__u64 at_ns;
	struct canfd_frame frame;
};

/**
 * struct canwire_bus_stats - counters of a bus since it was made
 * @frames: sent successfully
 * @errors: that were destroyed or not acknowledged
 * @busy_ns: SOF to end of EOF (or of the error delimiter), interframe space not included
 * @bits: in that time, of either rate
 * @slips: times that the wire waited because its timer was late
 * @slip_ns: for that long in total, lateness and rest
 * @late_ns_max: the timer's worst lateness
 * @late_ns_sum: over frames and errors
 * @overruns: frames that a receiver lost to a full FIFO, over all nodes
 * @callbacks: runs of the wire's timer
 * @callback_ns: time spent in them, measured inside
 * @first_sof_ns: start of the first frame, 0 when there was none
 *
 * Counters of a bus since it was made: 96 bytes.
 */
struct canwire_bus_stats {
	__u64 frames;		/* 0 */
	__u64 errors;		/* 8 */
	__u64 busy_ns;		/* 16 */
	__u64 bits;		/* 24 */
	__u64 slips;		/* 32 */
	__u64 slip_ns;		/* 40 */
	__u64 late_ns_max;	/* 48 */
	__u64 late_ns_sum;	/* 56 */
	__u64 overruns;		/* 64 */
	__u64 callbacks;	/* 72 */
	__u64 callback_ns;	/* 80 */
	__u64 first_sof_ns;	/* 88 */
};

/**
 * struct canwire_node_stats - counters of a node since it was made
 * @sent: frames sent, including those of babbling
 * @received: frames taken into the FIFO
 * @overruns: frames lost because it was full
 * @arbitration_lost: arbitrations lost with a frame ready at SOF
 * @errors_sent: errors while it was the sender, missing acknowledgements included
 * @errors_received: errors while it was not
 * @bus_offs: times that it went bus-off
 * @tx_errors: error counter, 0 to 256
 * @rx_errors: error counter, 0 to 135
 * @fifo_used: now, in the FIFO's unit
 * @fifo_used_max: worst
 * @handed_over: frames that the stack took
 * @dropped: frames lost because the stack had no memory
 * @error_events_limited: errors without an error frame: by mode or limit
 *
 * Counters of a node since it was made: 96 bytes.
 */
struct canwire_node_stats {
	__u64 sent;		/* 0 */
	__u64 received;		/* 8 */
	__u64 overruns;		/* 16 */
	__u64 arbitration_lost;	/* 24 */
	__u64 errors_sent;	/* 32 */
	__u64 errors_received;	/* 40 */
	__u64 bus_offs;		/* 48 */
	__u32 tx_errors;	/* 56 */
	__u32 rx_errors;	/* 60 */
	__u32 fifo_used;	/* 64 */
	__u32 fifo_used_max;	/* 68 */
	__u64 handed_over;	/* 72 */
	__u64 dropped;		/* 80 */
	__u64 error_events_limited; /* 88 */
};

/**
 * struct canwire_source_stats - the source
 * @running: 0 or 1
 * @flags: as it was started
 * @due: frames that became due since the start command
 * @sent: of them, through
 * @errors: attempts that failed (the frame is sent again)
 * @waited: frames due while the wire was busy or others waited
 * @waited_ns_max: the longest wait from due time to SOF
 * @late_ns_max: the greatest delay of the source's timer
 * @schedule_entries: loaded
 * @reserved: 0
 *
 * The source: 64 bytes.
 */
struct canwire_source_stats {
	__u32 running;		/* 0 */
	__u32 flags;		/* 4 */
	__u64 due;		/* 8 */
	__u64 sent;		/* 16 */
	__u64 errors;		/* 24 */
	__u64 waited;		/* 32 */
	__u64 waited_ns_max;	/* 40 */
	__u64 late_ns_max;	/* 48 */
	__u32 schedule_entries;	/* 56 */
	__u32 reserved;		/* 60 */
};

/**
 * struct canwire_record - one record of the tap
 * @sof_ns: start of SOF
 * @end_ns: end of EOF; of an error: end of the error delimiter
 * @pending: bit per slot: nodes that had a frame to send at SOF, the sender included
 * @received: bit per slot: nodes that put it into their FIFO
 * @overrun: bit per slot: nodes that lost it because their FIFO was full
 * @id: with CAN_EFF_FLAG and CAN_RTR_FLAG
 * @sender: interface index (in its own network namespace), 0: the source
 * @late_ns: delay of the timer, which delivers the frame first
 * @nominal_bits: on the wire from SOF to end_ns at the nominal rate, stuff bits included
 * @data_bits: at the data rate
 * @len: bytes of data (of an RTR frame: by its DLC)
 * @dlc: the raw code, 0 to 15
 * @flags: CANFD_BRS, CANFD_ESI, CANFD_FDF
 * @error: enum canwire_error
 * @error_bit: bits from SOF to where the error flag started, 0 when there was none
 * @slot: of the sender, or CANWIRE_SLOT_SOURCE
 * @marks: CANWIRE_MARK_...
 * @data: the rest of it is 0
 *
 * One record of the tap: a frame, or an attempt at one. 128 bytes.
 *
 * The times are those of an ideal wire: without slips, end_ns - sof_ns is the exact number of
 * bits, and successive frames of a busy bus are exactly 3 nominal bits apart.
 */
struct canwire_record {
	__u64 sof_ns;		/* 0 */
	__u64 end_ns;		/* 8 */
	__u64 pending;		/* 16 */
	__u64 received;		/* 24 */
	__u64 overrun;		/* 32 */
	__u32 id;		/* 40 */
	__u32 sender;		/* 44 */
	__u32 late_ns;		/* 48 */
	__u16 nominal_bits;	/* 52 */
	__u16 data_bits;	/* 54 */
	__u8 len;		/* 56 */
	__u8 dlc;		/* 57 */
	__u8 flags;		/* 58 */
	__u8 error;		/* 59 */
	__u16 error_bit;	/* 60 */
	__u8 slot;		/* 62 */
	__u8 marks;		/* 63 */
	__u8 data[64];		/* 64 */
};

/* The source had a frame to send at SOF. */
#define CANWIRE_MARK_SOURCE	0x01
/* The error was injected. */
#define CANWIRE_MARK_INJECTED	0x02
/* The wire slipped before SOF: the gap to the previous record includes the slip. */
#define CANWIRE_MARK_SLIPPED	0x04
/* The sender babbles. */
#define CANWIRE_MARK_BABBLE	0x08
/* The sender was error-passive. */
#define CANWIRE_MARK_PASSIVE	0x10

#define CANWIRE_RING_MAGIC	0x50415457 /* "WTAP" read as bytes */

/**
 * struct canwire_ring - the header of a tap
 * @magic: CANWIRE_RING_MAGIC
 * @version: CANWIRE_GENL_VERSION
 * @record_size: 128
 * @record_offset: 4096
 * @records: a power of two
 * @bus: name of the bus
 * @reserved: 0
 * @head: records written since the bus was made
 * @reserved2: 0
 * @stats: written after the record and before head
 *
 * The start of the mapping; the records begin at record_offset. To map it all: size is
 * record_offset + records * record_size, PROT_READ, MAP_SHARED, offset 0.
 *
 * Reading without loss or lock: record n (counted from 0) is at record_offset + (n % records) *
 * record_size and is whole while head - n < records. So: load head with acquire, copy record n, an
 * acquire fence, load head again: if then head - n >= records, the writer was faster, and all
 * records up to head - records are lost.
 *
 * poll(2) returns POLLIN when records were written since the previous poll that returned it; so a
 * reader must read up to the head before it polls. POLLHUP: the bus was deleted; its last records
 * are still in the mapping.
 */
struct canwire_ring {
	__u32 magic;		/* 0 */
	__u16 version;		/* 4 */
	__u16 record_size;	/* 6 */
	__u32 record_offset;	/* 8 */
	__u32 records;		/* 12 */
	char bus[CANWIRE_BUS_NAME_SIZE]; /* 16 */
	__u8 reserved[32];	/* 32 */
	__u64 head;		/* 64 */
	__u64 reserved2[7];	/* 72 */
	struct canwire_bus_stats stats; /* 128 */
};

/* The numbers that other languages' mirrors of this header assert too: no array has -1 elements. */
#define CANWIRE_ASSERT(what) extern char canwire_assert[(what) ? 1 : -1]

CANWIRE_ASSERT(sizeof(struct canfd_frame) == 72);
CANWIRE_ASSERT(sizeof(struct canwire_schedule_entry) == 80);
CANWIRE_ASSERT(sizeof(struct canwire_bus_stats) == 96);
CANWIRE_ASSERT(sizeof(struct canwire_node_stats) == 96);
CANWIRE_ASSERT(sizeof(struct canwire_source_stats) == 64);
CANWIRE_ASSERT(sizeof(struct canwire_record) == 128);
CANWIRE_ASSERT(__builtin_offsetof(struct canwire_record, id) == 40);
CANWIRE_ASSERT(__builtin_offsetof(struct canwire_record, error_bit) == 60);
CANWIRE_ASSERT(__builtin_offsetof(struct canwire_record, data) == 64);
CANWIRE_ASSERT(sizeof(struct canwire_ring) == 224);
CANWIRE_ASSERT(__builtin_offsetof(struct canwire_ring, head) == 64);
CANWIRE_ASSERT(__builtin_offsetof(struct canwire_ring, stats) == 128);

#endif /* _UAPI_CANWIRE_H */
