/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long a frame is on the wire, and how its identifier contends. Also compiled in user space,
 * where kernel/tests compares it with a bit by bit model.
 */
#ifndef CANWIRE_BITS_H
#define CANWIRE_BITS_H

#include <linux/types.h>
#include <linux/can.h>

/*
 * Frames are struct canfd_frame: CANFD_FDF in the flags says whether it is an FD frame. In a
 * classic one __res1, where struct can_frame has len8_dlc, holds the raw DLC when that is 9 to 15.
 */

/* Recessive bits between two frames (intermission). */
#define CW_INTERFRAME_BITS	3
/* CRC delimiter, ACK slot, ACK delimiter and the 7 bits of EOF. */
#define CW_END_BITS		10
/* An error frame: the flag of six equal bits, and the delimiter. */
#define CW_ERROR_FLAG_BITS	6
#define CW_ERROR_DELIMITER_BITS	8
/* The recessive bits that a node must see before it takes part: ACK delimiter, EOF and
 * intermission.
 */
#define CW_INTEGRATION_BITS	11

/* The bits of a frame, from SOF to EOF, stuff bits included. */
struct cw_length {
	__u16 nominal;	/* at the nominal rate */
	__u16 data;	/* at the data rate: FD frames with BRS */
	__u16 head;	/* of the nominal ones, those up to the control field, as if unstuffed */
};

/* Fills the tables: must be called before all other functions of bits.c. */
void cw_bits_init(void);

/* Counts the bits of a frame, whose length must be valid for its format. */
void cw_measure(const struct canfd_frame *frame, struct cw_length *length);

/* The arbitration field, its first bit at the top: the lower key wins. */
__u32 cw_arbitration_key(const struct canfd_frame *frame);

/* The frame's DLC, 0 to 15. */
__u8 cw_dlc(const struct canfd_frame *frame);

/* The shortest length of an FD frame for @len bytes: 0 to 8, 12, 16, 20, 24, 32, 48 or 64. */
__u8 cw_fd_len(__u8 len);

/* Divides the first @bits of a frame, from SOF on, into those of the two rates. */
void cw_split(const struct cw_length *length, __u32 bits, __u16 *nominal, __u16 *data);

#endif
