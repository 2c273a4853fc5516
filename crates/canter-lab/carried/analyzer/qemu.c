/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that the program QEMU exports, found by their names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#include "processor.h"
#include "qemu.h"

#define VIRTUAL_CLOCK 1

/* Of the library by which QEMU returns a register. */
struct bytes {
	uint8_t *data;
	unsigned int length;
};

static int64_t (*clock_ns)(int type);
static int (*read_register)(void *processor, struct bytes *value, int number);
static int (*read_memory)(void *processor, uint64_t address, void *to, uint64_t length, bool write);
static struct bytes *(*new_bytes)(void);
static uint8_t *(*free_bytes)(struct bytes *bytes, int and_data);

/* Where QEMU has the processor that this thread executes. */
static void **current_processor(void)
{
	return dlsym(RTLD_DEFAULT, "current_cpu");
}

#define FIND(function, name) (*(void **)&(function) = dlsym(RTLD_DEFAULT, (name)))

bool qemu_found(void)
{
	return current_processor() && FIND(clock_ns, "qemu_clock_get_ns") &&
	       FIND(read_register, processor_register_reader) && FIND(read_memory, "cpu_memory_rw_debug") &&
	       FIND(new_bytes, "g_byte_array_new") && FIND(free_bytes, "g_byte_array_free");
}

/* QEMU allows a processor to read its clock at few instructions only, so it must not know that one asks. */
uint64_t qemu_clock_ns(void)
{
	void **current = current_processor();
	void *processor = *current;
	uint64_t now_ns;

	*current = NULL;
	now_ns = clock_ns(VIRTUAL_CLOCK);
	*current = processor;
	return now_ns;
}

uint64_t qemu_register(int number)
{
	struct bytes *bytes = new_bytes();
	uint64_t value = 0;

	if (read_register(*current_processor(), bytes, number) == sizeof(value))
		value = *(uint64_t *)bytes->data;
	free_bytes(bytes, true);
	return value;
}

uint64_t qemu_memory(uint64_t address)
{
	uint64_t value = 0;

	if (read_memory(*current_processor(), address, &value, sizeof(value), false) < 0)
		return 0;
	return value;
}
