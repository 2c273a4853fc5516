/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interfaces between the parts of canbare.
 *
 *	main.c		the file
 *	../card_pair.c	cards, which come and go
 *	processor.c	the processor, its memory, its start and its end
 */
#ifndef CANBARE_H
#define CANBARE_H

#include <linux/types.h>

#include "../uapi/canbare.h"

int canbare_processor_init(void);
void canbare_processor_exit(void);
bool canbare_has_memory(void);
/* The processor that runs it or would, or -1. */
int canbare_processor(void);
/* The page is valid only while there is memory. */
struct canbare_shared *canbare_shared(void);
int canbare_load(const void __user *image, u32 len);
/* Starts the loaded image; returns 0 when it forwards frames, or an error. */
int canbare_run(void);
/* Ends it in any state. */
void canbare_end(void);
bool canbare_runs(void);

#endif
