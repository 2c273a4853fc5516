/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What differs between the processors whose machines have the analyzer. One file for each implements it. */
#ifndef CANTER_PROCESSOR_H
#define CANTER_PROCESSOR_H

#include <stdbool.h>
#include <stdint.h>

/* What the analyzer has to know of an instruction. */
struct instruction {
	uint8_t marker;		/* the number of a marker instruction; 0: it is none */
	bool pushes;		/* may write on the stack at a function's beginning */
	bool halts;
	bool reads_clock;
	bool accesses_port;	/* a register of a device, and no memory */
};

/* `bytes`: the first eight, filled with zeros. */
struct instruction processor_decode(uint64_t bytes);

/* Where the fault happened that the kernel begins to handle in a function with the flag FAULTS. */
uint64_t processor_faulted_at(void);

/* The name of QEMU's function that reads a register. */
extern const char processor_register_reader[];

#endif
