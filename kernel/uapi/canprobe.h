/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * /dev/canprobe: an instrument that measures the way between two CAN controllers.
 * All numbers are in this machine's byte order. Only one process at a time can open the file.
 */
#ifndef CANPROBE_UAPI_H
#define CANPROBE_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Sides of a record. */
#define CANPROBE_SENT		0	/* stamped before the command to send it */
#define CANPROBE_RECEIVED	1	/* stamped when the interrupt handler began */
/* No frame: a handler of the line can_id began, and ran data as a __u64 of ns. */
#define CANPROBE_HANDLER	2

/**
 * struct canprobe_record - the records of read(2)
 * @stamp_ns: CLOCK_MONOTONIC
 * @can_id: as in struct can_frame
 * @len: bytes of data
 * @side: CANPROBE_SENT, CANPROBE_RECEIVED or CANPROBE_HANDLER
 * @reserved: 0
 * @data: the data
 *
 * The records of read(2): 24 bytes each, those of one side in order. read(2) never waits: 0 means
 * that there is no record now.
 */
struct canprobe_record {
	__u64 stamp_ns;		/* 0 */
	__u32 can_id;		/* 8 */
	__u8 len;		/* 12 */
	__u8 side;		/* 13 */
	__u16 reserved;		/* 14 */
	__u8 data[8];		/* 16 */
};

/**
 * struct canprobe_plan - the plan of frames to send
 * @can_id: as in struct can_frame
 * @len: 0...8
 * @numbered: the first two bytes of data count the frames, the low byte first
 * @reserved: 0
 * @data: the data
 * @delay_ns: from the call to the first frame
 * @period_ns: between bursts, at least 1000
 * @count: frames, at least 1
 * @burst: frames at a time, at least 1
 * @bitrate: bit/s of both controllers
 * @reserved2: 0
 *
 * The plan of frames to send. 56 bytes.
 */
struct canprobe_plan {
	__u32 can_id;		/* 0 */
	__u8 len;		/* 4 */
	__u8 numbered;		/* 5 */
	__u16 reserved;		/* 6 */
	__u8 data[8];		/* 8 */
	__u64 delay_ns;		/* 16 */
	__u64 period_ns;	/* 24 */
	__u32 count;		/* 32 */
	__u32 burst;		/* 36 */
	__u32 bitrate;		/* 40 */
	__u32 reserved2[3];	/* 44 */
};

/**
 * struct canprobe_state - counters since the file was opened
 * @running: frames remain to be sent
 * @sent: frames
 * @received: frames
 * @unread: records lost, because they were not read in time
 * @overruns: of the receiving controller's FIFO
 * @late: frames that found the transmit buffer full and waited
 * @floor_ns: the floor; 0: CANPROBE_FLOOR was not called
 *
 * Counters since the file was opened. 32 bytes.
 */
struct canprobe_state {
	__u32 running;		/* 0 */
	__u32 sent;		/* 4 */
	__u32 received;		/* 8 */
	__u32 unread;		/* 12 */
	__u32 overruns;		/* 16 */
	__u32 late;		/* 20 */
	__u64 floor_ns;		/* 24 */
};

/* The cards of the instrument, in order: the first sends, the second receives. ENODEV: fewer than
 * two.
 */
#define CANPROBE_IOC		0xc4	/* 0x20-0x2f of it: see canchar.h */
/* Starts to send. EBUSY: it sends already. EINVAL: an invalid plan. EIO: a controller does not
 * start.
 */
#define CANPROBE_START		_IOW(CANPROBE_IOC, 0x20, struct canprobe_plan)
/* Stops sending. */
#define CANPROBE_STOP		_IO(CANPROBE_IOC, 0x21)
#define CANPROBE_GET_STATE	_IOR(CANPROBE_IOC, 0x22, struct canprobe_state)
/*
 * Measures the floor: the time from a timer's write to a card to the handler of the
 * interrupt that the write causes. EAGAIN: no frame has been sent yet. EBUSY: it sends.
 */
#define CANPROBE_FLOOR		_IO(CANPROBE_IOC, 0x23)
/*
 * Records how long the handlers of this interrupt line run, except those of canprobe and those that
 * return IRQ_NONE or only wake a thread; 0: stops recording. EINVAL: a line of more than INT_MAX,
 * or one that each processor has for itself (a local timer's), whose handlers run at the same time.
 * EOPNOTSUPP: a kernel without tracepoints.
 */
#define CANPROBE_WATCH		_IOW(CANPROBE_IOC, 0x24, __u32)

#endif
