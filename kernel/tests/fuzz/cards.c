// SPDX-License-Identifier: GPL-2.0-only
/* The SJA1000 cards of the lab and the driver of each; our modules from their files. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

static const char *const usual_drivers[] = {
	"canprobe", "canprobe", "canbare", "canbare", "canchar_kvaser_pci",
};

void bind_cards(void)
{
	for (unsigned int i = 0; i < sizeof(usual_drivers) / sizeof(*usual_drivers); i++)
		bind_card(card(i), usual_drivers[i]);
}

void unbind_cards(void)
{
	for (unsigned int i = 0; i < sizeof(usual_drivers) / sizeof(*usual_drivers); i++)
		bind_card(card(i), "-");
}

const char *card_of(const char *driver)
{
	unsigned int i = 0;

	while (strcmp(usual_drivers[i], driver))
		i++;
	return card(i);
}

/*
 * The modules' files, read once, before allocations fail: finit_module(2) of a file of the lab's share
 * answered EINVAL for good after some hundred failures.
 */
static struct image {
	char name[16];
	char *bytes;
	size_t count;
} images[4];

static long read_image(struct image *image, const char *name)
{
	char path[256];
	struct stat is;
	int fd;

	snprintf(path, sizeof(path), "%s/%s.ko", modules_folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &is) && (image->bytes = malloc(is.st_size)) &&
	    read(fd, image->bytes, is.st_size) == is.st_size) {
		image->count = is.st_size;
		snprintf(image->name, sizeof(image->name), "%s", name);
	}
	close(fd);
	return image->count ? 0 : -EIO;
}

/* The first load of each is before there are threads. */
long load_module(const char *name, const char *parameters)
{
	struct image *image = images;
	long result;

	while (*image->name && strcmp(image->name, name))
		image++;
	result = *image->name ? 0 : read_image(image, name);
	return result ? result : made(syscall(SYS_init_module, image->bytes, image->count, parameters));
}

/* Only when nobody uses it. */
long unload_module(const char *name)
{
	return made(syscall(SYS_delete_module, name, O_NONBLOCK));
}
