/* SPDX-License-Identifier: GPL-2.0-only */
/* The Test Anything Protocol, and how these programs open and map a device. */
#ifndef CANCHAR_TESTS_TAP_H
#define CANCHAR_TESTS_TAP_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static int number, failed;

static void ok(bool holds, const char *what)
{
	printf("%sok %d - %s\n", holds ? "" : "not ", ++number, what);
	failed += !holds;
}

static int open_device(const char *path)
{
	int fd = open(path, O_RDWR | O_NONBLOCK);

	if (fd < 0) {
		perror(path);
		exit(2);
	}
	return fd;
}

static void *map(int fd, size_t bytes, int flags, off_t offset)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
}

#endif
