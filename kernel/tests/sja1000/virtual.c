// SPDX-License-Identifier: GPL-2.0-only
/*
 * canchar's core with two virtual controllers, and what another processor may do between two steps
 * of it: a process stores a frame in a mapped ring just before the kernel asks for kicks again, or
 * the timer of a frame that was cut off runs late. Exit code 1, and the reason on standard error.
 */

#include "../../canchar/canchar.h"
#include "../../canchar/chip_virtual.h"

#define CHIPS		2
#define BITRATE		1000
/* Longer than a frame. */
#define FRAME_NS	(NSEC_PER_SEC / 5)
/* The identifier of a frame that another processor stores meanwhile. */
#define LATE		0x7ff

const struct file_operations canchar_fops = { 0 };
const struct attribute_group *canchar_groups[1];

static struct canchar_virtual chips[CHIPS];
static struct canchar_virtual_bus bus = { CHIPS, chips };
static struct canchar_virtual *const near = &chips[0], *const far = &chips[1];
static struct canchar_file file;
static const char *step;

unsigned int interrupts_off_depth;

void deliver(void)
{
}

u8 inb(unsigned long port)
{
	return 0xff;
}

void outb(u8 value, unsigned long port)
{
}

static ktime_t now;

ktime_t ktime_get(void)
{
	return now;
}

static void __attribute__((noreturn)) fail(const char *what, unsigned int number)
{
	fprintf(stderr, "virtual: %s: %s (%u)\n", step, what, number);
	exit(1);
}

static void expect(bool holds, const char *what, unsigned int number)
{
	if (!holds)
		fail(what, number);
}

/* ---------------------------------------------------------- a process -- */

static bool needs_kick(void)
{
	return file.tx.shared->need_wakeup;
}

static void store(u32 id, u8 len)
{
	struct canchar_ring *ring = file.tx.shared;

	file.tx.slots[ring->head & file.tx.mask] = (struct canchar_frame){ .can_id = id, .len = len };
	ring->head++;
}

/* Nine bytes: no frame. */
static void store_malformed(void)
{
	store(1, 9);
}

static void kick(void)
{
	interrupts_off();
	canchar_push(&file);
	interrupts_on();
}

/*
 * Its head is visible at the barrier after need_wakeup, so that it need not have seen the new
 * need_wakeup, and does not kick.
 */
static void store_late(void)
{
	if (!needs_kick())
		return;
	at_barrier = NULL;
	store(LATE, 1);
}

static void store_malformed_each_time(void)
{
	if (needs_kick())
		store_malformed();
}

/* ------------------------------------------------------------ the wire -- */

static void run_timer(void)
{
	near->wire.function(&near->wire);
}

static void end_frame(void)
{
	now += FRAME_NS;
	run_timer();
}

static void expect_on_wire(u32 id)
{
	expect(near->busy, "nothing is on the wire instead of", id);
	expect(near->on_wire.can_id == id, "on the wire is another frame", near->on_wire.can_id);
}

static void start(struct canchar_virtual *chip)
{
	struct canchar_timing timing = { .bitrate = BITRATE };

	canchar_virtual_setup(chip, &bus);
	chip->dev = canchar_alloc(NULL, "test", &canchar_virtual_ops, chip);
	if (canchar_set_timing(chip->dev, &timing) || canchar_start(chip->dev))
		fail("a device does not start", 0);
}

/* Two devices, and a file of the first with a mapped ring. */
static void begin(const char *name)
{
	step = name;
	at_barrier = NULL;
	memset(chips, 0, sizeof(chips));
	memset(&file, 0, sizeof(file));
	start(near);
	start(far);
	file.dev = near->dev;
	file.mapped = true;
	INIT_LIST_HEAD(&file.sender);
	if (canchar_rings_alloc(&file, CANCHAR_SLOTS, CANCHAR_SLOTS))
		fail("no rings", 0);
	list_add_tail(&file.node, &near->dev->files);
	near->dev->file_count++;
	near->dev->stamp_count++;
}

static void end(void)
{
	at_barrier = NULL;
	canchar_forget_file(&file);
	canchar_rings_free(&file);
	canchar_unregister(near->dev);
	canchar_unregister(far->dev);
}

/* ---------------------------------------------------------- scenarios -- */

/* A frame on the wire, and the file has its turn: it need not kick. */
static void begin_with_turn(const char *name, void (*store_next)(void))
{
	begin(name);
	store(1, 1);
	kick();
	expect_on_wire(1);
	store_next();
	kick();
	expect(!needs_kick(), "the driver asks for kicks", 0);
}

static void behind_malformed_frame(void)
{
	begin_with_turn("a frame stored while those behind a malformed one are dropped", store_malformed);
	store(2, 1);
	at_barrier = store_late;
	end_frame();
	expect_on_wire(LATE);
	expect(file.tx_lost == 2, "lost frames", file.tx_lost);
	expect(file.tx_frames == 2, "sent frames", file.tx_frames);
	end();
}

static void store_second(void)
{
	store(2, 1);
}

static void behind_last_frame(void)
{
	begin_with_turn("a frame stored while the last one is taken", store_second);
	at_barrier = store_late;
	end_frame();
	expect_on_wire(2);
	end_frame();
	expect_on_wire(LATE);
	end();
}

/* The kernel gives up, but not for ever. */
static void behind_many_malformed_frames(void)
{
	begin_with_turn("a frame behind malformed ones without end", store_malformed);
	at_barrier = store_malformed_each_time;
	end_frame();
	expect(!near->busy, "a malformed frame is on the wire", near->on_wire.len);
	expect(near->dev->watchdog.queued, "the watchdog does not run", 0);
	at_barrier = store_late;
	canchar_watchdog(&near->dev->watchdog);
	expect_on_wire(LATE);
	end();
}

static void timer_of_cut_off_frame(void)
{
	ktime_t ends;

	begin("the timer of a frame that was cut off runs during the next frame");
	store(1, 1);
	kick();
	ends = near->ends;
	canchar_virtual_report(near, CANCHAR_BUS_OFF);
	canchar_interrupt(0, near->dev);
	expect(near->dev->state == CANCHAR_BUS_OFF, "state", near->dev->state);
	now = ends - 1;
	if (canchar_start(near->dev))
		fail("no start after bus-off", 0);
	store(2, 1);
	kick();
	now = ends;
	run_timer();
	expect_on_wire(2);
	expect(!near->dev->counts.tx_frames, "frames have been sent", near->dev->counts.tx_frames);
	end_frame();
	expect(!near->busy && far->head == 1 && far->fifo[0].can_id == 2, "frames that arrived", far->head);
	end();
}

int main(void)
{
	behind_malformed_frame();
	behind_last_frame();
	behind_many_malformed_frames();
	timer_of_cut_off_frame();
	printf("ok\n");
	return 0;
}
