/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a count of instructions lacks: misses of caches, accesses to registers of devices, entries
 * into the kernel.
 */
#ifndef CANTER_COST_H
#define CANTER_COST_H

#include <stdbool.h>
#include <stdint.h>

struct costs {
	uint64_t code, data;	/* misses of the first caches */
	uint64_t memory;	/* those of them that the second cache did not have either */
	uint64_t registers;	/* reads and writes of registers of devices */
	uint64_t entries;	/* into the kernel: system calls, interrupts, exceptions */
};

/* Whether anything is counted. */
extern bool cost_counted;

/* Takes an argument of the plugin, `l1i=BYTES:WAYS:LINE`, also l1d and l2; false: it is no such argument. */
bool cost_configure(const char *argument);
void cost_add(struct costs *to, const struct costs *more);
void cost_execute(unsigned int cpu, uint64_t address, uint32_t bytes, struct costs *costs);
void cost_access(unsigned int cpu, uint64_t address, struct costs *costs);

#endif
