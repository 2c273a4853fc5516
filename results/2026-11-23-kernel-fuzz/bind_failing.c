// SPDX-License-Identifier: GPL-2.0-only
/*
 * Binds a card to the kernel's own kvaser_pci with its nth allocation failing, n = 1, 2, ... On a kernel with
 * CONFIG_FAULT_INJECTION and kvaser_pci: bind_failing 0000:00:04.0
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <unistd.h>
static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), r;
	if (fd < 0) return -errno;
	r = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return r;
}
int main(int c, char **v)
{
	char path[256];
	int nth = open("/proc/thread-self/fail-nth", O_RDWR);
	if (nth < 0) { perror("fail-nth"); return 2; }
	for (int n = 1; n < 400; n++) {
		char text[16]; int fd, r, left;
		snprintf(path, sizeof(path), "/sys/bus/pci/drivers/kvaser_pci/unbind");
		put(path, v[1]);
		fd = open("/sys/bus/pci/drivers/kvaser_pci/bind", O_WRONLY);
		if (fd < 0) { perror("bind"); return 2; }
		printf("%d\n", n); fflush(stdout);
		int len = snprintf(text, sizeof(text), "%d", n);
		(void)!pwrite(nth, text, len, 0);
		r = write(fd, v[1], strlen(v[1])) < 0 ? -errno : 0;
		memset(text, 0, sizeof(text));
		(void)!pread(nth, text, 15, 0);
		left = atoi(text);
		for (int t = 0; t < 8 && pwrite(nth, "0", 1, 0) != 1; t++);
		close(fd);
		if (left) { printf("no more failures after %d (%d)\n", n - 1, r); return 0; }
	}
	return 0;
}
