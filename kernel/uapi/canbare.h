/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * /dev/canbare: a processor that Linux does not use runs a gateway between two SJA1000
 * cards. All numbers are in this machine's byte order. Only one process at a time can open the
 * file; closing it ends the gateway.
 */
#ifndef CANBARE_UAPI_H
#define CANBARE_UAPI_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * The memory that Linux must not use: memmap=64K$0x10000 on its command line. The
 * image is copied to its beginning, and the processor starts there in real mode. Its
 * last page is struct canbare_shared.
 */
#define CANBARE_MEMORY		0x10000
#define CANBARE_MEMORY_SIZE	0x10000
#define CANBARE_SHARED		0xf000	/* from CANBARE_MEMORY on */

/* The magic number of an image, at byte 8. */
#define CANBARE_MAGIC		"canbare1"
#define CANBARE_MAGIC_AT	8

/* States of the gateway. */
#define CANBARE_NOT_STARTED	0
#define CANBARE_BEGUN		1	/* the processor runs the image */
#define CANBARE_ROUTING		2
#define CANBARE_STOPPED		3	/* stopped on request */
#define CANBARE_NO_INPUT	4	/* the first controller does not start */
#define CANBARE_NO_OUTPUT	5	/* the second controller does not start */
#define CANBARE_GONE		6	/* a controller no longer answers */
#define CANBARE_PANICKED	7	/* the image has failed */

/**
 * struct canbare_counts - the account of the frames
 * @received: taken out of the first controller
 * @transmitted: given to the second controller
 * @dropped: dropped, because the second controller had no room
 * @overruns: the first FIFO was full; one frame or more each
 * @bus_offs: times that a bus-off controller was restarted
 *
 * The account of the frames: received = transmitted + dropped.
 */
struct canbare_counts {
	__u64 received;		/* 0 */
	__u64 transmitted;	/* 8 */
	__u64 dropped;		/* 16 */
	__u64 overruns;		/* 24 */
	__u64 bus_offs;		/* 32 */
};

/**
 * struct canbare_shared - the shared page
 * @stop: not 0: the image must stop
 * @state: the state
 * @port: of the first register of the first and the second controller
 * @bitrate: bit/s
 * @counts: counters
 *
 * The shared page. The image writes state and counts, Linux the rest.
 */
struct canbare_shared {
	__u32 stop;		/* 0 */
	__u32 state;		/* 4 */
	__u32 port[2];		/* 8 */
	__u32 bitrate[2];	/* 16 */
	struct canbare_counts counts;	/* 24 */
};

/**
 * struct canbare_start - what CANBARE_START is given
 * @image: its address
 * @image_len: bytes, at most CANBARE_SHARED
 * @bitrate: bit/s of the first and the second controller
 * @reserved: 0
 */
struct canbare_start {
	__u64 image;		/* 0 */
	__u32 image_len;	/* 8 */
	__u32 bitrate[2];	/* 12 */
	__u32 reserved;		/* 20 */
};

/**
 * struct canbare_status - what CANBARE_GET_STATUS returns
 * @state: the state
 * @processor: the processor for the image; -1: Linux uses all
 * @memory: 1: CANBARE_MEMORY is reserved; 0: Linux uses it
 * @cards: number of cards of the module, of two
 * @counts: counters
 */
struct canbare_status {
	__u32 state;		/* 0 */
	__s32 processor;	/* 4 */
	__u32 memory;		/* 8 */
	__u32 cards;		/* 12 */
	struct canbare_counts counts;	/* 16 */
};

#define CANBARE_IOC		0xc4	/* 0x30-0x3f of it: see canchar.h */
/*
 * Starts the image on a processor that is present and not online, between the card bound
 * first and the card bound second. Returns when it forwards frames.
 *
 * ENODEV: fewer than two cards. EBUSY: it runs already. ENXIO: Linux uses every processor. ENOMEM:
 * Linux uses the memory. ENOEXEC: no image. EIO: a controller does not start; the status names it.
 * ETIMEDOUT: the processor does not answer. EPERM: without CAP_SYS_RAWIO, or in a kernel that is
 * locked down. EKEYREJECTED: the kernel takes signed modules only (module.sig_enforce).
 */
#define CANBARE_START		_IOW(CANBARE_IOC, 0x30, struct canbare_start)
/* Ends the gateway; the counts stay. */
#define CANBARE_STOP		_IO(CANBARE_IOC, 0x31)
#define CANBARE_GET_STATUS	_IOR(CANBARE_IOC, 0x32, struct canbare_status)

#endif
