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

/* Whether Linux was told to leave the memory alone. */
bool canbare_has_memory(void);

/* The CPU that runs the image or would; -1: Linux uses all. */
int canbare_processor(void);

/* The page that Linux and the image share; only while canbare_has_memory(). */
struct canbare_shared *canbare_shared(void);

/* Copies an image into the memory: 0, -EFAULT or -ENOEXEC. */
int canbare_load(const void __user *image, u32 len);

/* Starts the loaded image and waits until it forwards frames. */
int canbare_run(void);

/* Ends the image, in any state. */
void canbare_end(void);
bool canbare_runs(void);

#endif
