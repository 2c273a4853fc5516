/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The SJA1000 in PeliCAN mode, behind I/O ports: the properties given by a board, and the
 * registers, also for modules without a canchar device (kernel/probe).
 */
#ifndef CANCHAR_CHIP_SJA1000_H
#define CANCHAR_CHIP_SJA1000_H

#include <linux/bits.h>
#include <linux/can.h>
#include <linux/io.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include "../uapi/canchar.h"

/* Registers, by the data sheet's names. */
enum sja1000_register {
	SJA1000_MOD = 0,
	SJA1000_CMR = 1,
	SJA1000_SR = 2,
	SJA1000_IR = 3,
	SJA1000_IER = 4,
	SJA1000_BTR0 = 6,
	SJA1000_BTR1 = 7,
	SJA1000_OCR = 8,
	SJA1000_RXERR = 14,
	SJA1000_TXERR = 15,
	SJA1000_FI = 16,	/* frame information; acceptance code in reset mode */
	SJA1000_ACC0 = 16,
	SJA1000_ID1 = 17,
	SJA1000_ACM0 = 20,
	SJA1000_CDR = 31,
};

#define SJA1000_PORTS		32
#define SJA1000_CLOCK_HZ	8000000		/* a crystal of 16 MHz, halved */

#define SJA1000_MOD_RESET	BIT(0)
#define SJA1000_MOD_LISTEN_ONLY	BIT(1)
#define SJA1000_CMR_SEND	BIT(0)
#define SJA1000_CMR_ABORT	BIT(1)
#define SJA1000_CMR_RELEASE	BIT(2)
#define SJA1000_CMR_CLEAR	BIT(3)
#define SJA1000_SR_RX		BIT(0)
#define SJA1000_SR_OVERRUN	BIT(1)
#define SJA1000_SR_TX_FREE	BIT(2)
#define SJA1000_SR_ERROR	BIT(6)
#define SJA1000_SR_BUS_OFF	BIT(7)
/* The same bits in IR and IER. */
#define SJA1000_IR_RX		BIT(0)
#define SJA1000_IR_TX		BIT(1)
#define SJA1000_IR_WARNING	BIT(2)
#define SJA1000_IR_OVERRUN	BIT(3)
#define SJA1000_IR_PASSIVE	BIT(5)
#define SJA1000_FI_EFF		BIT(7)
#define SJA1000_FI_RTR		BIT(6)
#define SJA1000_FI_DLC		0x0f
#define SJA1000_CDR_PELICAN	BIT(7)

/**
 * struct sja1000 - a chip behind I/O ports
 * @port: of its first register
 * @ocr: how its outputs are wired
 * @cdr: its clock output; PeliCAN mode is added
 * @ier: interrupts wanted
 * @status: the error bits of the last SR read
 * @masked: a caller polls the chip
 * @latched: IR reported a state change that look has not reported yet
 */
struct sja1000 {
	unsigned long port;
	u8 ocr;
	u8 cdr;
	/* Of this driver: */
	u8 ier;
	u8 status;
	bool masked;
	bool latched;
};

static __always_inline u8 sja1000_in(const struct sja1000 *chip, unsigned int at)
{
	return inb(chip->port + at);
}

static __always_inline void sja1000_out(const struct sja1000 *chip, unsigned int at, u8 value)
{
	outb(value, chip->port + at);
}

/* The data at register data, without a loop: it is most of the cost of a frame. */
static __always_inline void sja1000_fill_data(const struct sja1000 *chip, unsigned int data,
					      const struct canchar_frame *frame)
{
	switch (frame->len) {
	case 8:
		sja1000_out(chip, data + 7, frame->data[7]);
		fallthrough;
	case 7:
		sja1000_out(chip, data + 6, frame->data[6]);
		fallthrough;
	case 6:
		sja1000_out(chip, data + 5, frame->data[5]);
		fallthrough;
	case 5:
		sja1000_out(chip, data + 4, frame->data[4]);
		fallthrough;
	case 4:
		sja1000_out(chip, data + 3, frame->data[3]);
		fallthrough;
	case 3:
		sja1000_out(chip, data + 2, frame->data[2]);
		fallthrough;
	case 2:
		sja1000_out(chip, data + 1, frame->data[1]);
		fallthrough;
	case 1:
		sja1000_out(chip, data, frame->data[0]);
	}
}

static __always_inline void sja1000_read_data(const struct sja1000 *chip, unsigned int data,
					      struct canchar_frame *frame)
{
	switch (frame->len) {
	case 8:
		frame->data[7] = sja1000_in(chip, data + 7);
		fallthrough;
	case 7:
		frame->data[6] = sja1000_in(chip, data + 6);
		fallthrough;
	case 6:
		frame->data[5] = sja1000_in(chip, data + 5);
		fallthrough;
	case 5:
		frame->data[4] = sja1000_in(chip, data + 4);
		fallthrough;
	case 4:
		frame->data[3] = sja1000_in(chip, data + 3);
		fallthrough;
	case 3:
		frame->data[2] = sja1000_in(chip, data + 2);
		fallthrough;
	case 2:
		frame->data[1] = sja1000_in(chip, data + 1);
		fallthrough;
	case 1:
		frame->data[0] = sja1000_in(chip, data);
	}
}

/* Puts a frame into the transmit buffer. */
static __always_inline void sja1000_fill(const struct sja1000 *chip,
					 const struct canchar_frame *frame)
{
	u32 id = frame->can_id;
	u8 info = frame->len;
	unsigned int data;

	if (id & CAN_RTR_FLAG)
		info |= SJA1000_FI_RTR;
	if (id & CAN_EFF_FLAG) {
		sja1000_out(chip, SJA1000_FI, info | SJA1000_FI_EFF);
		sja1000_out(chip, SJA1000_ID1, id >> 21);
		sja1000_out(chip, SJA1000_ID1 + 1, id >> 13);
		sja1000_out(chip, SJA1000_ID1 + 2, id >> 5);
		sja1000_out(chip, SJA1000_ID1 + 3, id << 3);
		data = SJA1000_ID1 + 4;
	} else {
		sja1000_out(chip, SJA1000_FI, info);
		sja1000_out(chip, SJA1000_ID1, id >> 3);
		sja1000_out(chip, SJA1000_ID1 + 1, id << 5);
		data = SJA1000_ID1 + 2;
	}
	if (!(id & CAN_RTR_FLAG))
		sja1000_fill_data(chip, data, frame);
}

/* Puts a frame into the transmit buffer and requests transmission. */
static __always_inline void sja1000_write_frame(const struct sja1000 *chip,
						const struct canchar_frame *frame)
{
	sja1000_fill(chip, frame);
	sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_SEND);
}

/* Takes the oldest frame out of the FIFO; SR must have reported one. */
static __always_inline void sja1000_read_frame(const struct sja1000 *behind,
					       struct canchar_frame *frame)
{
	/* A copy that stores into the frame cannot change, so that it stays in a register. */
	const struct sja1000 here = { .port = behind->port }, *chip = &here;
	u8 info = sja1000_in(chip, SJA1000_FI);
	unsigned int data;

	frame->len = min_t(u8, info & SJA1000_FI_DLC, CAN_MAX_DLEN);
	frame->flags = 0;
	memset(frame->data, 0, sizeof(frame->data));
	if (info & SJA1000_FI_EFF) {
		frame->can_id = CAN_EFF_FLAG | sja1000_in(chip, SJA1000_ID1) << 21 |
				sja1000_in(chip, SJA1000_ID1 + 1) << 13 |
				sja1000_in(chip, SJA1000_ID1 + 2) << 5 |
				sja1000_in(chip, SJA1000_ID1 + 3) >> 3;
		data = SJA1000_ID1 + 4;
	} else {
		frame->can_id = sja1000_in(chip, SJA1000_ID1) << 3 |
				sja1000_in(chip, SJA1000_ID1 + 1) >> 5;
		data = SJA1000_ID1 + 2;
	}
	if (info & SJA1000_FI_RTR)
		frame->can_id |= CAN_RTR_FLAG;
	else
		sja1000_read_data(chip, data, frame);
	sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_RELEASE);
}

extern const struct canchar_chip_ops canchar_sja1000_ops;

/* chip_sja1000_setup.c: fills in what is 0 in timing; -EINVAL when it cannot be made. */

/**
 * canchar_sja1000_calculate() - fills in what is 0 in the timing
 * @timing: bit timing
 *
 * Return: 0, or -EINVAL when the clock cannot produce it
 */
int canchar_sja1000_calculate(struct canchar_timing *timing);

/**
 * canchar_sja1000_begin() - goes on the bus; all frames pass, no interrupt is enabled
 * @chip: the chip
 * @timing: bit timing
 *
 * Return: 0, -EINVAL without a timing, or -EIO when the chip does not leave reset mode
 */
int canchar_sja1000_begin(struct sja1000 *chip, const struct canchar_timing *timing);

/**
 * canchar_sja1000_quiet() - sets a chip that has not been started to rest
 * @chip: the chip
 */
void canchar_sja1000_quiet(struct sja1000 *chip);

#endif
