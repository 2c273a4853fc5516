// SPDX-License-Identifier: GPL-2.0-only
/*
 * A Kvaser PCIcan with four SJA1000 in memory, and canchar's driver for it: QEMU's card has one. The
 * chips were left on the bus by another driver: their interrupts are enabled, and each has one. The
 * kernel disables a line with an interrupt that no handler wants ("nobody cared"), so that must
 * never happen; not either when a step of the binding fails, after which nothing may be left behind.
 * Exit code 1, and the reason on standard error.
 */

#include <stdarg.h>

#include "../../canchar/board_kvaser_pci.h"
#include "../../canchar/canchar.h"

#define CHIPS		KVASER_CHANNELS_MAX
#define BRIDGE		0x1000
#define CHIP_PORTS	0x2000
#define LINE		11

const struct file_operations canchar_fops = { 0 };
const struct attribute_group *canchar_groups[1];

/* ----------------------------------------------------------- the card -- */

static struct {
	u8 registers[CHIPS][SJA1000_PORTS];
	u32 intcsr;
	bool enabled, reserved;
	bool was_reserved;	/* since it was left on the bus */
} card;

static struct pci_dev pdev = { .vendor = 0x10e8, .device = 0x8406, .irq = LINE };
static struct pci_driver *driver;
static const char *step;

static void __attribute__((noreturn)) fail(const char *what, unsigned int number)
{
	fprintf(stderr, "board: %s: %s (%u)\n", step, what, number);
	exit(1);
}

static bool chip_interrupts(unsigned int number)
{
	const u8 *chip = card.registers[number];

	return card.intcsr & S5920_INTCSR_ADDON && chip[SJA1000_IR] & chip[SJA1000_IER] &&
	       !(chip[SJA1000_MOD] & SJA1000_MOD_RESET);
}

static u8 *reg(unsigned long port)
{
	if (port < CHIP_PORTS || port >= CHIP_PORTS + CHIPS * SJA1000_PORTS)
		fail("no such port", port);
	return &card.registers[(port - CHIP_PORTS) / SJA1000_PORTS][port % SJA1000_PORTS];
}

u8 inb(unsigned long port)
{
	u8 *at = reg(port), value = *at;

	/* Reading IR clears it, but for a frame that has not been taken. */
	if (port % SJA1000_PORTS == SJA1000_IR)
		*at &= SJA1000_IR_RX;
	return value;
}

/* A chip that leaves reset mode receives a frame at once: the bus is busy. */
void outb(u8 value, unsigned long port)
{
	if (port % SJA1000_PORTS == SJA1000_MOD && *reg(port) & SJA1000_MOD_RESET &&
	    !(value & SJA1000_MOD_RESET))
		*reg(port - SJA1000_MOD + SJA1000_IR) = SJA1000_IR_RX;
	if (port % SJA1000_PORTS == SJA1000_CMR && value & SJA1000_CMR_RELEASE)
		*reg(port - SJA1000_CMR + SJA1000_IR) &= ~SJA1000_IR_RX;
	*reg(port) = value;
	deliver();
}

u32 inl(unsigned long port)
{
	return port == BRIDGE + S5920_INTCSR ? card.intcsr : 0;
}

void outl(u32 value, unsigned long port)
{
	if (port != BRIDGE + S5920_INTCSR)
		return;
	card.intcsr = value;
	deliver();
}

/* ----------------------------------------------------------- the line -- */

static struct {
	irqreturn_t (*call)(int line, void *data);
	void *data;
} handlers[CHIPS];
static unsigned int handler_count;

unsigned int interrupts_off_depth;

static bool call(unsigned int handler)
{
	bool handled;

	interrupts_off_depth++;
	handled = handlers[handler].call(LINE, handlers[handler].data) == IRQ_HANDLED;
	interrupts_off_depth--;
	return handled;
}

/* What the kernel does as long as the line is raised. */
void deliver(void)
{
	unsigned int chip, i, rounds = 0;

	if (interrupts_off_depth)
		return;
	for (chip = 0; chip < CHIPS; chip++)
		while (handler_count && chip_interrupts(chip)) {
			bool handled = false;

			for (i = 0; i < handler_count; i++)
				handled |= call(i);
			if (!handled || rounds++ > 100)
				fail("an interrupt that nobody cares about, of chip", chip);
		}
}

int request_irq(int line, irqreturn_t (*handler)(int line, void *data), unsigned int flags,
		const char *name, void *data)
{
	if (line != LINE || !(flags & IRQF_SHARED))
		fail("request_irq() of line", line);
	if (step_fails())
		return -ENOMEM;
	handlers[handler_count].call = handler;
	handlers[handler_count++].data = data;
	deliver();
	return 0;
}

void free_irq(int line, void *data)
{
	if (!handler_count || handlers[--handler_count].data != data)
		fail("free_irq() in another order than request_irq(), left", handler_count);
	deliver();
}

/* ---------------------------------------------------------------- PCI -- */

int pci_enable_device(struct pci_dev *dev)
{
	if (step_fails())
		return -ENOMEM;
	card.enabled = true;
	return 0;
}

void pci_disable_device(struct pci_dev *dev)
{
	card.enabled = false;
}

int pci_request_regions(struct pci_dev *dev, const char *name)
{
	if (step_fails())
		return -ENOMEM;
	card.reserved = true;
	card.was_reserved = true;
	return 0;
}

void pci_release_regions(struct pci_dev *dev)
{
	card.reserved = false;
}

unsigned long pci_resource_start(struct pci_dev *dev, int region)
{
	return region ? CHIP_PORTS : BRIDGE;
}

unsigned long pci_resource_len(struct pci_dev *dev, int region)
{
	return region ? CHIPS * SJA1000_PORTS : 0x80;
}

int pci_register_driver(struct pci_driver *registered)
{
	driver = registered;
	return 0;
}

void pci_unregister_driver(struct pci_driver *registered)
{
	driver = NULL;
}

static void *managed;

void *devm_kzalloc(struct device *device, size_t bytes, int flags)
{
	return managed = kzalloc(bytes, flags);
}

/* ---------------------------------------------------------- scenarios -- */

static void leave_on_bus(void)
{
	unsigned int i;

	card.was_reserved = false;
	card.intcsr = S5920_INTCSR_ADDON;
	for (i = 0; i < CHIPS; i++) {
		memset(card.registers[i], 0, SJA1000_PORTS);
		card.registers[i][SJA1000_IER] = 0xff;
		card.registers[i][SJA1000_IR] = SJA1000_IR_RX;
		card.registers[i][SJA1000_SR] = SJA1000_SR_TX_FREE;
	}
}

/* Nothing is left behind. Memory: the sanitizer looks at the end. */
static void expect_left(void)
{
	unsigned int i;

	if (handler_count || card.enabled || card.reserved)
		fail("still has handlers or the card", handler_count);
	if (devices_added)
		fail("devices are left", devices_added);
	free(managed);
	managed = NULL;
	if (!card.was_reserved)
		return;	/* it is as it was */
	if (card.intcsr & S5920_INTCSR_ADDON)
		fail("the bridge lets interrupts through", card.intcsr);
	for (i = 0; i < CHIPS; i++)
		if (card.registers[i][SJA1000_IER] || !(card.registers[i][SJA1000_MOD] & SJA1000_MOD_RESET))
			fail("not in reset mode without interrupts: chip", i);
}

/* Each step of probe() fails once; answers how many there are. */
static unsigned int fail_each_step(void)
{
	struct pci_device_id id = {};
	unsigned int nth;

	for (nth = 1;; nth++) {
		int err;

		leave_on_bus();
		steps = 0;
		failing_step = nth;
		err = driver->probe(&pdev, &id);
		failing_step = 0;
		if (steps < nth)
			return nth - 1;
		if (err >= 0)
			fail("probe() succeeds without its step", nth);
		expect_left();
	}
}

int main(void)
{
	struct canchar_timing timing = { .bitrate = 500000 };
	struct pci_device_id id = {};
	unsigned int i, failing;

	canchar_kvaser_init();

	step = "four chips that interrupt are bound";
	leave_on_bus();
	if (driver->probe(&pdev, &id))
		fail("probe()", 0);
	if (handler_count != CHIPS || !(card.intcsr & S5920_INTCSR_ADDON))
		fail("not every chip has a handler and an open bridge", handler_count);
	step = "a device starts on a busy bus";
	for (i = 0; i < CHIPS; i++)
		if (canchar_set_timing(handlers[i].data, &timing) || canchar_start(handlers[i].data))
			fail("canchar_start() of chip", i);
	driver->remove(&pdev);
	expect_left();

	step = "each step fails";
	failing = fail_each_step();
	/* Memory, the card, its regions; for each chip memory, a number, a handler and a device. */
	if (failing != 3 + 4 * CHIPS)
		fail("another number of steps than expected", failing);
	for (i = 0; i < CHIPS; i++)
		if (((struct canchar_device *)handlers[i].data)->number != (int)i)
			fail("a number was not given back", i);
	driver->remove(&pdev);
	expect_left();

	canchar_kvaser_exit();
	printf("ok\n");
	return 0;
}
