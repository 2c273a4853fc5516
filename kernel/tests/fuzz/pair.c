// SPDX-License-Identifier: GPL-2.0-only
/* canprobe and canbare: their files and every ioctl of uapi/canprobe.h and uapi/canbare.h. */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../uapi/canbare.h"
#include "../../uapi/canprobe.h"
#include "fuzz.h"

/* ------------------------------------------------------------ canprobe -- */

/* A plan of many frames a microsecond apart keeps an emulated processor busy for long. */
static const struct field plan_fields[] = {
	FIELD(struct canprobe_plan, can_id, 0x123, 0, 0x80000123, 0x20000001),
	FIELD(struct canprobe_plan, len, 8, 0, 1, 2),
	FIELD(struct canprobe_plan, numbered, 0, 1, 2),
	FIELD(struct canprobe_plan, delay_ns, 0, 1000, 1000000, 1000000000),
	FIELD(struct canprobe_plan, period_ns, 1000000, 1000, 100000, 3600000000000),
	FIELD(struct canprobe_plan, count, 1, 2, 17, 1000),
	FIELD(struct canprobe_plan, burst, 1, 2, 16, 17, 1000, 0xffffffff),
	FIELD(struct canprobe_plan, bitrate, 1000000, 500000, 0, 20000),
};

static const struct field line_fields[] = { { 0, 4, VALUES(10, 11, 0, 1, 16, 0x7fffffff) } };

#define NONE 0, NULL
#define PROBE(name, bytes, ...) \
	static const struct request probe_##name = { CANPROBE_##name, CANPROBE, bytes, __VA_ARGS__ }

const struct request probe_START = {
	CANPROBE_START, CANPROBE, sizeof(struct canprobe_plan), FIELDS(plan_fields)
};

PROBE(STOP, 0, NONE);
PROBE(GET_STATE, sizeof(struct canprobe_state), NONE);
PROBE(FLOOR, 0, NONE);
PROBE(WATCH, 4, FIELDS(line_fields));

static long open_pair(struct worker *worker, const struct row *row)
{
	enum kind kind = (enum kind)(uintptr_t)row->data;
	const char *path = kind == CANPROBE ? "/dev/canprobe" : "/dev/canbare";

	return keep(worker, kind, open(path, (one_in(worker, 8) ? O_RDONLY : O_RDWR) | O_CLOEXEC));
}

static long read_pair(struct worker *worker, const struct row *row)
{
	static const size_t sizes[] = { 24, 0, 1, 23, 48, 240, 4096, 24 * 1000 };
	size_t bytes = sizes[below(worker, 8)];

	return made(read(slot(worker, (enum kind)(uintptr_t)row->data), place_for(worker, bytes),
			 bytes));
}

static const struct row probe_rows[] = {
	{ "open", 6, open_pair, (void *)CANPROBE },
	{ "close", 4, close_one, (void *)CANPROBE },
	{ "read", 6, read_pair, (void *)CANPROBE },
	{ "poll", 1, poll_one, (void *)CANPROBE },
	{ "CANPROBE_START", 6, call_request, &probe_START },
	{ "CANPROBE_STOP", 1, call_request, &probe_STOP },
	{ "CANPROBE_GET_STATE", 2, call_request, &probe_GET_STATE },
	{ "CANPROBE_FLOOR", 1, call_request, &probe_FLOOR },
	{ "CANPROBE_WATCH", 2, call_request, &probe_WATCH },
};

const struct table canprobe_table = { "canprobe", ROWS(probe_rows) };

/* ------------------------------------------------------------- canbare -- */

/*
 * An image that routes nothing: in real mode it reports CANBARE_ROUTING, waits for stop, reports
 * CANBARE_STOPPED and halts. Never a random one: an image may do all that a kernel may.
 */
static const uint8_t image[] = {
	0xeb, 0x0e, 0, 0, 0, 0, 0, 0,			/*  0: jmp 16 */
	'c', 'a', 'n', 'b', 'a', 'r', 'e', '1',		/*  8 */
	0x8c, 0xc8, 0x8e, 0xd8,				/* 16: mov ax, cs; mov ds, ax */
	0xc7, 0x06, 0x04, 0xf0, 0x02, 0x00,		/* 20: mov word [0xf004], 2 */
	0xf3, 0x90,					/* 26: pause */
	0x83, 0x3e, 0x00, 0xf0, 0x00,			/* 28: cmp word [0xf000], 0 */
	0x74, 0xf7,					/* 33: je 26 */
	0xc7, 0x06, 0x04, 0xf0, 0x03, 0x00,		/* 35: mov word [0xf004], 3 */
	0xfa, 0xf4, 0xeb, 0xfd,				/* 41: cli; hlt; jmp 42 */
};

/* The image, or one that the module has to refuse. */
static void fill_image(struct worker *worker, void *buffer, size_t bytes)
{
	(void)bytes;
	memcpy(buffer, image, sizeof(image));
	if (one_in(worker, 4))
		((uint8_t *)buffer)[8 + below(worker, 8)] ^= 1 + below(worker, 255);
}

static const struct field start_fields[] = {
	POINTER(struct canbare_start, image, fill_image),
	FIELD(struct canbare_start, image_len, sizeof(image), 0, 15, 16, 64, CANBARE_SHARED,
	      CANBARE_SHARED + 1, 0xffffffff),
	FIELD(struct canbare_start, bitrate[0], 1000000, 0, 500000, 0xffffffff),
	FIELD(struct canbare_start, bitrate[1], 1000000, 0, 500000, 0xffffffff),
};

#define BARE(name, bytes, ...) \
	static const struct request bare_##name = { CANBARE_##name, CANBARE, bytes, __VA_ARGS__ }

BARE(START, sizeof(struct canbare_start), FIELDS(start_fields));
BARE(STOP, 0, NONE);
BARE(GET_STATUS, sizeof(struct canbare_status), NONE);

/*
 * Not by call_request(): a whole magic number before half an image, or before what lies at a random
 * address, would run it.
 */
static long start_image(struct worker *worker, const struct row *row)
{
	const struct request *request = row->data;
	struct canbare_start *start = (void *)worker->scratch;
	int fd = slot(worker, CANBARE);

	fill_structure(worker, start, sizeof(*start), request->fields, request->count);
	if (start->image_len > CANBARE_MAGIC_AT + 8 - 1 && start->image_len < sizeof(image))
		start->image_len = sizeof(image);
	if (one_in(worker, 8))
		start = (void *)8;
	return made(ioctl(fd, request->number, start));
}

static const struct row bare_rows[] = {
	{ "open", 4, open_pair, (void *)CANBARE },
	{ "close", 3, close_one, (void *)CANBARE },
	{ "read", 1, read_pair, (void *)CANBARE },
	{ "poll", 1, poll_one, (void *)CANBARE },
	{ "CANBARE_START", 3, start_image, &bare_START },
	{ "CANBARE_STOP", 1, call_request, &bare_STOP },
	{ "CANBARE_GET_STATUS", 2, call_request, &bare_GET_STATUS },
};

const struct table canbare_table = { "canbare", ROWS(bare_rows) };
