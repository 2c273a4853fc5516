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

/**
 * struct cw_length - the length of a frame
 * @nominal: bits at the nominal rate
 * @data: at the data rate: FD frames with BRS
 * @head: of the nominal ones, those up to the control field, as if unstuffed
 *
 * From the first bit of SOF to the last of EOF, stuff bits included.
 */
struct cw_length {
	__u16 nominal;
	__u16 data;
	__u16 head;
};

/**
 * cw_bits_init() - fills the tables; before all other functions of bits.c
 */
void cw_bits_init(void);

/**
 * cw_measure() - counts the bits of a frame, whose length must be valid for its format
 * @frame: the frame
 * @length: filled in
 */
void cw_measure(const struct canfd_frame *frame, struct cw_length *length);

/**
 * cw_arbitration_key() - the arbitration field, its first bit at the top
 * @frame: the frame
 *
 * Return: the key; of two nodes the one with the lower key wins
 */
__u32 cw_arbitration_key(const struct canfd_frame *frame);

/**
 * cw_dlc() - the DLC of a frame
 * @frame: the frame
 *
 * Return: 0 to 15
 */
__u8 cw_dlc(const struct canfd_frame *frame);

/**
 * cw_fd_len() - the length that FD has for at least so many bytes
 * @len: bytes
 *
 * Return: 0 to 8, 12, 16, 20, 24, 32, 48, or 64
 */
__u8 cw_fd_len(__u8 len);

/**
 * cw_split() - divides the first bits of a frame into those of the two rates
 * @length: filled in
 * @bits: from SOF on
 * @nominal: of them at the nominal rate
 * @data: what the line was requested with
 */
void cw_split(const struct cw_length *length, __u32 bits, __u16 *nominal, __u16 *data);

#endif
