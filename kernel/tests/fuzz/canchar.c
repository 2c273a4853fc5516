// SPDX-License-Identifier: GPL-2.0-only
/* canchar: every ioctl of uapi/canchar.h, read, write, poll, epoll, and the mapped rings. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/can.h>

#include "../../uapi/canchar.h"
#include "fuzz.h"

#define DEVICES		6
#define MS_NS		1000000ULL

static void fill_filters(struct worker *worker, void *buffer, size_t bytes)
{
	fill_bytes(worker, buffer, bytes < 8 * 600 ? bytes : 8 * 600);
}

static void fill_entries(struct worker *worker, void *buffer, size_t bytes)
{
	struct canchar_poll_entry *entries = buffer;

	(void)bytes;
	for (unsigned int i = 0; i < CANCHAR_POLL_SET_MAX + 1; i++)
		entries[i].fd = one_in(worker, 16) ? (int)any_value(worker, 4) :
						     slot(worker, CANCHAR);
}

static const struct field timing_fields[] = {
	FIELD_OF(BIT_RATE, struct canchar_timing, bitrate, 1000000, 0, 500000, 125000, 20000, 5000, 1),
	FIELD(struct canchar_timing, sample_point, 0, 875, 500, 1000),
	FIELD_OF(PRESCALER, struct canchar_timing, brp, 0, 1, 2, 64, 65),
	FIELD(struct canchar_timing, tseg1, 0, 1, 4, 16, 17),
	FIELD(struct canchar_timing, tseg2, 0, 1, 2, 8, 9),
	FIELD(struct canchar_timing, sjw, 0, 1, 4, 5),
	FIELD(struct canchar_timing, restart_ms, 0, 1, 10, 0xffffffff),
	FIELD(struct canchar_timing, flags, 0, CANCHAR_LISTEN_ONLY),
};

static const struct field options_fields[] = {
	FIELD(struct canchar_options, frame_size, 24, 20),
	FIELD(struct canchar_options, flags, 0, CANCHAR_OVERWRITE, CANCHAR_ECHO, CANCHAR_ECHO_OWN,
	      CANCHAR_POLL_CHIP, CANCHAR_ADAPTIVE, CANCHAR_NO_STAMPS, 63),
	FIELD(struct canchar_options, rx_slots, 64, 2, 4, 1024, 4096, 8192),
	FIELD(struct canchar_options, tx_slots, 64, 1, 2, 1024, 4096, 8192),
	FIELD(struct canchar_options, priority, 0, 1, 2),
	FIELD(struct canchar_options, read_min, 1, 2, 63, 64),
	FIELD(struct canchar_options, timeout_ns, 0, 1, MS_NS, 10 * MS_NS, CANCHAR_FOREVER),
	FIELD(struct canchar_options, spin_ns, 0, 1, MS_NS, 10 * MS_NS, CANCHAR_FOREVER),
};

static const struct field filters_fields[] = {
	FIELD(struct canchar_filters, count, 1, 0, 2, 64, CANCHAR_FILTERS_MAX),
	FIELD(struct canchar_filters, error_mask, 0x1fffffff, 0),
	FIELD(struct canchar_filters, join, 0, 1),
	POINTER(struct canchar_filters, filters, fill_filters),
};

static const struct field wait_fields[] = {
	FIELD(struct canchar_wait, timeout_ns, MS_NS, 0, 1, 10 * MS_NS, CANCHAR_FOREVER),
	FIELD(struct canchar_wait, min, 1, 2, 63, 64),
};

static const struct field done_fields[] = {
	{ 0, 8, VALUES(MS_NS, 0, 1, 10 * MS_NS, CANCHAR_FOREVER) },
};

static const struct field set_fields[] = {
	FIELD(struct canchar_poll_set, timeout_ns, MS_NS, 0, 1, 10 * MS_NS, CANCHAR_FOREVER),
	FIELD(struct canchar_poll_set, count, 1, 2, 8, CANCHAR_POLL_SET_MAX),
	POINTER(struct canchar_poll_set, entries, fill_entries),
};

#define NONE 0, NULL
#define REQUEST(name, bytes, ...) \
	static const struct request request_##name = { CANCHAR_##name, CANCHAR, bytes, __VA_ARGS__ }

REQUEST(GET_INFO, sizeof(struct canchar_info), NONE);
REQUEST(GET_TIMING, sizeof(struct canchar_timing), NONE);
REQUEST(SET_TIMING, sizeof(struct canchar_timing), FIELDS(timing_fields));
REQUEST(START, 0, NONE);
REQUEST(STOP, 0, NONE);
REQUEST(GET_OPTIONS, sizeof(struct canchar_options), NONE);
REQUEST(SET_OPTIONS, sizeof(struct canchar_options), FIELDS(options_fields));
REQUEST(SET_FILTERS, sizeof(struct canchar_filters), FIELDS(filters_fields));
REQUEST(GET_STATISTICS, sizeof(struct canchar_statistics), NONE);
REQUEST(WAIT, sizeof(struct canchar_wait), FIELDS(wait_fields));
REQUEST(KICK, 0, NONE);
REQUEST(WAIT_TX_DONE, 8, FIELDS(done_fields));
REQUEST(POLL_SET, sizeof(struct canchar_poll_set), FIELDS(set_fields));

static long open_device(struct worker *worker, const struct row *row)
{
	int flags = one_in(worker, 12) ? 0 : O_NONBLOCK;
	char path[32];

	(void)row;
	snprintf(path, sizeof(path), "/dev/canchar%u", (unsigned int)below(worker, DEVICES));
	flags |= one_in(worker, 8) ? O_RDONLY : O_RDWR;
	return keep(worker, CANCHAR, open(path, flags | O_CLOEXEC));
}

static long read_frames(struct worker *worker, const struct row *row)
{
	static const size_t sizes[] = { 24, 20, 0, 1, 23, 48, 240, 4096 };
	size_t bytes = sizes[below(worker, 8)];

	(void)row;
	return made(read(slot(worker, CANCHAR), place_for(worker, bytes), bytes));
}

/* Of a struct can_frame's identifier, len and 0. */
static long write_frames(struct worker *worker, const struct row *row)
{
	struct canchar_frame *frames = (void *)worker->scratch;
	size_t size = one_in(worker, 3) ? sizeof(struct canchar_short_frame) : sizeof(*frames);
	size_t count = 1 + below(worker, 16), bytes = count * size;
	void *at = place_for(worker, bytes);

	(void)row;
	for (size_t i = 0; i < count; i++) {
		char *frame = worker->scratch + i * size, like[CAN_MTU];

		fill_can_frame(worker, like, sizeof(like));
		memcpy(frame, like, sizeof(like));
		/* The stamp is first in the longer one, then the same. */
		if (size == sizeof(*frames))
			memcpy(frame + 8, like, 8);
	}
	if (one_in(worker, 16))
		bytes -= below(worker, size);
	return made(write(slot(worker, CANCHAR), at, bytes));
}

static long map_rings(struct worker *worker, const struct row *row)
{
	static const size_t sizes[] = { 3 * 4096, 4096, 2 * 4096, 1, 1 << 20 };
	off_t offset = one_in(worker, 4) ? 4096 * below(worker, 300) : 0;

	(void)row;
	return map_file(worker, slot(worker, CANCHAR), sizes[below(worker, 5)],
			one_in(worker, 8) ? PROT_READ : PROT_READ | PROT_WRITE, offset);
}

/* Nonsense in a mapped ring, and now and then what a process is to store. */
static long scribble(struct worker *worker, const struct row *row)
{
	struct map *map = &worker->maps[below(worker, MAPS_MAX)];
	size_t page;
	uint32_t *words;

	(void)row;
	if (!map->at || map->bytes < 4096)
		return -EBADF;
	/* A map of another kind or a read-only one cannot be written: ask the kernel. */
	page = 4096 * below(worker, map->bytes / 4096);
	words = (uint32_t *)(map->at + page);
	if (mprotect(map->at, map->bytes, PROT_READ | PROT_WRITE))
		return -errno;
	if (one_in(worker, 4))
		fill_bytes(worker, words, 4096);
	words[0] = any_value(worker, 4);
	words[16] = any_value(worker, 4);
	if (one_in(worker, 2))
		words[0] = words[16] + below(worker, 70);
	return 0;
}

static const struct row rows[] = {
	{ "open", 6, open_device, NULL },
	{ "close", 2, close_one, (void *)CANCHAR },
	{ "read", 8, read_frames, NULL },
	{ "write", 10, write_frames, NULL },
	{ "poll", 4, poll_one, (void *)CANCHAR },
	{ "epoll", 4, epoll_one, (void *)CANCHAR },
	{ "mmap", 2, map_rings, NULL },
	{ "munmap", 1, unmap_one, NULL },
	{ "scribble", 8, scribble, NULL },
	{ "CANCHAR_GET_INFO", 1, call_request, &request_GET_INFO },
	{ "CANCHAR_GET_TIMING", 1, call_request, &request_GET_TIMING },
	{ "CANCHAR_SET_TIMING", 2, call_request, &request_SET_TIMING },
	{ "CANCHAR_START", 4, call_request, &request_START },
	{ "CANCHAR_STOP", 1, call_request, &request_STOP },
	{ "CANCHAR_GET_OPTIONS", 1, call_request, &request_GET_OPTIONS },
	{ "CANCHAR_SET_OPTIONS", 6, call_request, &request_SET_OPTIONS },
	{ "CANCHAR_SET_FILTERS", 4, call_request, &request_SET_FILTERS },
	{ "CANCHAR_GET_STATISTICS", 1, call_request, &request_GET_STATISTICS },
	{ "CANCHAR_WAIT", 6, call_request, &request_WAIT },
	{ "CANCHAR_KICK", 4, call_request, &request_KICK },
	{ "CANCHAR_WAIT_TX_DONE", 2, call_request, &request_WAIT_TX_DONE },
	{ "CANCHAR_POLL_SET", 4, call_request, &request_POLL_SET },
};

const struct table canchar_table = { "canchar", ROWS(rows) };
