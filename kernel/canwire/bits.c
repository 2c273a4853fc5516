// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long a frame is on the wire, with exactly the stuff bits that its content and its CRC require
 * (ISO 11898-1).
 *
 * Classic: after five equal bits from SOF to the last bit of the CRC comes a stuff bit, even after
 * the very last.
 *
 * FD: that ends with the data field. The stuff count and the CRC have a fixed stuff bit in front
 * and after every four bits, for any content; so the value of an FD frame's CRC does not matter
 * here. With BRS the rate changes at the sample points of the BRS bit and of the CRC delimiter.
 * What the one lacks of a whole nominal and a whole data bit is what the other has, whatever the
 * two sample points: together they are one bit of either rate. The data phase thus counts ESI to
 * the last bit of the CRC and one bit more, and a stuff bit behind BRS is in it.
 *
 * A table takes a whole byte through the stuffing and another through the CRC, because this runs
 * once per frame in the sender's path; a bit by bit version costs more than the rest of the wire.
 */
#include "bits.h"

#ifdef __KERNEL__
#include <linux/cache.h>
#include <linux/kernel.h>
#else
#define __ro_after_init
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
#endif

#define CRC15_POLYNOMIAL	0x4599
#define CRC15_BITS		15
/*
 * FD: the stuff count in Gray code with its parity, the CRC, and the fixed stuff bits among them.
 */
#define STUFF_COUNT_BITS	4
#define CRC17_BITS		17
#define CRC17_FIXED_BITS	6
#define CRC21_BITS		21
#define CRC21_FIXED_BITS	7
#define CRC17_LEN_MAX		16

/*
 * A state is 2 * (run of equal bits - 1) + last bit. An entry has the stuff bits that the byte
 * makes above, and the next state in the low four bits. A stuff bit counts when the bit after it
 * passes.
 */
static u8 cw_stuffing_table[10][256] __ro_after_init;
static u16 cw_crc15_of_byte[256] __ro_after_init;

struct cw_stuffing {
	u32 state;
	u32 count;
};

/* Before SOF the bus was recessive for long, but SOF is not stuffed against it. */
static const struct cw_stuffing cw_stuffing_idle = { .state = 1, .count = 0 };

static u8 cw_entry_of(u32 state, u32 byte)
{
	u32 run = state / 2 + 1, last = state & 1, count = 0;
	int shift;

	for (shift = 7; shift >= 0; shift--) {
		u32 bit = byte >> shift & 1;

		if (run == 5) {
			count++;
			last ^= 1;
			run = 1;
		}
		run = bit == last ? run + 1 : 1;
		last = bit;
	}
	return count << 4 | 2 * (run - 1) | last;
}

void cw_bits_init(void)
{
	u32 state, byte, bit, crc;

	for (state = 0; state < 10; state++)
		for (byte = 0; byte < 256; byte++)
			cw_stuffing_table[state][byte] = cw_entry_of(state, byte);
	for (byte = 0; byte < 256; byte++) {
		crc = byte << 7;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 0x4000 ? crc << 1 ^ CRC15_POLYNOMIAL : crc << 1;
		cw_crc15_of_byte[byte] = crc & 0x7fff;
	}
}

static inline void cw_put_byte(struct cw_stuffing *s, u8 byte)
{
	u8 entry = cw_stuffing_table[s->state][byte];

	s->count += entry >> 4;
	s->state = entry & 15;
}

static inline u32 cw_crc15(u32 crc, u8 byte)
{
	return (crc << 8 & 0x7fff) ^ cw_crc15_of_byte[(crc >> 7 ^ byte) & 255];
}

/*
 * The first @bits of a frame, SOF among them. What they lack to whole bytes is filled in front with
 * ...0101, which ends recessive as an idle bus does and never asks for a stuff bit.
 */
static inline void cw_put_head(struct cw_stuffing *s, u64 value, u32 bits)
{
	int shift = (bits + 7) / 8 * 8 - 8;

	value |= 0x5555555555555555ULL << bits;
	for (; shift >= 0; shift -= 8)
		cw_put_byte(s, value >> shift);
}

static void cw_measure_classic(const struct canfd_frame *frame, struct cw_length *length)
{
	u32 rtr = frame->can_id & CAN_RTR_FLAG ? 1 : 0;
	u32 len = rtr ? 0 : frame->len;
	struct cw_stuffing s = cw_stuffing_idle;
	u32 head_bits, crc = 0, i;
	u64 head;
	int shift;

	if (frame->can_id & CAN_EFF_FLAG) {
		u32 id = frame->can_id & CAN_EFF_MASK;

		/* SOF, 11, SRR = 1, IDE = 1, 18, RTR, r1, r0, DLC */
		head = (u64)(id >> 18) << 27 | 3u << 25 | (id & 0x3ffff) << 7;
		head_bits = 39;
	} else {
		/* SOF, 11, RTR, IDE = 0, r0, DLC */
		head = (frame->can_id & CAN_SFF_MASK) << 7;
		head_bits = 19;
	}
	head |= rtr << 6 | cw_dlc(frame);

	cw_put_head(&s, head, head_bits);
	for (shift = 32; shift >= 0; shift -= 8)	/* leading zeros leave a CRC of 0 alone */
		crc = cw_crc15(crc, head >> shift);
	for (i = 0; i < len; i++) {
		cw_put_byte(&s, frame->data[i]);
		crc = cw_crc15(crc, frame->data[i]);
	}
	/*
	 * With the CRC delimiter, which is recessive, the CRC is two bytes. A stuff bit after its
	 * last bit counts when the delimiter passes, and one after the delimiter never does.
	 */
	crc = crc << 1 | 1;
	cw_put_byte(&s, crc >> 8);
	cw_put_byte(&s, crc);

	length->nominal = head_bits + 8 * len + CRC15_BITS + s.count + CW_END_BITS;
	length->data = 0;
	length->head = head_bits;
}

static void cw_measure_fd(const struct canfd_frame *frame, struct cw_length *length)
{
	u32 brs = frame->flags & CANFD_BRS ? 1 : 0;
	u32 esi = frame->flags & CANFD_ESI ? 1 : 0;
	struct cw_stuffing whole = cw_stuffing_idle, first = cw_stuffing_idle;
	u32 head_bits, crc_bits, total, i;
	u64 head;

	if (frame->can_id & CAN_EFF_FLAG) {
		u32 id = frame->can_id & CAN_EFF_MASK;

		/* SOF, 11, SRR = 1, IDE = 1, 18, RRS = 0, FDF = 1, res = 0, BRS */
		head = (u64)(id >> 18) << 24 | 3u << 22 | (id & 0x3ffff) << 4;
		head_bits = 36;
	} else {
		/* SOF, 11, RRS = 0, IDE = 0, FDF = 1, res = 0, BRS */
		head = (frame->can_id & CAN_SFF_MASK) << 5;
		head_bits = 17;
	}
	head |= 4 | brs;

	/* Once to BRS, and once with ESI and DLC: cheaper than to go on in the middle of a byte. */
	if (brs)
		cw_put_head(&first, head, head_bits);
	cw_put_head(&whole, head << 5 | esi << 4 | cw_dlc(frame), head_bits + 5);
	for (i = 0; i < frame->len; i++)
		cw_put_byte(&whole, frame->data[i]);
	/* A stuff bit due after the last of them is replaced by the first fixed one. */

	crc_bits = frame->len <= CRC17_LEN_MAX ? CRC17_BITS + CRC17_FIXED_BITS :
						 CRC21_BITS + CRC21_FIXED_BITS;
	total = head_bits + 5 + 8 * frame->len + whole.count + STUFF_COUNT_BITS + crc_bits +
		CW_END_BITS;
	length->data = brs ? total - head_bits - first.count - (CW_END_BITS - 1) : 0;
	length->nominal = total - length->data;
	length->head = head_bits;
}

void cw_measure(const struct canfd_frame *frame, struct cw_length *length)
{
	if (frame->flags & CANFD_FDF)
		cw_measure_fd(frame, length);
	else
		cw_measure_classic(frame, length);
}

/*
 * 32 bits: identifier (11), RTR or RRS or SRR, IDE, identifier (18), RTR or RRS. A standard frame's
 * last 19 bits are 0: where its IDE is dominant, an extended frame has lost already.
 */
__u32 cw_arbitration_key(const struct canfd_frame *frame)
{
	u32 rtr = frame->can_id & CAN_RTR_FLAG && !(frame->flags & CANFD_FDF);
	u32 id = frame->can_id & CAN_EFF_MASK;

	if (frame->can_id & CAN_EFF_FLAG)
		return (id >> 18) << 21 | 3 << 19 | (id & 0x3ffff) << 1 | rtr;
	return (id & CAN_SFF_MASK) << 21 | rtr << 20;
}

__u8 cw_dlc(const struct canfd_frame *frame)
{
	static const u8 dlc[] = { 9, 10, 11, 12, 13, 13, 14, 14, 14, 14, 15, 15, 15, 15 };

	if (frame->len <= CAN_MAX_DLEN) {
		if (frame->len == CAN_MAX_DLEN && !(frame->flags & CANFD_FDF) &&
		    frame->__res1 > CAN_MAX_DLEN && frame->__res1 <= CAN_MAX_RAW_DLC)
			return frame->__res1;
		return frame->len;
	}
	return frame->len > CANFD_MAX_DLEN ? CANFD_MAX_DLC : dlc[(frame->len - 9) / 4];
}

__u8 cw_fd_len(__u8 len)
{
	static const u8 len_of_dlc[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 20, 24, 32, 48, 64 };
	const struct canfd_frame frame = { .len = len, .flags = CANFD_FDF };

	return len_of_dlc[cw_dlc(&frame)];
}

void cw_split(const struct cw_length *length, __u32 bits, __u16 *nominal, __u16 *data)
{
	/* Nominal, data, nominal: all but the last nine of the nominal bits come first. */
	u32 first = length->nominal - (CW_END_BITS - 1);

	if (!length->data || bits <= first) {
		*nominal = bits;
		*data = 0;
	} else if (bits <= first + length->data) {
		*nominal = first;
		*data = bits - first;
	} else {
		*nominal = bits - length->data;
		*data = length->data;
	}
}
