// SPDX-License-Identifier: GPL-2.0-only
/* The SJA1000 cards of the lab and the driver of each; our modules from their files. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuzz.h"

#define CARDS_MAX	8
#define PCI		"/sys/bus/pci/devices"

const char *modules_folder = ".";
static char found[CARDS_MAX][32];

static bool is_kvaser(const char *address)
{
	char path[128], text[16] = "";
	int fd;

	snprintf(path, sizeof(path), PCI "/%.31s/vendor", address);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	(void)!read(fd, text, sizeof(text) - 1);
	close(fd);
	return !strncmp(text, "0x10e8", 6);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

unsigned int cards(void)
{
	static unsigned int count;
	struct dirent *entry;
	DIR *folder;

	if (count)
		return count;
	folder = opendir(PCI);
	while (folder && count < CARDS_MAX && (entry = readdir(folder)))
		if (entry->d_name[0] != '.' && is_kvaser(entry->d_name))
			snprintf(found[count++], sizeof(found[0]), "%.31s", entry->d_name);
	if (folder)
		closedir(folder);
	qsort(found, count, sizeof(found[0]), by_name);
	return count;
}

const char *card(unsigned int number)
{
	return number < cards() ? found[number] : "0000:00:1f.7";
}

/* From its driver to this one; "": to that which the kernel would choose, "-": to none. */
long bind_card(const char *address, const char *driver)
{
	char path[128];
	long result;

	snprintf(path, sizeof(path), PCI "/%s/driver_override", address);
	result = write_text(path, *driver ? driver : "\n");
	snprintf(path, sizeof(path), PCI "/%s/driver/unbind", address);
	write_text(path, address);
	return result ? result : write_text("/sys/bus/pci/drivers_probe", address);
}

long load_module(const char *name, const char *parameters)
{
	char path[256];
	long result;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.ko", modules_folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	result = made(syscall(SYS_finit_module, fd, parameters, 0));
	close(fd);
	return result;
}

/* Only when nobody uses it. */
long unload_module(const char *name)
{
	return made(syscall(SYS_delete_module, name, O_NONBLOCK));
}
