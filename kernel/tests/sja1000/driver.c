// SPDX-License-Identifier: GPL-2.0-only
/*
 * canchar's core and its SJA1000 in user space, for a chip at the other end of two pipes. A test
 * (crates/sja1000/tests/it) writes a command, a line, to standard input. Each access to a register
 * is a line on standard output: "r REGISTER", answered by the value on standard input, or
 * "w REGISTER VALUE"; numbers are decimal. A line "= ..." ends the command. After the command "line"
 * the chip interrupts also within commands, wherever interrupts are on: "i" asks whether its line is
 * active, answered by 1 or 0, and "u" says that its interrupt had no handler. There is one device
 * with one open file.
 */

#include "../../canchar/canchar.h"
#include "../../canchar/chip_sja1000_hot.h"

#define BITRATE		500000

const struct file_operations canchar_fops = { 0 };
const struct attribute_group *canchar_groups[1];

/* The outputs of a Kvaser PCIcan. */
static struct sja1000 chip = { .ocr = 0xda, .cdr = 0x47 };
static struct canchar_file file;

/* ------------------------------------------------ ports and interrupts -- */

static struct canchar_device *device;
static bool line_is_wired;
unsigned int interrupts_off_depth;

static unsigned int answer(void)
{
	unsigned int value;

	fflush(stdout);
	if (scanf("%u", &value) != 1)
		exit(1);
	return value;
}

/* What a processor does between two instructions. */
void deliver(void)
{
	bool handled = true;

	if (!line_is_wired || interrupts_off_depth)
		return;
	interrupts_off_depth++;
	while (handled) {
		printf("i\n");
		if (!answer())
			break;
		handled = canchar_interrupt(0, device) == IRQ_HANDLED;
		if (!handled)
			printf("u\n");
	}
	interrupts_off_depth--;
}

u8 inb(unsigned long port)
{
	unsigned int value;

	printf("r %lu\n", port);
	value = answer();
	deliver();
	return value;
}

void outb(u8 value, unsigned long port)
{
	printf("w %lu %u\n", port, value);
	deliver();
}

/* ----------------------------------------------------------- commands -- */

/* As open(2) does. */
static void open_file(struct canchar_device *dev)
{
	struct canchar_filters filters = { .error_mask = CAN_ERR_MASK };

	file.dev = dev;
	file.wake_at = 1;
	file.poll_at = 1;
	INIT_LIST_HEAD(&file.sender);
	canchar_rings_alloc(&file, CANCHAR_SLOTS, CANCHAR_SLOTS);
	list_add_tail(&file.node, &dev->files);
	dev->file_count++;
	dev->stamp_count++;
	if (canchar_filters_set(&file, &filters))
		exit(1);
}

static int start(struct canchar_device *dev)
{
	struct canchar_timing timing = { .bitrate = BITRATE, .restart_ms = dev->timing.restart_ms };
	int err = dev->running ? 0 : canchar_set_timing(dev, &timing);

	return err ?: canchar_start(dev);
}

static void mask(struct canchar_device *dev)
{
	interrupts_off();
	canchar_mask(dev);
	interrupts_on();
}

static void poll(struct canchar_device *dev)
{
	interrupts_off();
	canchar_poll_chip(dev);
	interrupts_on();
}

static int send_or_queue(const struct canchar_frame *frame)
{
	if (canchar_send_at_once(&file, frame))
		return 0;
	if (!canchar_ring_put(&file.tx, frame))
		return -EAGAIN;
	canchar_push(&file);
	return 0;
}

/* As write(2) does. */
static int write_frame(struct canchar_device *dev)
{
	struct canchar_frame frame = {};
	int err = canchar_send_trouble(dev);
	unsigned int len, i, byte;

	if (scanf("%u %u", &frame.can_id, &len) != 2)
		exit(1);
	frame.len = len;
	for (i = 0; i < len; i++) {
		if (scanf("%u", &byte) != 1)
			exit(1);
		frame.data[i] = byte;
	}
	if (err)
		return err;
	interrupts_off();
	err = send_or_queue(&frame);
	interrupts_on();
	return err;
}

/* All frames that wait, error frames too, each as its identifier, length and data. */
static void read_frames(void)
{
	struct canchar_frame frame;
	unsigned int i;

	printf("=");
	while (canchar_queue_get(&file, &frame)) {
		printf(" %u %u", frame.can_id, frame.len);
		for (i = 0; i < frame.len; i++)
			printf(" %u", frame.data[i]);
	}
	printf("\n");
}

static void run_watchdog(struct canchar_device *dev)
{
	if (!dev->watchdog.queued)
		return;
	dev->watchdog.queued = false;
	dev->watchdog.queued |= dev->watchdog.function(&dev->watchdog) == HRTIMER_RESTART;
}

static int run_restart(struct canchar_device *dev)
{
	if (!dev->restart.work.pending)
		return 0;
	dev->restart.work.pending = false;
	dev->restart.function(&dev->restart.work);
	return 1;
}

static int obey(struct canchar_device *dev, const char *command)
{
	int result = 0;

	if (!strcmp(command, "start"))
		result = start(dev);
	else if (!strcmp(command, "stop"))
		result = canchar_stop(dev);
	else if (!strcmp(command, "interrupt"))
		result = canchar_interrupt(0, dev);
	else if (!strcmp(command, "line"))
		line_is_wired = true;
	else if (!strcmp(command, "mask"))
		mask(dev);
	else if (!strcmp(command, "unmask"))
		canchar_unmask(dev);
	else if (!strcmp(command, "poll"))
		poll(dev);
	else if (!strcmp(command, "watchdog"))
		run_watchdog(dev);
	else if (!strcmp(command, "restart"))
		result = run_restart(dev);
	else if (!strcmp(command, "write"))
		result = write_frame(dev);
	else if (!strcmp(command, "state"))
		result = dev->state;
	else
		exit(1);
	return result;
}

int main(void)
{
	struct canchar_device *dev = canchar_alloc(NULL, "test", &canchar_sja1000_ops, &chip);
	char command[16];

	device = dev;
	open_file(dev);
	while (scanf("%15s", command) == 1) {
		if (!strcmp(command, "read")) {
			read_frames();
		} else if (!strcmp(command, "counts")) {
			printf("= %llu %llu %llu %llu %llu %llu\n", dev->counts.tx_frames,
			       dev->counts.tx_aborted, dev->counts.rx_overruns, dev->counts.bus_off,
			       dev->counts.restarts, file.tx_lost);
		} else if (!strcmp(command, "restart_ms")) {
			if (scanf("%u", &dev->timing.restart_ms) != 1)
				return 1;
			printf("= 0\n");
		} else {
			printf("= %d\n", obey(dev, command));
		}
		fflush(stdout);
	}
	return 0;
}
