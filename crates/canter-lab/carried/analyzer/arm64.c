/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* AArch64. Codes: Arm Architecture Reference Manual, C4.1. */
#include "processor.h"
#include "qemu.h"

/* do_mem_abort(address, syndrome, registers): the third argument, and where `pc` is behind it, after x0 to x30 and sp. */
#define REGISTERS 2
#define PC_OFFSET 256

const char processor_register_reader[] = "aarch64_cpu_gdb_read_register";

/* The highest numbers of `hint`, which the manual does not allocate: no-operations. */
static uint8_t marker(uint32_t code)
{
	uint8_t number = code >> 5 & 0x7f;

	return (code & 0xfffff01f) == 0xd503201f && number > 112 ? number - 112 : 0;
}

/* stp, and str with an immediate offset, of 64 bits by the stack pointer */
static bool pushes(uint32_t code)
{
	bool by_stack_pointer = (code >> 5 & 0x1f) == 31;

	return by_stack_pointer && ((code & 0xfe400000) == 0xa8000000 || (code & 0xffe00c00) == 0xf8000c00 ||
				    (code & 0xffc00000) == 0xf9000000);
}

/* mrs of CNTPCT_EL0, CNTVCT_EL0, CNTPCTSS_EL0 or CNTVCTSS_EL0 */
static bool reads_clock(uint32_t code)
{
	uint32_t counter = code & ~0x1f;

	return counter == 0xd53be020 || counter == 0xd53be040 || counter == 0xd53be0a0 || counter == 0xd53be0c0;
}

struct instruction processor_decode(uint64_t bytes)
{
	uint32_t code = bytes;

	return (struct instruction){
		.marker = marker(code),
		.pushes = pushes(code),
		.halts = code == 0xd503207f,	/* wfi */
		.reads_clock = reads_clock(code),
	};
}

uint64_t processor_faulted_at(void)
{
	return qemu_memory(qemu_register(REGISTERS) + PC_OFFSET);
}
