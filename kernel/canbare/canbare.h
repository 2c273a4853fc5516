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

/**
 * canbare_processor_init() - finds the processor and maps its memory
 *
 * Return: 0 or an error
 */
int canbare_processor_init(void);

/**
 * canbare_processor_exit() - releases what canbare_processor_init() took
 */
void canbare_processor_exit(void);

/**
 * canbare_has_memory() - whether Linux was told to leave the memory alone
 *
 * Return: true or false
 */
bool canbare_has_memory(void);

/**
 * canbare_processor() - the processor that runs the image or would
 *
 * Return: its number, or -1: Linux uses all
 */
int canbare_processor(void);

/**
 * canbare_shared() - the page that Linux and the image share; only while there is memory
 *
 * Return: the page
 */
struct canbare_shared *canbare_shared(void);

/**
 * canbare_load() - copies an image into the memory
 * @image: address in the process
 * @len: bytes
 *
 * Return: 0, -EFAULT, or -ENOEXEC
 */
int canbare_load(const void __user *image, u32 len);

/**
 * canbare_run() - starts the loaded image and waits until it forwards frames
 *
 * Return: 0 or an error
 */
int canbare_run(void);

/**
 * canbare_end() - ends the image, in any state
 */
void canbare_end(void);

/**
 * canbare_runs() - whether the processor runs the image
 *
 * Return: true or false
 */
bool canbare_runs(void);

#endif
