// SPDX-License-Identifier: GPL-2.0-only
/* Values: drawn from the seed of a call; boundaries more often than chance would have it. */

#include <string.h>
#include <unistd.h>

#include <linux/can.h>

#include "fuzz.h"

/* The highest bit rate that a device takes. */
#define RATE_MAX	8000000

/* splitmix64 (Steele, Lea, Flood 2014): every seed is a good one. */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

uint64_t mix(uint64_t a, uint64_t b)
{
	uint64_t state = a * 0xff51afd7ed558ccd + b;

	return next(&state);
}

void draws_begin(struct draws *draws, uint64_t seed)
{
	*draws = (struct draws){ .seed = seed, .state = seed };
}

uint64_t draw(struct worker *worker)
{
	struct draws *draws = &worker->draws;
	uint64_t drawn = next(&draws->state);

	return ++draws->drawn == draws->altered_at ? draws->altered_to : drawn;
}

uint64_t below(struct worker *worker, uint64_t below)
{
	return draw(worker) % below;
}

bool one_in(struct worker *worker, uint64_t chances)
{
	return !worker->exact && !below(worker, chances);
}

uint64_t any_value(struct worker *worker, unsigned int bytes)
{
	static const uint64_t edges[] = {
		0, 1, 2, 7, 8, 9, 63, 64, 65, 255, 256, 4095, 4096, 4097, 65535, 0x7fffffff,
		0x80000000, 0xffffffff, 0x7fffffffffffffff, 0x8000000000000000, UINT64_MAX,
		UINT64_MAX - 1,
	};
	uint64_t value = draw(worker);

	if (one_in(worker, 2))
		value = edges[value % (sizeof(edges) / sizeof(*edges))];
	else
		value >>= below(worker, 64);
	return bytes >= 8 ? value : value & ((1ULL << 8 * bytes) - 1);
}

/* Most calls keep to values with which something happens. */
static bool is_careful(const struct worker *worker)
{
	return worker->draws.seed >> 62;
}

/* What is refused stays so. */
uint64_t slowed_rate(uint64_t bitrate)
{
	return bitrate > RATE_MAX ? bitrate : bitrate / slower;
}

static uint64_t slowed(const struct field *field, uint64_t value)
{
	switch (field->speed) {
	case BIT_RATE:
		return slowed_rate(value);
	case PRESCALER:
		return value * slower;
	case NO_SPEED:
		break;
	}
	return value;
}

uint64_t valid_value(const struct field *field)
{
	return slowed(field, field->values[0]);
}

static uint64_t drawn_value(struct worker *worker, const struct field *field)
{
	uint64_t how = is_careful(worker) ? 3 + below(worker, 8) : below(worker, 16);

	if (!field->count || how == 0)
		return any_value(worker, field->bytes);
	if (how == 1)
		return field->values[below(worker, field->count)] + 1;
	if (how == 2)
		return field->values[below(worker, field->count)] - 1;
	return how < 8 ? field->values[0] : field->values[below(worker, field->count)];
}

uint64_t value_of(struct worker *worker, const struct field *field)
{
	return slowed(field, drawn_value(worker, field));
}

void fill_bytes(struct worker *worker, void *buffer, size_t bytes)
{
	uint64_t word = draw(worker);

	for (size_t i = 0; i < bytes; i++) {
		if (i % 8 == 0)
			next(&word);
		((uint8_t *)buffer)[i] = word >> 8 * (i % 8);
	}
}

static void store(void *to, const struct field *field, uint64_t value)
{
	memcpy((char *)to + field->at, &value, field->bytes > 8 ? 8 : field->bytes);
}

/* The second half of the scratch memory is for what pointers point to. */
static uint64_t pointed(struct worker *worker, const struct field *field)
{
	char *at = worker->scratch + SCRATCH_BYTES / 2;

	field->fill(worker, at, SCRATCH_BYTES / 2);
	return (uint64_t)(uintptr_t)at;
}

/* Of reserved fields, too; of a bit rate only if it need not be slow. */
static void flip_a_bit(struct worker *worker, uint8_t *to, size_t bytes, const struct field *fields,
		       unsigned int count)
{
	size_t at = below(worker, bytes ? bytes : 1);

	for (unsigned int i = 0; i < count; i++)
		if (slower > 1 && fields[i].speed != NO_SPEED && at - fields[i].at < fields[i].bytes)
			return;
	to[at] ^= 1 << below(worker, 8);
}

void fill_structure(struct worker *worker, void *to, size_t bytes, const struct field *fields,
		    unsigned int count)
{
	memset(to, 0, bytes);
	for (unsigned int i = 0; i < count; i++) {
		const struct field *field = &fields[i];

		if (!field->fill)
			store(to, field, value_of(worker, field));
		else if (!one_in(worker, 16))
			store(to, field, pointed(worker, field));
		else
			store(to, field, any_value(worker, 8));
	}
	if (one_in(worker, 24))
		flip_a_bit(worker, to, bytes, fields, count);
}

void fill_valid(struct worker *worker, void *to, size_t bytes, const struct field *fields,
		unsigned int count)
{
	memset(to, 0, bytes);
	for (unsigned int i = 0; i < count; i++)
		store(to, &fields[i], fields[i].fill ? pointed(worker, &fields[i]) :
						       valid_value(&fields[i]));
}

void *place_for(struct worker *worker, size_t bytes)
{
	switch (below(worker, 24)) {
	case 0:
		return (void *)(uintptr_t)any_value(worker, 8);
	case 1:		/* ends in a page that cannot be accessed */
		return worker->scratch + SCRATCH_BYTES - below(worker, bytes + 1);
	case 2:		/* cannot be written */
		return (void *)(uintptr_t)place_for;
	default:
		return worker->scratch;
	}
}

/* A frame that can be sent, or in a careless call one with fields near what can be. */
void fill_can_frame(struct worker *worker, void *buffer, size_t bytes)
{
	static const uint8_t fd_lens[] = { 0, 1, 8, 12, 16, 20, 24, 32, 48, 64 };
	static const uint64_t ids[] = { 0x123, 0, 0x7ff, 0x800, CAN_EFF_FLAG | 0x1fffffff,
					CAN_RTR_FLAG | 0x42, CAN_ERR_FLAG | 4, CAN_EFF_FLAG };
	static const uint64_t lens[] = { 8, 0, 1, 7, 9, 12, 15, 16, 48, 63, 64, 65, 255 };
	static const uint64_t flags[] = { 0, CANFD_FDF, CANFD_FDF | CANFD_BRS, CANFD_BRS,
					  CANFD_FDF | CANFD_BRS | CANFD_ESI, 0x80, 0xff };
	const struct field fields[] = {
		{ 0, 4, 8, NO_SPEED, NULL, ids },
		{ 4, 1, 13, NO_SPEED, NULL, lens },
		{ 5, 1, 7, NO_SPEED, NULL, flags },
	};
	bool fd = bytes >= CANFD_MTU && one_in(worker, 2);
	uint32_t id = one_in(worker, 2) ? below(worker, 0x800) :
					  CAN_EFF_FLAG | below(worker, 0x20000000);
	uint8_t len = fd ? fd_lens[below(worker, sizeof(fd_lens))] : below(worker, 9);

	fill_bytes(worker, buffer, bytes);
	if (bytes >= CAN_MTU && is_careful(worker)) {
		memcpy(buffer, &id, sizeof(id));
		memcpy((char *)buffer + 4, (uint8_t[4]){ len, fd ? CANFD_FDF | below(worker, 4) : 0 },
		       4);
		return;
	}
	for (unsigned int i = 0; i < 3; i++)
		if (bytes >= (size_t)fields[i].at + fields[i].bytes)
			store(buffer, &fields[i], value_of(worker, &fields[i]));
	if (bytes >= 8 && !one_in(worker, 8))
		memset((char *)buffer + 6, 0, 2);
}
