// SPDX-License-Identifier: GPL-2.0-only
/* canwire: every command and attribute of uapi/canwire.h, and the tap: map, read, poll, epoll. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/genetlink.h>

#include "../../uapi/canwire.h"
#include "fuzz.h"

static const char *const buses[] = { "A", "B", "C", "fuzz-bus_4567890", "fuzz-bus_456789", "", "a/b" };

enum content { NUMBER, NODE_NAME, BUS_NAME, A_FRAME, A_SCHEDULE, NOTHING };

struct attribute {
	enum content content;
	struct field field;
};

#define NUM(type, ...) { NUMBER, { 0, sizeof(type), VALUES(__VA_ARGS__) } }
#define RATE(...) { NUMBER, { 0, sizeof(uint32_t), VALUES_OF(BIT_RATE, __VA_ARGS__) } }
#define IS(content) { content, {} }
#define MS_NS	1000000ULL
#define HOUR_NS	3600000000000ULL

static const struct attribute attributes[__CANWIRE_A_MAX] = {
	[CANWIRE_A_NODE] = IS(NODE_NAME),
	[CANWIRE_A_BUS] = IS(BUS_NAME),
	[CANWIRE_A_IFINDEX] = NUM(uint32_t, 1),
	[CANWIRE_A_SLOT] = NUM(uint8_t, 0, 63),
	[CANWIRE_A_FIFO_BYTES] = NUM(uint32_t, 64, 16, 15, 4096),
	[CANWIRE_A_FIFO_FRAMES] = NUM(uint32_t, 5, 1, 512),
	[CANWIRE_A_TX_BUFFERS] = NUM(uint8_t, 2, 1, 3),
	[CANWIRE_A_FD_TOLERANT] = NUM(uint8_t, 1, 0),
	[CANWIRE_A_CONNECTED] = NUM(uint8_t, 1, 0),
	[CANWIRE_A_NAPI_ID] = NUM(uint32_t, 1),
	[CANWIRE_A_NODE_STATS] = IS(NOTHING),
	[CANWIRE_A_NODES] = NUM(uint32_t, 1),
	[CANWIRE_A_SLIP_NS] = NUM(uint64_t, 0, 1, MS_NS, HOUR_NS, UINT64_MAX),
	[CANWIRE_A_BITRATE] = RATE(1000000, 0, 125000, 20000, 8000000, 1),
	[CANWIRE_A_DATA_BITRATE] = RATE(4000000, 0, 1000000, 8000000, 1),
	[CANWIRE_A_BUS_STATS] = IS(NOTHING),
	[CANWIRE_A_SOURCE_STATS] = IS(NOTHING),
	[CANWIRE_A_TAP_SIZE] = NUM(uint32_t, 4096),
	[CANWIRE_A_ERROR] = NUM(uint8_t, CANWIRE_ERROR_BIT, CANWIRE_ERROR_STUFF, CANWIRE_ERROR_FORM,
				CANWIRE_ERROR_CRC, CANWIRE_ERROR_ACK, CANWIRE_ERROR_RATE),
	[CANWIRE_A_PROBABILITY] = NUM(uint32_t, 500000000, 0, 1, 1000000000),
	[CANWIRE_A_COUNT] = NUM(uint32_t, 10, 0, 1, 1000, 0xffffffff),
	[CANWIRE_A_FRAME] = IS(A_FRAME),
	[CANWIRE_A_SCHEDULE] = IS(A_SCHEDULE),
	[CANWIRE_A_RESET] = IS(NOTHING),
	[CANWIRE_A_PERIOD_NS] = NUM(uint64_t, MS_NS, 0, 1000, 100000, HOUR_NS),
	[CANWIRE_A_LOAD] = NUM(uint32_t, 500, 1, 1000, 1001),
	[CANWIRE_A_JITTER_NS] = NUM(uint64_t, 0, 1, 999, 999999, HOUR_NS),
	[CANWIRE_A_BURST] = NUM(uint32_t, 1, 2, 100, 0xffffffff),
	[CANWIRE_A_SOURCE_FLAGS] = NUM(uint32_t, 0, 1, 2, 4, 8, 16, 30, 31, 32, 63),
	[CANWIRE_A_SEED] = NUM(uint64_t, 2014, 0, UINT64_MAX),
	[CANWIRE_A_CLOCK_DRIFT] = NUM(int32_t, 0, 1, -1, 100000, -1000000, 1000000, 1000001, INT32_MIN,
				      INT32_MAX),
	[CANWIRE_A_START_NS] = NUM(uint64_t, 0, 1, 1ULL << 61, 1ULL << 62, 1ULL << 63, UINT64_MAX),
	[CANWIRE_A_PAD] = IS(NOTHING),
};

#define BIT(attribute) (1ULL << CANWIRE_A_##attribute)
#define NODE	BIT(NODE)
#define BUS	BIT(BUS)

/* What each command needs, may have, and whether it lists. */
static const struct command {
	const char *name;
	unsigned int weight;
	uint64_t needs, may;
	bool lists;
} commands[__CANWIRE_CMD_MAX] = {
	[CANWIRE_CMD_UNSPEC] = { "CANWIRE_CMD_UNSPEC", 1, 0, ~0ULL, true },
	[CANWIRE_CMD_NODE_ADD] = { "CANWIRE_CMD_NODE_ADD", 8, NODE | BUS,
				   BIT(FIFO_BYTES) | BIT(FIFO_FRAMES) | BIT(TX_BUFFERS) |
				   BIT(FD_TOLERANT), false },
	[CANWIRE_CMD_NODE_DELETE] = { "CANWIRE_CMD_NODE_DELETE", 4, NODE, 0, false },
	[CANWIRE_CMD_NODE_GET] = { "CANWIRE_CMD_NODE_GET", 3, 0, NODE | BUS, true },
	[CANWIRE_CMD_BUS_GET] = { "CANWIRE_CMD_BUS_GET", 3, 0, BUS, true },
	[CANWIRE_CMD_BUS_SET] = { "CANWIRE_CMD_BUS_SET", 2, BUS, BIT(SLIP_NS) | BIT(SEED), false },
	[CANWIRE_CMD_CONNECT] = { "CANWIRE_CMD_CONNECT", 4, NODE | BIT(CONNECTED), 0, false },
	[CANWIRE_CMD_BABBLE] = { "CANWIRE_CMD_BABBLE", 4, NODE | BIT(FRAME), BIT(COUNT), false },
	[CANWIRE_CMD_INJECT] = { "CANWIRE_CMD_INJECT", 4, BUS | BIT(ERROR),
				 BIT(PROBABILITY) | BIT(COUNT) | NODE, false },
	[CANWIRE_CMD_SOURCE_LOAD] = { "CANWIRE_CMD_SOURCE_LOAD", 3, BUS | BIT(SCHEDULE), BIT(RESET),
				      false },
	[CANWIRE_CMD_SOURCE_START] = { "CANWIRE_CMD_SOURCE_START", 6, BUS | BIT(FRAME),
				       BIT(PERIOD_NS) | BIT(LOAD) | BIT(JITTER_NS) | BIT(BURST) |
				       BIT(COUNT) | BIT(SOURCE_FLAGS) | BIT(SEED) | BIT(START_NS) |
				       BIT(BITRATE) | BIT(DATA_BITRATE), false },
	[CANWIRE_CMD_SOURCE_STOP] = { "CANWIRE_CMD_SOURCE_STOP", 3, BUS, 0, false },
};

static unsigned int fill_schedule(struct worker *worker, char *to)
{
	unsigned int count = 1 + below(worker, one_in(worker, 16) ? 350 : 8);
	uint64_t at_ns = 0;

	for (unsigned int i = 0; i < count; i++) {
		struct canwire_schedule_entry *entry = (void *)(to + i * sizeof(*entry));

		entry->at_ns = at_ns += one_in(worker, 64) ? any_value(worker, 8) : 50000;
		fill_can_frame(worker, &entry->frame, sizeof(entry->frame));
	}
	return count * sizeof(struct canwire_schedule_entry);
}

static void put(struct message *message, unsigned int number, bool exact)
{
	struct worker *worker = message->worker;
	const struct attribute *attribute = &attributes[number];
	char *value = worker->scratch + SCRATCH_BYTES / 2;
	const char *name;
	unsigned int bytes = 0;
	uint64_t drawn;

	switch (attribute->content) {
	case NODE_NAME:
		name = exact ? "fz0" : node_name(worker);
		bytes = strlen(name) + 1;
		memcpy(value, name, bytes);
		break;
	case BUS_NAME:
		name = exact ? "A" : buses[below(worker, sizeof(buses) / sizeof(*buses)) *
					   below(worker, 2)];
		bytes = strlen(name) + 1;
		memcpy(value, name, bytes);
		break;
	case A_FRAME:
		bytes = sizeof(struct canfd_frame);
		if (exact)
			memset(value, 0, bytes);
		else
			fill_can_frame(worker, value, bytes);
		break;
	case A_SCHEDULE:
		bytes = fill_schedule(worker, value);
		if (exact)
			memset(value, 0, bytes);
		break;
	case NUMBER:
		bytes = attribute->field.bytes;
		drawn = exact ? valid_value(&attribute->field) : value_of(worker, &attribute->field);
		memcpy(value, &drawn, bytes);
		break;
	case NOTHING:
		break;
	}
	if (!exact && one_in(worker, 48))
		bytes = below(worker, 96);
	message_attribute(message, number, value, bytes);
}

static void begin(struct message *message, struct worker *worker, uint8_t command, uint16_t flags)
{
	struct genlmsghdr general = { .cmd = command, .version = CANWIRE_GENL_VERSION };
	int family = family_id();

	message_begin(message, worker, family > 0 ? family : GENL_ID_CTRL + 64, flags);
	message_put(message, &general, sizeof(general));
}

static long call_command(struct worker *worker, const struct row *row)
{
	unsigned int number = (const struct command *)row->data - commands;
	const struct command *command = row->data;
	struct message message;

	begin(&message, worker, number ? number : any_value(worker, 1),
	      command->lists && one_in(worker, 2) ? NLM_F_DUMP : 0);
	for (unsigned int i = 1; i < __CANWIRE_A_MAX; i++) {
		bool has = command->needs >> i & 1 ? !one_in(worker, 24) :
			   command->may >> i & 1 ? one_in(worker, 3) : one_in(worker, 200);

		if (has)
			put(&message, i, false);
	}
	return message_send(&message, NETLINK_GENERIC);
}

/* The command with all that it needs, and values with which it succeeds. */
long netlink_command(struct worker *worker, uint8_t number)
{
	const struct command *command = &commands[number];
	struct message message;

	begin(&message, worker, number, command->lists ? NLM_F_DUMP : 0);
	for (unsigned int i = 1; i < __CANWIRE_A_MAX; i++)
		if (command->needs >> i & 1)
			put(&message, i, true);
	return message_send(&message, NETLINK_GENERIC);
}

#define COMMAND(name, weight) \
	{ "CANWIRE_CMD_" #name, weight, call_command, &commands[CANWIRE_CMD_##name] }

static const struct row rows[] = {
	COMMAND(UNSPEC, 1),	 COMMAND(NODE_ADD, 8),	   COMMAND(NODE_DELETE, 3),
	COMMAND(NODE_GET, 3),	 COMMAND(BUS_GET, 3),	   COMMAND(BUS_SET, 2),
	COMMAND(CONNECT, 4),	 COMMAND(BABBLE, 4),	   COMMAND(INJECT, 4),
	COMMAND(SOURCE_LOAD, 3), COMMAND(SOURCE_START, 6), COMMAND(SOURCE_STOP, 3),
};

_Static_assert(sizeof(rows) / sizeof(*rows) == __CANWIRE_CMD_MAX, "a row for each command");

const struct table canwire_table = { "canwire", ROWS(rows) };

/* ------------------------------------------------------------- the tap -- */

static long open_tap(struct worker *worker, const struct row *row)
{
	char path[64];

	(void)row;
	snprintf(path, sizeof(path), "/dev/canwire-%s", buses[below(worker, 3)]);
	return keep(worker, TAP, open(path, (one_in(worker, 16) ? O_RDWR : O_RDONLY) | O_CLOEXEC));
}

static long read_tap(struct worker *worker, const struct row *row)
{
	size_t bytes = below(worker, 4096);

	(void)row;
	return made(read(slot(worker, TAP), place_for(worker, bytes), bytes));
}

static long map_tap(struct worker *worker, const struct row *row)
{
	static const size_t sizes[] = { 4096, 4096 + 16384 * 128, 1, 2 * 4096, 16 << 20 };

	(void)row;
	return map_file(worker, slot(worker, TAP), sizes[below(worker, 5)],
			one_in(worker, 8) ? PROT_READ | PROT_WRITE : PROT_READ,
			one_in(worker, 8) ? 4096 * below(worker, 1000) : 0);
}

/* As a reader does: the head, and the record before it. */
static long look_at_tap(struct worker *worker, const struct row *row)
{
	struct map *map = &worker->maps[below(worker, MAPS_MAX)];
	const struct canwire_ring *ring = (void *)map->at;
	uint64_t sum = 0;

	(void)row;
	if (!map->at || map->bytes < 4096 || ring->magic != CANWIRE_RING_MAGIC)
		return -EBADF;
	for (size_t at = 64; at + 8 <= map->bytes; at += 1024)
		sum += *(volatile uint64_t *)(map->at + at);
	return sum & 1;
}

/*
 * What stands in all records: single bytes, which are never half written, so a record that is being
 * written counts too.
 */
static void check_records(const struct canwire_ring *ring, size_t bytes)
{
	const struct canwire_record *records = (void *)((char *)ring + 4096);
	size_t count = (bytes - 4096) / sizeof(*records);

	for (size_t i = 0; i < count; i++) {
		const struct canwire_record *record = &records[i];

		if (record->len > CANFD_MAX_DLEN || record->dlc > 15 ||
		    record->error > CANWIRE_ERROR_ABORTED ||
		    (record->slot > 63 && record->slot != CANWIRE_SLOT_SOURCE))
			found_wrong("the tap of bus %.16s has a frame of %u bytes, DLC %u, error %u, slot %u",
				    ring->bus, record->len, record->dlc, record->error, record->slot);
	}
}

static long check_tap(struct worker *worker, const struct row *row)
{
	struct canwire_ring *ring;
	char path[64];
	size_t bytes;
	int fd;

	(void)row;
	snprintf(path, sizeof(path), "/dev/canwire-%s", buses[below(worker, 3)]);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ring = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (ring != MAP_FAILED) {
		bytes = 4096 + ring->records * sizeof(struct canwire_record);
		munmap(ring, 4096);
		ring = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	}
	close(fd);
	if (ring == MAP_FAILED)
		return -errno;
	check_records(ring, bytes);
	munmap(ring, bytes);
	return 0;
}

static const struct row tap_rows[] = {
	{ "open", 6, open_tap, NULL },
	{ "close", 2, close_one, (void *)TAP },
	{ "read", 1, read_tap, NULL },
	{ "mmap", 4, map_tap, NULL },
	{ "munmap", 1, unmap_one, NULL },
	{ "look", 6, look_at_tap, NULL },
	{ "check", 3, check_tap, NULL },
	{ "poll", 4, poll_one, (void *)TAP },
	{ "epoll", 4, epoll_one, (void *)TAP },
};

const struct table tap_table = { "tap", ROWS(tap_rows) };
