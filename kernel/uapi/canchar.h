/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * canchar: CAN controllers as character devices, /dev/canchar0 and on.
 *
 * Every open file has its own receive queue, its own transmit queue and its own
 * filters. read(2) returns whole frames, as many as fit; write(2) takes whole
 * frames, as many as its queue has room for. Both queues can be mapped instead.
 *
 * One thread at a time reads a file or waits for its frames, one writes it. Without O_NONBLOCK,
 * write(2) waits until another writer of the file has ended. CANCHAR_SET_OPTIONS waits until
 * neither reads, waits nor writes, with O_NONBLOCK too. A signal ends both waits.
 *
 * All numbers are in the byte order of the machine. Reserved fields must be 0
 * when passed in and are 0 when passed out. Structures have no hidden padding
 * and the same layout for 32-bit and 64-bit processes.
 */
#ifndef CANCHAR_UAPI_H
#define CANCHAR_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* ------------------------------------------------------------- frames -- */

/**
 * struct canchar_frame - a frame, also a slot of a mapped ring
 * @stamp_ns: (0, 8 bytes) when the interrupt handler (or a polling caller) read it, ns of
 *	CLOCK_REALTIME; 0 where CANCHAR_NO_STAMPS says so; ignored in write(2)
 * @can_id: (8, 4 bytes) as in struct can_frame: identifier and, in the upper bits, EFF
 *	0x80000000, RTR 0x40000000, ERR 0x20000000
 * @len: (12, 1 bytes) bytes of data, 0...8; of an RTR frame the requested ones
 * @flags: (13, 1 bytes) CANCHAR_FRAME_*; must be 0 in write(2)
 * @lost: (14, 2 bytes) frames this queue lost just before this one, 65535 for more; ignored in
 *	write(2)
 * @data: (16, 8 bytes) bytes after len are 0 on receipt
 *
 * A frame, 24 bytes; also a slot of a mapped ring.
 *
 * An error frame (ERR set) has the classes of linux/can/error.h in can_id, len 8, and its details
 * in data. Error frames cannot be written.
 */
struct canchar_frame {
	__u64 stamp_ns;
	__u32 can_id;
	__u8 len;
	__u8 flags;
	__u16 lost;
	__u8 data[8];
};

/* The frame left this machine: through another file ... */
#define CANCHAR_FRAME_LOCAL	0x01
/* ... or through this one. */
#define CANCHAR_FRAME_OWN	0x02

/**
 * struct canchar_short_frame - a frame in 20 bytes
 * @can_id: (0, 4 bytes)
 * @len: (4, 1 bytes)
 * @flags: (5, 1 bytes)
 * @lost: (6, 2 bytes)
 * @stamp_us: (8, 4 bytes) us of CLOCK_REALTIME, modulo 2^32
 * @data: (12, 8 bytes)
 *
 * The same in 20 bytes, for a file with frame_size 20 in its options: no hole, a stamp of 32 bits.
 */
struct canchar_short_frame {
	__u32 can_id;
	__u8 len;
	__u8 flags;
	__u16 lost;
	__u32 stamp_us;
	__u8 data[8];
};

/* -------------------------------------------------------- mapped rings -- */

/**
 * struct canchar_map - the first page of a mapping
 * @magic: (0, 4 bytes) CANCHAR_MAP_MAGIC
 * @version: (4, 4 bytes) CANCHAR_MAP_VERSION
 * @slot_size: (8, 4 bytes) 24
 * @reserved: (12, 4 bytes)
 * @rx_offset: (16, 4 bytes) of the receive ring, in bytes from the map's start
 * @rx_slots: (20, 4 bytes) a power of two
 * @tx_offset: (24, 4 bytes)
 * @tx_slots: (28, 4 bytes) a power of two
 * @bytes: (32, 8 bytes) of the whole map
 *
 * mmap(2) of a file, MAP_SHARED from offset 0, up to canchar_map.bytes: this page, then the
 * receive ring, then the transmit ring, each from a page on. From then on read(2) and write(2)
 * return EBUSY and the ring sizes are fixed.
 */
struct canchar_map {
	__u32 magic;
	__u32 version;
	__u32 slot_size;
	__u32 reserved;
	__u32 rx_offset;
	__u32 rx_slots;
	__u32 tx_offset;
	__u32 tx_slots;
	__u64 bytes;
};

#define CANCHAR_MAP_MAGIC	0x52434843	/* "CHCR" in memory, little endian */
#define CANCHAR_MAP_VERSION	1

/**
 * struct canchar_ring - the words before the slots of a mapped ring
 * @head: (0, 4 bytes) slots that were filled
 * @reserved0: 0
 * @tail: (64, 4 bytes) slots that were taken
 * @reserved1: 0
 * @need_wakeup: (128, 4 bytes) 1: nothing moves without a call; see below
 * @lost: (132, 4 bytes) receive: frames lost since open, modulo 2^32
 * @reserved2: 0
 *
 * A ring: three cache lines, then the slots. head and tail count slots and wrap around; slot n
 * lies at index n & (slots - 1). In the receive ring the kernel writes head and the process tail;
 * in the transmit ring the reverse.
 *
 * Consumer: load head with acquire, copy slot tail, store tail + 1 with release. Producer: load
 * tail with acquire, and while head - tail < slots: fill slot head, store head + 1 with release.
 *
 * CANCHAR_OVERWRITE: the kernel ignores tail. The consumer copies slot tail, then (after a read
 * barrier) loads head again: if head - tail >= slots the copy is not valid, head - tail - (slots -
 * 1) frames are lost, and it continues at tail = head - (slots - 1).
 *
 * need_wakeup, written by the kernel: in the receive ring 1 while frames arrive only by
 * CANCHAR_WAIT (the chip is polled); in the transmit ring 1 while frames are sent only by
 * CANCHAR_KICK. After storing head, a producer executes a full barrier, loads need_wakeup, and
 * kicks when it is 1.
 *
 * When the device stops or goes bus-off, the kernel takes all frames from the transmit ring and
 * discards them: file_tx_lost counts them.
 *
 * The kernel trusts none of these words: it has a private copy of its index, and treats a distance
 * greater than slots as a full ring (receiving) or an empty one (sending).
 *
 * 192       slots
 */
struct canchar_ring {
	__u32 head;
	__u32 reserved0[15];
	__u32 tail;
	__u32 reserved1[15];
	__u32 need_wakeup;
	__u32 lost;
	__u32 reserved2[14];
};

/* --------------------------------------------------------- the device -- */

enum canchar_state {
	CANCHAR_ERROR_ACTIVE = 0,	/* both error counters below 96 */
	CANCHAR_ERROR_WARNING = 1,	/* one of them 96 or more */
	CANCHAR_ERROR_PASSIVE = 2,	/* one of them 128 or more */
	CANCHAR_BUS_OFF = 3,		/* bus-off, until it is started again */
	CANCHAR_STOPPED = 4,
};

/**
 * struct canchar_info - what CANCHAR_GET_INFO returns
 * @version: (0, 4 bytes) 1
 * @clock_hz: (4, 4 bytes) clock of the bit timing; 0: no bit timing
 * @state: (8, 4 bytes) enum canchar_state
 * @reserved: (12, 4 bytes)
 * @chip: (16, 16 bytes) "sja1000", "wire", "virtual"; ends with a NUL
 * @board: (32, 16 bytes) "kvaser-pci", "canwire", "virtual"
 */
struct canchar_info {
	__u32 version;
	__u32 clock_hz;
	__u32 state;
	__u32 reserved;
	char chip[16];
	char board[16];
};

/**
 * struct canchar_timing - bit timing
 * @bitrate: (0, 4 bytes) bit/s
 * @sample_point: (4, 4 bytes) in tenths of a per cent; 0: as CiA 301 recommends for bitrate
 * @brp: (8, 4 bytes) clock cycles in a time quantum
 * @tseg1: (12, 4 bytes) quanta before the sample point, without the first
 * @tseg2: (16, 4 bytes) quanta after it
 * @sjw: (20, 4 bytes) quanta a resynchronization may move; 0: 1
 * @restart_ms: (24, 4 bytes) from bus-off to the next start; 0: no automatic restart
 * @flags: (28, 4 bytes) CANCHAR_LISTEN_ONLY
 *
 * Bit timing. Setting: bitrate only (and sample_point, sjw, or 0), from which the kernel
 * calculates the rest; or brp and the following fields, from which it calculates bitrate. Getting:
 * all of them.
 */
struct canchar_timing {
	__u32 bitrate;
	__u32 sample_point;
	__u32 brp;
	__u32 tseg1;
	__u32 tseg2;
	__u32 sjw;
	__u32 restart_ms;
	__u32 flags;
};

/* write(2) and CANCHAR_KICK return EOPNOTSUPP. */
#define CANCHAR_LISTEN_ONLY	0x01

/* ----------------------------------------------------------- the file -- */

/**
 * struct canchar_options - how an open file behaves
 * @frame_size: (0, 4 bytes) 24 or 20
 * @flags: (4, 4 bytes) CANCHAR_*; below
 * @rx_slots: (8, 4 bytes) a power of two, 2...4096; 64 by default
 * @tx_slots: (12, 4 bytes) a power of two, 1...4096; 64 by default
 * @priority: (16, 4 bytes) of frames that it sends, 0...2: as long as a file of a higher one has
 *	frames, those of lower ones wait; among equals in turn
 * @read_min: (20, 4 bytes) frames that end the wait of read(2), poll(2) and CANCHAR_WAIT,
 *	1...rx_slots - 1; 1 by default
 * @timeout_ns: (24, 8 bytes) after which read(2) returns the waiting frames, or EAGAIN; 0: never
 * @spin_ns: (32, 8 bytes) CANCHAR_POLL_CHIP: how long a wait polls before it sleeps; 0: it never
 *	sleeps; CANCHAR_ADAPTIVE: how long a wait looks at most; 0: 1 ms
 *
 * How one open file behaves. Slots can be changed until the file is mapped; waiting frames are
 * lost then, and counted.
 */
struct canchar_options {
	__u32 frame_size;
	__u32 flags;
	__u32 rx_slots;
	__u32 tx_slots;
	__u32 priority;
	__u32 read_min;
	__u64 timeout_ns;
	__u64 spin_ns;
};

/* A full receive queue loses its oldest frame, not the new one. */
#define CANCHAR_OVERWRITE	0x01
/* Frames of this file are given to the other files after they were on the bus. */
#define CANCHAR_ECHO		0x02
/* Frames of this file are also given to this file. */
#define CANCHAR_ECHO_OWN	0x04
/*
 * A wait of this file polls the controller from task context, the interrupts of frames
 * masked. They stay masked between such waits, until a caller sleeps on the device, poll(2) finds
 * no frame, or nobody has polled for 2 to 4 ms: then they are unmasked. While they are masked, all
 * files of the device get frames when any of them reads or waits. While a file of the device is in
 * an epoll set, nothing is masked: the set could sleep at any time.
 */
#define CANCHAR_POLL_CHIP	0x08
/*
 * A wait of this file looks for frames for a while before it sleeps, the interrupts on: a frame
 * that comes meanwhile wakes nobody. How long adapts: longer after a frame that came soon after it
 * slept, not at all when frames come farther apart than spin_ns, or while another task wants the
 * processor. Not with CANCHAR_POLL_CHIP.
 */
#define CANCHAR_ADAPTIVE	0x10
/*
 * This file needs no stamps: stamp_ns of the frames that it receives from the bus may be 0. They
 * are stamped while any open file of the device lacks this flag.
 */
#define CANCHAR_NO_STAMPS	0x20

/**
 * struct canchar_filter - a filter
 * @id: (0, 4 bytes) as in struct can_filter; 0x20000000 in it inverts
 * @mask: (4, 4 bytes) as in struct can_filter
 */
struct canchar_filter {
	__u32 id;
	__u32 mask;
};

/**
 * struct canchar_filters - the frames that a receive queue accepts
 * @count: (0, 4 bytes) 0...CANCHAR_FILTERS_MAX; 0: all but error frames
 * @error_mask: (4, 4 bytes) accepted classes of error frames
 * @join: (8, 4 bytes) 1: a frame must match all of them
 * @reserved: (12, 4 bytes)
 * @filters: (16, 8 bytes) address of count struct canchar_filter
 *
 * With the meaning of CAN_RAW_FILTER, CAN_RAW_ERR_FILTER and CAN_RAW_JOIN_FILTERS. At first count
 * and error_mask are 0.
 *
 * Every frame is compared with all filters of all files in the interrupt handler, so their number
 * is bounded: 64 files of a device may be open (open(2) returns EUSERS), and their filters are at
 * most 2048 (CANCHAR_SET_FILTERS returns ENOSPC and changes nothing).
 */
struct canchar_filters {
	__u32 count;
	__u32 error_mask;
	__u32 join;
	__u32 reserved;
	__u64 filters;
};

#define CANCHAR_FILTERS_MAX	512

/**
 * struct canchar_statistics - counters
 * @rx_frames: (0, 8 bytes) taken from the controller
 * @rx_overruns: (8, 8 bytes) events: the controller's FIFO was full
 * @tx_frames: (16, 8 bytes) that were on the bus
 * @tx_aborted: (24, 8 bytes) that were in the controller when it stopped
 * @interrupts: (32, 8 bytes) handled
 * @error_frames: (40, 8 bytes) made for state changes and overruns
 * @bus_off: (48, 8 bytes) events
 * @restarts: (56, 8 bytes) events
 * @file_rx_frames: (64, 8 bytes) put into this file's receive queue
 * @file_rx_lost: (72, 8 bytes) not put there, or overwritten, because it was full
 * @file_tx_frames: (80, 8 bytes) taken from this file's transmit queue
 * @file_tx_lost: (88, 8 bytes) of them malformed (in a mapped ring), or discarded because the
 *	device stopped or went bus-off
 * @state: (96, 4 bytes) enum canchar_state
 * @rx_errors: (100, 4 bytes) the controller's receive error counter, now
 * @tx_errors: (104, 4 bytes) its transmit error counter, now
 * @reserved: (108, 4 bytes)
 *
 * Counters: of the device since it appeared, of the file since it was opened. In frames unless
 * noted.
 */
struct canchar_statistics {
	__u64 rx_frames;
	__u64 rx_overruns;
	__u64 tx_frames;
	__u64 tx_aborted;
	__u64 interrupts;
	__u64 error_frames;
	__u64 bus_off;
	__u64 restarts;
	__u64 file_rx_frames;
	__u64 file_rx_lost;
	__u64 file_tx_frames;
	__u64 file_tx_lost;
	__u32 state;
	__u32 rx_errors;
	__u32 tx_errors;
	__u32 reserved;
};

/**
 * struct canchar_wait - a wait for received frames
 * @timeout_ns: (0, 8 bytes) 0: check once; CANCHAR_FOREVER: until frames, a signal or an error;
 *	includes the time that another thread reads the file or waits for its frames
 * @min: (8, 4 bytes) frames that end it, 1...rx_slots - 1
 * @reserved: (12, 4 bytes)
 */
struct canchar_wait {
	__u64 timeout_ns;
	__u32 min;
	__u32 reserved;
};

#define CANCHAR_FOREVER		0xffffffffffffffffULL

/**
 * struct canchar_poll_entry - a file of a set
 * @fd: (0, 4 bytes) of a canchar file; one without CANCHAR_POLL_CHIP is only checked
 * @ready: (4, 4 bytes) written: frames that wait in its receive queue
 */
struct canchar_poll_entry {
	__s32 fd;
	__u32 ready;
};

/**
 * struct canchar_poll_set - checks many files once, or waits for them
 * @timeout_ns: (0, 8 bytes) as in struct canchar_wait; the wait polls and never sleeps. With no
 *	frame in any file it ends with ENETDOWN or ENODEV when a device has stopped or is gone
 * @count: (8, 4 bytes) 1...CANCHAR_POLL_SET_MAX
 * @reserved: (12, 4 bytes)
 * @entries: (16, 8 bytes) address of count struct canchar_poll_entry
 */
struct canchar_poll_set {
	__u64 timeout_ns;
	__u32 count;
	__u32 reserved;
	__u64 entries;
};

#define CANCHAR_POLL_SET_MAX	64

/* ------------------------------------------------------------- ioctls -- */

/*
 * A code that Documentation/userspace-api/ioctl/ioctl-number.rst gives to nobody. canchar uses
 * 0x00-0x1f of it, canprobe 0x20-0x2f and canbare 0x30-0x3f.
 */
#define CANCHAR_IOC		0xc4

/* Of the device; those that change it need CAP_NET_ADMIN. */
#define CANCHAR_GET_INFO	_IOR(CANCHAR_IOC, 0x00, struct canchar_info)
#define CANCHAR_GET_TIMING	_IOR(CANCHAR_IOC, 0x01, struct canchar_timing)
/* EBUSY unless it is stopped; EINVAL when the clock cannot produce the bit rate. */
#define CANCHAR_SET_TIMING	_IOW(CANCHAR_IOC, 0x02, struct canchar_timing)
/*
 * Goes on the bus, or again after bus-off, which takes a controller 128 sequences of 11 recessive
 * bits: its state is bus-off until then. EINVAL without a bit rate.
 */
#define CANCHAR_START		_IO(CANCHAR_IOC, 0x03)
/* Leaves the bus: read(2) and write(2) return ENETDOWN. */
#define CANCHAR_STOP		_IO(CANCHAR_IOC, 0x04)

/* Of the file. */
#define CANCHAR_GET_OPTIONS	_IOR(CANCHAR_IOC, 0x10, struct canchar_options)
#define CANCHAR_SET_OPTIONS	_IOW(CANCHAR_IOC, 0x11, struct canchar_options)
#define CANCHAR_SET_FILTERS	_IOW(CANCHAR_IOC, 0x12, struct canchar_filters)
#define CANCHAR_GET_STATISTICS	_IOR(CANCHAR_IOC, 0x13, struct canchar_statistics)
/* Returns the number of frames in the receive queue, perhaps fewer than min. */
#define CANCHAR_WAIT		_IOW(CANCHAR_IOC, 0x14, struct canchar_wait)
/* Sends from the mapped transmit ring; returns the number of frames that still wait. */
#define CANCHAR_KICK		_IO(CANCHAR_IOC, 0x15)
/* Waits at most this many ns until all frames of this file were on the bus. */
#define CANCHAR_WAIT_TX_DONE	_IOW(CANCHAR_IOC, 0x16, __u64)
/* Returns the number of files with waiting frames. */
#define CANCHAR_POLL_SET	_IOW(CANCHAR_IOC, 0x17, struct canchar_poll_set)

#endif
