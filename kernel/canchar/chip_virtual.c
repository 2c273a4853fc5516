// SPDX-License-Identifier: GPL-2.0-only
/*
 * A controller made of memory. All other controllers on the bus receive a sent frame into their
 * FIFOs and "interrupt" by an irq_work in hard interrupt context. With a bit rate a frame takes its
 * time (without stuff bits), and senders do not arbitrate: each sends as if alone. Without a bit
 * rate a frame takes no time, and each interrupt leads to the next one as long as frames wait: so
 * after some frames the controller rests, and programs run.
 */

#include <linux/ktime.h>

#include "../compat.h"
#include "chip_virtual.h"

static void canchar_virtual_interrupt_work(struct irq_work *work)
{
	canchar_interrupt(0, container_of(work, struct canchar_virtual, interrupt)->dev);
}

static void canchar_virtual_raise(struct canchar_virtual *chip, unsigned int events)
{
	raw_spin_lock(&chip->lock);
	chip->events |= events;
	raw_spin_unlock(&chip->lock);
	irq_work_queue(&chip->interrupt);
}

static void canchar_virtual_push(struct canchar_virtual *chip, const struct canchar_frame *frame)
{
	raw_spin_lock(&chip->lock);
	if (!chip->listening) {
		raw_spin_unlock(&chip->lock);
		return;
	}
	if (chip->head - chip->tail < CANCHAR_VIRTUAL_FIFO)
		chip->fifo[chip->head++ % CANCHAR_VIRTUAL_FIFO] = *frame;
	else
		chip->events |= CANCHAR_EVENT_OVERRUN;
	raw_spin_unlock(&chip->lock);
	irq_work_queue(&chip->interrupt);
}

/* With interrupts off. */
static void canchar_virtual_to_all_others(struct canchar_virtual *chip,
					  const struct canchar_frame *frame)
{
	unsigned int i;

	for (i = 0; i < chip->bus->count; i++)
		if (&chip->bus->chips[i] != chip)
			canchar_virtual_push(&chip->bus->chips[i], frame);
}

static enum hrtimer_restart canchar_virtual_frame_ends(struct hrtimer *timer)
{
	struct canchar_virtual *chip = container_of(timer, struct canchar_virtual, wire);
	struct canchar_frame frame;
	unsigned long flags;
	bool sent, rested;

	raw_spin_lock_irqsave(&chip->lock, flags);
	/* Not that of a frame that was cut off by bus-off or a start, and has a successor. */
	sent = chip->busy && ktime_get() >= chip->ends;
	if (sent)
		chip->busy = false;
	frame = chip->on_wire;
	rested = chip->resting;
	chip->resting = false;
	if (rested)
		chip->in_a_row = 0;
	if (sent || rested)
		chip->events |= CANCHAR_EVENT_TX;
	raw_spin_unlock(&chip->lock);
	if (sent)
		canchar_virtual_to_all_others(chip, &frame);
	local_irq_restore(flags);
	if (sent || rested)
		canchar_interrupt(0, chip->dev);
	return HRTIMER_NORESTART;
}

static u64 canchar_virtual_duration_ns(const struct canchar_frame *frame, u32 bitrate)
{
	u32 bits = frame->can_id & CAN_EFF_FLAG ? 67 : 47;

	if (!(frame->can_id & CAN_RTR_FLAG))
		bits += 8 * frame->len;
	return div_u64((u64)bits * NSEC_PER_SEC, bitrate);
}

static int canchar_virtual_calculate(struct canchar_timing *timing)
{
	return timing->bitrate > 1000000 ? -EINVAL : 0;
}

static int canchar_virtual_start(struct canchar_device *dev)
{
	struct canchar_virtual *chip = dev->chip;
	unsigned long flags;

	if (READ_ONCE(chip->broken))
		return -EIO;
	raw_spin_lock_irqsave(&chip->lock, flags);
	chip->tail = chip->head;
	chip->events = 0;
	chip->busy = false;
	chip->resting = false;
	chip->in_a_row = 0;
	chip->listening = true;
	chip->standing = (struct canchar_standing){ .state = CANCHAR_ERROR_ACTIVE };
	raw_spin_unlock_irqrestore(&chip->lock, flags);
	return 0;
}

static void canchar_virtual_stop(struct canchar_device *dev)
{
	struct canchar_virtual *chip = dev->chip;
	unsigned long flags;

	raw_spin_lock_irqsave(&chip->lock, flags);
	chip->listening = false;
	chip->busy = false;
	chip->resting = false;
	raw_spin_unlock_irqrestore(&chip->lock, flags);
	/* Not with the lock held: one that runs ends a frame of before, not the next start's. */
	hrtimer_cancel(&chip->wire);
}

static unsigned int canchar_virtual_events(struct canchar_device *dev)
{
	struct canchar_virtual *chip = dev->chip;
	unsigned int events;

	raw_spin_lock(&chip->lock);
	events = chip->events;
	chip->events = 0;
	if (chip->head != chip->tail)
		events |= CANCHAR_EVENT_RX;
	raw_spin_unlock(&chip->lock);
	return events;
}

static bool canchar_virtual_receive(struct canchar_device *dev, struct canchar_frame *frame)
{
	struct canchar_virtual *chip = dev->chip;
	bool there;

	raw_spin_lock(&chip->lock);
	there = chip->head != chip->tail;
	if (there)
		*frame = chip->fifo[chip->tail++ % CANCHAR_VIRTUAL_FIFO];
	raw_spin_unlock(&chip->lock);
	return there;
}

static bool canchar_virtual_tx_free(struct canchar_device *dev)
{
	return !READ_ONCE(((struct canchar_virtual *)dev->chip)->busy);
}

/*
 * The end of a frame interrupts always, without a bit rate by dev->tx_armed. The core withdraws its
 * wish when no frame waits: the next ones are no successors of those before.
 */
static void canchar_virtual_tx_interrupt(struct canchar_device *dev, bool wanted)
{
	struct canchar_virtual *chip = dev->chip;

	raw_spin_lock(&chip->lock);
	if (!chip->resting)
		chip->in_a_row = 0;
	raw_spin_unlock(&chip->lock);
}

/*
 * How long the controller rests, which has just sent @in_a_row frames since @row_began: as many
 * times as long as there are controllers, so that all of them together leave time.
 */
static u64 canchar_virtual_rest_ns(const struct canchar_virtual *chip, ktime_t now)
{
	u64 row = ktime_to_ns(ktime_sub(now, chip->row_began));

	return min_t(u64, row * chip->bus->count, CANCHAR_VIRTUAL_REST_NS);
}

/* A frame that took no time was sent, and others may wait: the interrupt, now or after a rest. */
static void canchar_virtual_sent_at_once(struct canchar_virtual *chip)
{
	ktime_t now, until = 0;
	bool rests;

	raw_spin_lock(&chip->lock);
	rests = chip->resting;
	if (!chip->in_a_row++)
		chip->row_began = ktime_get();
	if (!rests && chip->in_a_row >= CANCHAR_VIRTUAL_ROW) {
		now = ktime_get();
		until = ktime_add_ns(now, canchar_virtual_rest_ns(chip, now));
		chip->resting = true;
	}
	raw_spin_unlock(&chip->lock);
	if (until)
		hrtimer_start(&chip->wire, until, HRTIMER_MODE_ABS_PINNED_HARD);
	else if (!rests)
		canchar_virtual_raise(chip, CANCHAR_EVENT_TX);
}

static void canchar_virtual_send(struct canchar_device *dev, const struct canchar_frame *frame)
{
	struct canchar_virtual *chip = dev->chip;
	struct canchar_frame copy = *frame;
	u64 duration_ns;

	copy.flags = 0;
	copy.lost = 0;
	memset(copy.data + copy.len, 0, sizeof(copy.data) - copy.len);
	if (copy.can_id & CAN_RTR_FLAG)
		memset(copy.data, 0, sizeof(copy.data));
	if (!dev->timing.bitrate) {
		canchar_virtual_to_all_others(chip, &copy);
		if (dev->tx_armed)
			canchar_virtual_sent_at_once(chip);
		return;
	}
	duration_ns = canchar_virtual_duration_ns(&copy, dev->timing.bitrate);
	raw_spin_lock(&chip->lock);
	chip->on_wire = copy;
	chip->ends = ktime_add_ns(ktime_get(), duration_ns);
	chip->busy = true;
	raw_spin_unlock(&chip->lock);
	hrtimer_start(&chip->wire, chip->ends, HRTIMER_MODE_ABS_PINNED_HARD);
}

/* The core checks the mask before it reads events; there is no line to mask. */
static void canchar_virtual_mask(struct canchar_device *dev, bool masked)
{
}

/* The chip keeps the causes of its interrupts, and look finds them. */
static bool canchar_virtual_acknowledge(struct canchar_device *dev)
{
	return false;
}

/* Nothing to do: the core ignores the chip's interrupts until start. */
static void canchar_virtual_silence(struct canchar_device *dev)
{
}

static void canchar_virtual_standing(struct canchar_device *dev, struct canchar_standing *standing)
{
	struct canchar_virtual *chip = dev->chip;

	raw_spin_lock(&chip->lock);
	*standing = chip->standing;
	raw_spin_unlock(&chip->lock);
}

void canchar_virtual_report(struct canchar_virtual *chip, enum canchar_state state)
{
	static const u8 errors[] = {
		[CANCHAR_ERROR_ACTIVE] = 0,
		[CANCHAR_ERROR_WARNING] = 96,
		[CANCHAR_ERROR_PASSIVE] = 128,
		[CANCHAR_BUS_OFF] = 255,
	};
	unsigned long flags;

	raw_spin_lock_irqsave(&chip->lock, flags);
	chip->standing = (struct canchar_standing){ .state = state, .tx_errors = errors[state] };
	if (state == CANCHAR_BUS_OFF)
		chip->busy = false;
	raw_spin_unlock(&chip->lock);
	canchar_virtual_raise(chip, CANCHAR_EVENT_STATE);
	local_irq_restore(flags);
}

void canchar_virtual_break(struct canchar_virtual *chip, bool broken)
{
	WRITE_ONCE(chip->broken, broken);
}

void canchar_virtual_setup(struct canchar_virtual *chip, struct canchar_virtual_bus *bus)
{
	chip->bus = bus;
	raw_spin_lock_init(&chip->lock);
	chip->interrupt = IRQ_WORK_INIT_HARD(canchar_virtual_interrupt_work);
	hrtimer_setup(&chip->wire, canchar_virtual_frame_ends, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED_HARD);
}

void canchar_virtual_quiet(struct canchar_virtual *chip)
{
	hrtimer_cancel(&chip->wire);
	irq_work_sync(&chip->interrupt);
}

const struct canchar_chip_ops canchar_virtual_ops = {
	.name = "virtual",
	.calculate = canchar_virtual_calculate,
	.silence = canchar_virtual_silence,
	.start = canchar_virtual_start,
	.stop = canchar_virtual_stop,
	.events = canchar_virtual_events,
	.look = canchar_virtual_events,
	.receive = canchar_virtual_receive,
	.tx_free = canchar_virtual_tx_free,
	.tx_interrupt = canchar_virtual_tx_interrupt,
	.send = canchar_virtual_send,
	.mask = canchar_virtual_mask,
	.acknowledge = canchar_virtual_acknowledge,
	.standing = canchar_virtual_standing,
};
