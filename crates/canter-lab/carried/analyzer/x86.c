/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* x86-64. Codes: Intel's Software Developer's Manual, volume 2. */
#include "processor.h"
#include "qemu.h"

#define STACK_POINTER 7

const char processor_register_reader[] = "x86_cpu_gdb_read_register";

/* nopl number(%rax), with the marker in the lowest byte of the number */
static uint8_t marker(uint64_t bytes)
{
	return (bytes & 0xffffff) == 0x801f0f && (bytes >> 32 & 0xffffff) == 0x43414e ? bytes >> 24 & 0xff : 0;
}

static bool pushes(uint64_t bytes)
{
	uint8_t first = bytes & 0xff, second = bytes >> 8 & 0xff;

	return (first & 0xf8) == 0x50 || first == 0x6a || first == 0x68 ||
	       (first == 0x41 && (second & 0xf8) == 0x50);
}

/* in, out, ins, outs, also of two bytes */
static bool accesses_port(uint64_t bytes)
{
	uint8_t code = (bytes & 0xff) == 0x66 ? bytes >> 8 : bytes;

	return (code & 0xf4) == 0xe4 || (code & 0xfc) == 0x6c;
}

struct instruction processor_decode(uint64_t bytes)
{
	return (struct instruction){
		.marker = marker(bytes),
		.pushes = pushes(bytes),
		.halts = (bytes & 0xff) == 0xf4,
		/* rdtsc, rdtscp */
		.reads_clock = (bytes & 0xffff) == 0x310f || (bytes & 0xffffff) == 0xf9010f,
		.accesses_port = accesses_port(bytes),
	};
}

/* The processor has pushed the error's code, and above it the address. */
uint64_t processor_faulted_at(void)
{
	return qemu_memory(qemu_register(STACK_POINTER) + 8);
}
