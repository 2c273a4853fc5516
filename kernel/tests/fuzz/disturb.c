// SPDX-License-Identifier: GPL-2.0-only
/*
 * What happens to machines while programs run: cards change their driver, modules go and come,
 * settings change by sysfs, a processor goes off and on. One thread does it.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

static const char *const drivers[] = { "canchar_kvaser_pci", "canprobe", "canbare", "", "-" };

/* The first two cards are mostly canprobe's, the next two canbare's, the last canchar's. */
static long bind_one(struct worker *worker, const struct row *row)
{
	static const unsigned int usual[] = { 1, 1, 2, 2, 0 };
	unsigned int number = below(worker, 5);

	(void)row;
	return bind_card(card(number), drivers[one_in(worker, 6) ? below(worker, 5) : usual[number]]);
}

static long unbind_one(struct worker *worker, const struct row *row)
{
	const char *address = card(below(worker, 5));
	char path[128];

	(void)row;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver/unbind", address);
	return write_text(path, address);
}

/* The parameters that the fuzzer began with, or others. */
static const struct module {
	const char *name, *parameters[4];
} modules[] = {
	{ "canwire", { "nodes=wcan0:A,wcan1:A,wcan2:B", "nodes=fz0:A tap_records=256 slip_ns=1",
		       "nodes=fz0:A,fz0:B", "nodes=x fifo_bytes=3" } },
	{ "canchar", { "virtual=2", "virtual=8 threaded=1 thread_priority=99", "virtual=1 wire=wcan1,wcan2",
		       "virtual=9" } },
	{ "canprobe", { "", "", "", "" } },
	{ "canbare", { "", "", "", "" } },
};

static long reload(struct worker *worker, const struct row *row)
{
	const struct module *module = &modules[below(worker, 4)];
	unsigned int which = one_in(worker, 3) ? below(worker, 4) : 0;
	long result = unload_module(module->name), loaded;

	(void)row;
	if (result && result != -ENOENT)
		return result;
	loaded = load_module(module->name, module->parameters[which]);
	/* Never without the module for long. */
	return loaded && which ? load_module(module->name, module->parameters[0]) : loaded;
}

static long set_one(unsigned int device, const char *attribute, const char *text)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/class/canchar/canchar%u/%s", device, attribute);
	return write_text(path, text);
}

static long set_attribute(struct worker *worker, const struct row *row)
{
	static const char *const names[] = {
		"bitrate", "restart_ms", "running", "report", "threaded", "thread_priority",
	};
	static const char *const texts[] = {
		"0", "1", "1000000", "125000", "5000", "10", "4294967295", "error-active",
		"error-warning", "error-passive", "bus-off", "", "-1",
	};
	unsigned int device = below(worker, 6), name = below(worker, sizeof(names) / sizeof(*names));
	const char *text = texts[below(worker, sizeof(texts) / sizeof(*texts))];
	unsigned long number = strtoul(text, NULL, 10);
	char rate[24];

	(void)row;
	if (!strcmp(names[name], "bitrate") && number) {
		snprintf(rate, sizeof(rate), "%llu", (unsigned long long)slowed_rate(number));
		text = rate;
	}
	return set_one(device, names[name], text);
}

static long read_attribute(struct worker *worker, const struct row *row)
{
	static const char *const names[] = {
		"bitrate", "restart_ms", "running", "state", "chip", "board", "node", "threaded",
		"thread_priority", "report", "broken",
	};
	unsigned int device = below(worker, 6), name = below(worker, sizeof(names) / sizeof(*names));
	char path[96], text[64];
	long result;
	int fd;

	(void)row;
	snprintf(path, sizeof(path), "/sys/class/canchar/canchar%u/%s", device, names[name]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	result = made(read(fd, text, sizeof(text)));
	close(fd);
	return result;
}

/* Not for long: a device that stays broken has nothing else to try. */
static long fail_a_start(struct worker *worker, const struct row *row)
{
	unsigned int device = below(worker, 6);
	long result = set_one(device, "broken", "1");

	(void)row;
	if (result)
		return result;
	set_one(device, "running", "0");
	result = set_one(device, "running", "1");
	set_one(device, "broken", "0");
	set_one(device, "running", "1");
	return result;
}

/*
 * The processor that canbare uses, where Linux leaves one: with canbare's image on it, Linux must not
 * get it. It goes off again, so one that Linux has at the beginning is none.
 */
static long processor(struct worker *worker, const struct row *row)
{
	static char path[64], was = 0;
	long result;
	int fd;

	(void)row;
	(void)worker;
	if (!was) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/online",
			 sysconf(_SC_NPROCESSORS_CONF) - 1);
		was = '1';
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			(void)!read(fd, &was, 1);
			close(fd);
		}
	}
	if (was == '1')
		return -ENODEV;
	result = write_text(path, "1");
	write_text(path, "0");
	return result;
}

static long rest(struct worker *worker, const struct row *row)
{
	(void)row;
	usleep(1000 * below(worker, 50));
	return 0;
}

static const struct row rows[] = {
	{ "bind", 6, bind_one, NULL },
	{ "unbind", 2, unbind_one, NULL },
	{ "reload", 4, reload, NULL },
	{ "attribute", 8, set_attribute, NULL },
	{ "read-attribute", 4, read_attribute, NULL },
	{ "broken", 1, fail_a_start, NULL },
	{ "processor", 1, processor, NULL },
	{ "rest", 20, rest, NULL },
};

const struct table disturb_table = { "disturb", ROWS(rows) };
