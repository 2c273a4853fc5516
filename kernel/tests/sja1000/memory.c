// SPDX-License-Identifier: GPL-2.0-only
/* canchar's memory.c in user space, and what kernel.h declares for all programs. */
#include "../../canchar/canchar.h"

void (*at_barrier)(void);
unsigned int devices_added;
unsigned int steps, failing_step;

bool step_fails(void)
{
	return ++steps == failing_step;
}

bool canchar_memory_alloc(struct canchar_memory *memory, size_t bytes)
{
	*memory = (struct canchar_memory){ .start = calloc(1, bytes) };
	return memory->start;
}

void canchar_memory_free(const struct canchar_memory *memory)
{
	free(memory->start);
}
