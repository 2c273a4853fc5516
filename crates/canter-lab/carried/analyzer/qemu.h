/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the analyzer uses of QEMU besides its plugin interface: functions that the program exports.
 * They are called from a callback of the plugin, and are about the processor that executes.
 */
#ifndef CANTER_QEMU_H
#define CANTER_QEMU_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this QEMU has them. */
bool qemu_found(void);

/*
 * QEMU's virtual clock when it was last brought up to date: exact after an instruction that reads
 * it, and after a halt unless an interrupt was pending.
 */
uint64_t qemu_clock_ns(void);

/* A register, by its number in QEMU's interface to gdb; right at the beginning of a block. */
uint64_t qemu_register(int number);

/* Eight bytes of memory at an address of the guest's kernel; 0: there are none. */
uint64_t qemu_memory(uint64_t address);

#endif
