// SPDX-License-Identifier: GPL-2.0-only
/*
 * The processor: one that is present and that Linux does not run on, because it was
 * booted with maxcpus= or the processor was taken offline. INIT and SIPI start it at
 * the image's first byte (Intel SDM volume 3, 9.4.4: MP initialization protocol), INIT
 * ends it: it waits for the next SIPI then, and Linux may bring it up again.
 */

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/smp.h>
#include <linux/uaccess.h>
#include <asm/apic.h>

#include "canbare.h"

/* Time limits for the image to start and to stop. */
#define CANBARE_START_MS	500
#define CANBARE_STOP_MS		100

static void *memory;
static int hotplug_state = -1;
/* The CPU that runs the image; -1: none. */
static int running = -1;

bool canbare_has_memory(void)
{
	return memory;
}

struct canbare_shared *canbare_shared(void)
{
	return memory + CANBARE_SHARED;
}

bool canbare_runs(void)
{
	return running >= 0;
}

int canbare_processor(void)
{
	int cpu, found = -1;

	if (running >= 0)
		return running;
	for_each_present_cpu(cpu)
		if (!cpu_online(cpu))
			found = cpu;
	return found;
}

int canbare_load(const void __user *image, u32 len)
{
	const size_t magic_len = sizeof(CANBARE_MAGIC) - 1;

	if (len > CANBARE_SHARED || len < CANBARE_MAGIC_AT + magic_len)
		return -ENOEXEC;
	memset(memory, 0, CANBARE_MEMORY_SIZE);
	if (copy_from_user(memory, image, len))
		return -EFAULT;
	if (memcmp(memory + CANBARE_MAGIC_AT, CANBARE_MAGIC, magic_len))
		return -ENOEXEC;
	return 0;
}

/* Sends an interrupt to a processor that Linux does not count among its own. */
static void canbare_send(int cpu, u32 what)
{
	unsigned long flags;

	local_irq_save(flags);
	apic->icr_write(what, cpu_physical_id(cpu));
	if (apic->wait_icr_idle)
		apic->wait_icr_idle();
	local_irq_restore(flags);
}

static void canbare_send_init(int cpu)
{
	canbare_send(cpu, APIC_INT_ASSERT | APIC_DM_INIT);
}

static void canbare_send_startup(int cpu)
{
	canbare_send(cpu, APIC_DM_STARTUP | (CANBARE_MEMORY >> PAGE_SHIFT));
}

/* Waits while the image reports this state; false after the time limit. */
static bool canbare_leaves(u32 state, unsigned int ms)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(ms);

	while (READ_ONCE(canbare_shared()->state) == state) {
		if (time_after(jiffies, deadline))
			return false;
		usleep_range(100, 200);
	}
	return true;
}

static int canbare_start(int cpu)
{
	canbare_send_init(cpu);
	usleep_range(10000, 11000);
	canbare_send_startup(cpu);
	usleep_range(300, 400);
	/* Repeated, as the protocol requires for processors that missed it. */
	if (READ_ONCE(canbare_shared()->state) == CANBARE_NOT_STARTED)
		canbare_send_startup(cpu);
	if (!canbare_leaves(CANBARE_NOT_STARTED, CANBARE_START_MS) ||
	    !canbare_leaves(CANBARE_BEGUN, CANBARE_START_MS))
		return -ETIMEDOUT;
	return READ_ONCE(canbare_shared()->state) == CANBARE_ROUTING ? 0 : -EIO;
}

int canbare_run(void)
{
	int cpu, err;

	/* From now on Linux cannot bring it up. */
	cpus_read_lock();
	cpu = canbare_processor();
	WRITE_ONCE(running, cpu);
	cpus_read_unlock();
	if (cpu < 0)
		return -ENXIO;
	err = canbare_start(cpu);
	if (err)
		canbare_end();
	return err;
}

void canbare_end(void)
{
	if (running < 0)
		return;
	WRITE_ONCE(canbare_shared()->stop, 1);
	canbare_leaves(CANBARE_ROUTING, CANBARE_STOP_MS);
	canbare_send_init(running);
	WRITE_ONCE(running, -1);
}

/* Linux brings a processor up: not this one. */
static int canbare_coming_up(unsigned int cpu)
{
	return READ_ONCE(running) == (int)cpu ? -EBUSY : 0;
}

int canbare_processor_init(void)
{
	int state;

	if (region_intersects(CANBARE_MEMORY, CANBARE_MEMORY_SIZE, IORESOURCE_SYSTEM_RAM,
			      IORES_DESC_NONE) == REGION_DISJOINT)
		memory = memremap(CANBARE_MEMORY, CANBARE_MEMORY_SIZE, MEMREMAP_WB);
	state = cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN, "canbare:up", canbare_coming_up,
					  NULL);
	if (state < 0) {
		if (memory)
			memunmap(memory);
		return state;
	}
	hotplug_state = state;
	return 0;
}

void canbare_processor_exit(void)
{
	canbare_end();
	cpuhp_remove_state_nocalls(hotplug_state);
	if (memory)
		memunmap(memory);
}
