// SPDX-License-Identifier: GPL-2.0-only
/*
 * The instrument: a timer's hard handler writes a frame to one chip, the hard interrupt
 * handler of another chip stamps it. No process and no softirq of the instrument is
 * between the two stamps, only the end of the timer's interrupt and the beginning of
 * the other one, which is the same every time and can be measured: the floor.
 */

#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/timekeeping.h>

#include "../canchar/board_kvaser_pci.h"
#include "../compat.h"
#include "probe.h"

/* Delay of a retry when the transmit buffer is full. */
#define CANPROBE_AGAIN_NS	10000
/* Frames that one expiry of the timer sends at most, with interrupts off. */
#define CANPROBE_AT_ONCE_MAX	16
/* How often the floor is measured, and how long before each time. */
#define CANPROBE_FLOOR_TIMES	32
#define CANPROBE_FLOOR_WAIT_NS	100000

void canprobe_put(struct canprobe_ring *ring, const struct canprobe_record *record)
{
	u32 head = ring->head;

	/* Pairs with the release of the tail: the reader has done with the slot. */
	if (head - smp_load_acquire(&ring->tail) >= CANPROBE_RECORDS) {
		ring->lost++;
		return;
	}
	ring->records[head % CANPROBE_RECORDS] = *record;
	/* Publishes the record; pairs with the acquire in canprobe_get(). */
	smp_store_release(&ring->head, head + 1);
}

static bool canprobe_get(struct canprobe_ring *ring, struct canprobe_record *record)
{
	/* Pairs with the release of the head in canprobe_put(). */
	if (ring->tail == smp_load_acquire(&ring->head))
		return false;
	*record = ring->records[ring->tail % CANPROBE_RECORDS];
	/* Hands the slot back; pairs with the acquire in canprobe_put(). */
	smp_store_release(&ring->tail, ring->tail + 1);
	return true;
}

/* Only while the chips rest: no producer and no consumer runs. */
void canprobe_rings_reset(struct canprobe *probe)
{
	int side;

	for (side = 0; side < CANPROBE_SIDES; side++) {
		struct canprobe_ring *ring = &probe->rings[side];

		ring->head = 0;
		ring->tail = 0;
		ring->lost = 0;
	}
}

/* The next record: frames are sent before they are received. One reader at a time. */
bool canprobe_read(struct canprobe *probe, struct canprobe_record *record)
{
	return canprobe_get(&probe->rings[CANPROBE_SENT], record) ||
	       canprobe_get(&probe->rings[CANPROBE_RECEIVED], record) ||
	       canprobe_get(&probe->rings[CANPROBE_HANDLER], record);
}

/* ------------------------------------------------------------ sending -- */

static bool canprobe_tx_free(const struct canprobe *probe)
{
	return sja1000_in(&probe->pair.cards[0].chip, SJA1000_SR) & SJA1000_SR_TX_FREE;
}

/*
 * The command to the chip is its last action. The pause after it lets another processor see the
 * frame at once in an emulator whose processors take turns.
 */
static void canprobe_send(struct canprobe *probe)
{
	const struct canprobe_plan *plan = &probe->plan;
	const struct sja1000 *chip = &probe->pair.cards[0].chip;
	struct canprobe_record record = { .can_id = plan->can_id, .len = plan->len };
	struct canchar_frame frame = { .can_id = plan->can_id, .len = plan->len };

	memcpy(frame.data, plan->data, sizeof(frame.data));
	if (plan->numbered) {
		frame.data[0] = probe->sent;
		frame.data[1] = probe->sent >> 8;
	}
	memcpy(record.data, frame.data, sizeof(record.data));
	sja1000_fill(chip, &frame);
	probe->sent++;
	probe->sent_all++;
	record.side = CANPROBE_SENT;
	record.stamp_ns = ktime_get_mono_fast_ns();
	canprobe_put(&probe->rings[CANPROBE_SENT], &record);
	sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_SEND);
	cpu_relax();
}

static enum hrtimer_restart canprobe_fire(struct hrtimer *timer)
{
	struct canprobe *probe = container_of(timer, struct canprobe, timer);
	const struct canprobe_plan *plan = &probe->plan;
	unsigned int at_once = 0;

	if (!canprobe_tx_free(probe)) {
		probe->late++;
		hrtimer_forward_now(timer, ns_to_ktime(CANPROBE_AGAIN_NS));
		return HRTIMER_RESTART;
	}
	/* Before the frame is sent, so that it is not between the stamps. */
	if (probe->sent + 1 == plan->count)
		WRITE_ONCE(probe->running, false);
	else if ((probe->sent + 1) % plan->burst)
		hrtimer_forward_now(timer, ns_to_ktime(1));
	else
		hrtimer_forward(timer, hrtimer_cb_get_time(timer), ns_to_ktime(plan->period_ns));
	canprobe_send(probe);
	/* The next frame of a burst follows at once if the chip is fast enough. */
	while (++at_once < CANPROBE_AT_ONCE_MAX && probe->sent < plan->count &&
	       probe->sent % plan->burst && canprobe_tx_free(probe)) {
		if (probe->sent + 1 == plan->count)
			WRITE_ONCE(probe->running, false);
		else if ((probe->sent + 1) % plan->burst == 0)
			hrtimer_forward(timer, hrtimer_cb_get_time(timer),
					ns_to_ktime(plan->period_ns));
		canprobe_send(probe);
	}
	return probe->running ? HRTIMER_RESTART : HRTIMER_NORESTART;
}

static int canprobe_begin(struct canprobe *probe, u32 bitrate)
{
	struct canchar_timing timing = { .bitrate = bitrate };
	int err = canchar_sja1000_calculate(&timing);

	/* The sender's interrupt stays behind the card's gate, for the floor. */
	kvaser_allow_interrupts(probe->pair.cards[0].s5920, false);
	if (!err)
		err = canchar_sja1000_begin(&probe->pair.cards[0].chip, &timing);
	if (!err)
		err = canchar_sja1000_begin(&probe->pair.cards[1].chip, &timing);
	if (err)
		return err;
	sja1000_out(&probe->pair.cards[0].chip, SJA1000_IER, SJA1000_IR_TX);
	sja1000_out(&probe->pair.cards[1].chip, SJA1000_IER, SJA1000_IR_RX | SJA1000_IR_OVERRUN);
	kvaser_allow_interrupts(probe->pair.cards[1].s5920, true);
	return 0;
}

int canprobe_start(struct canprobe *probe, const struct canprobe_plan *plan)
{
	int err;

	if (!plan->count || !plan->burst || plan->period_ns < NSEC_PER_USEC || plan->len > 8 ||
	    plan->reserved || (plan->numbered && plan->len < 2) || (plan->can_id & CAN_ERR_FLAG) ||
	    plan->delay_ns > NSEC_PER_SEC || plan->period_ns > 3600 * NSEC_PER_SEC)
		return -EINVAL;
	if (READ_ONCE(probe->running))
		return -EBUSY;
	hrtimer_cancel(&probe->timer);	/* its handler may still be leaving */
	if (plan->bitrate != probe->plan.bitrate) {
		err = canprobe_begin(probe, plan->bitrate);
		if (err)
			return err;
	}
	probe->plan = *plan;
	probe->sent = 0;
	probe->running = true;
	hrtimer_start(&probe->timer, ns_to_ktime(plan->delay_ns), HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

/* Stops sending and sets the chips to rest. */
void canprobe_stop(struct canprobe *probe)
{
	hrtimer_cancel(&probe->timer);
	hrtimer_cancel(&probe->floor_timer);
	probe->running = false;
}

/* ---------------------------------------------------------- receiving -- */

irqreturn_t canprobe_received(int irq, void *data)
{
	u64 stamp_ns = ktime_get_mono_fast_ns();
	struct canprobe *probe = data;
	const struct sja1000 *chip = &probe->pair.cards[1].chip;
	u8 cause = sja1000_in(chip, SJA1000_IR);
	unsigned int count;

	if (!cause || cause == 0xff)
		return IRQ_NONE;
	if (cause & SJA1000_IR_OVERRUN) {
		probe->overruns++;
		sja1000_out(chip, SJA1000_CMR, SJA1000_CMR_CLEAR);
	}
	/* The frames after the first arrived meanwhile, so their stamps are too early. */
	for (count = 0; count < 64 && sja1000_in(chip, SJA1000_SR) & SJA1000_SR_RX; count++) {
		struct canprobe_record record = { .side = CANPROBE_RECEIVED, .stamp_ns = stamp_ns };
		struct canchar_frame frame;

		if (count)
			record.stamp_ns = ktime_get_mono_fast_ns();
		sja1000_read_frame(chip, &frame);
		record.can_id = frame.can_id;
		record.len = frame.len;
		memcpy(record.data, frame.data, sizeof(record.data));
		canprobe_put(&probe->rings[CANPROBE_RECEIVED], &record);
	}
	return IRQ_HANDLED;
}

/* --------------------------------------------------------- the floor -- */

/*
 * The sender's chip holds an interrupt since its last frame left, which the card keeps
 * from the line. The timer lets it through where it otherwise writes a frame.
 */
static enum hrtimer_restart canprobe_open_gate(struct hrtimer *timer)
{
	struct canprobe *probe = container_of(timer, struct canprobe, floor_timer);
	unsigned long control = probe->pair.cards[0].s5920 + S5920_INTCSR;
	u32 value = inl(control) | S5920_INTCSR_ADDON;

	WRITE_ONCE(probe->floor_armed, true);
	probe->floor_began_ns = ktime_get_mono_fast_ns();
	outl(value, control);
	return HRTIMER_NORESTART;
}

irqreturn_t canprobe_floor_reached(int irq, void *data)
{
	u64 stamp_ns = ktime_get_mono_fast_ns();
	struct canprobe *probe = data;

	if (!READ_ONCE(probe->floor_armed))
		return IRQ_NONE;
	kvaser_allow_interrupts(probe->pair.cards[0].s5920, false);
	stamp_ns -= probe->floor_began_ns;
	if (!probe->floor_ns || stamp_ns < probe->floor_ns)
		probe->floor_ns = stamp_ns;
	WRITE_ONCE(probe->floor_armed, false);
	return IRQ_HANDLED;
}

/* The minimum of several, because it contains no other work. */
int canprobe_floor(struct canprobe *probe)
{
	int times;

	if (READ_ONCE(probe->running))
		return -EBUSY;
	if (!probe->sent_all || !canprobe_tx_free(probe))
		return -EAGAIN;
	probe->floor_ns = 0;
	for (times = 0; times < CANPROBE_FLOOR_TIMES; times++) {
		hrtimer_start(&probe->floor_timer, ns_to_ktime(CANPROBE_FLOOR_WAIT_NS),
			      HRTIMER_MODE_REL_PINNED_HARD);
		usleep_range(300, 400);
		hrtimer_cancel(&probe->floor_timer);
	}
	kvaser_allow_interrupts(probe->pair.cards[0].s5920, false);
	return probe->floor_ns ? 0 : -EIO;
}

void canprobe_instrument_init(struct canprobe *probe)
{
	hrtimer_setup(&probe->timer, canprobe_fire, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED_HARD);
	hrtimer_setup(&probe->floor_timer, canprobe_open_gate, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED_HARD);
}
