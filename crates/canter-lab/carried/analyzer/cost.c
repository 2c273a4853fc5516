/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Caches: sets of lines, of which the one that was used least recently goes. Each processor has a
 * first cache for code and one for data; all share the second. Code has its virtual addresses,
 * data its physical ones, because a ring's memory is mapped twice. Nothing is fetched ahead, and
 * a write takes no line from another processor.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"

#define PROCESSORS 8

struct cache {
	uint64_t *lines;	/* of each set, the last used one first; 0: none yet */
	uint32_t sets, ways, line_bytes;
};

bool cost_counted;

static struct cache code[PROCESSORS], data[PROCESSORS], second;

static bool prepare(struct cache *cache, uint32_t bytes, uint32_t ways, uint32_t line_bytes)
{
	uint32_t sets = ways && line_bytes ? bytes / ways / line_bytes : 0;

	if (!sets || sets & (sets - 1) || line_bytes & (line_bytes - 1))
		return false;
	*cache = (struct cache){ calloc((size_t)sets * ways, sizeof(uint64_t)), sets, ways, line_bytes };
	cost_counted = true;
	return cache->lines;
}

bool cost_configure(const char *argument)
{
	uint32_t bytes, ways, line_bytes;
	char which[4];
	struct cache *caches;

	if (sscanf(argument, "%3[^=]=%u:%u:%u", which, &bytes, &ways, &line_bytes) != 4)
		return false;
	if (!strcmp(which, "l2"))
		return prepare(&second, bytes, ways, line_bytes);
	caches = !strcmp(which, "l1i") ? code : !strcmp(which, "l1d") ? data : NULL;
	for (size_t i = 0; caches && i < PROCESSORS; i++)
		if (!prepare(&caches[i], bytes, ways, line_bytes))
			return false;
	return caches;
}

/* Whether the cache has the line of an address; from now on it does. */
static bool has(struct cache *cache, uint64_t address)
{
	uint64_t line = address / cache->line_bytes;
	uint64_t *set = &cache->lines[(line & (cache->sets - 1)) * cache->ways];
	uint32_t way = 0;

	while (way < cache->ways && set[way] != line + 1)
		way++;
	if (way == 0)
		return true;
	memmove(set + 1, set, (way < cache->ways ? way : way - 1) * sizeof(*set));
	set[0] = line + 1;
	return way < cache->ways;
}

static void use(struct cache *first, uint64_t address, uint64_t *misses, struct costs *costs)
{
	if (has(first, address))
		return;
	(*misses)++;
	if (!second.lines || !has(&second, address))
		costs->memory++;
}

void cost_execute(unsigned int cpu, uint64_t address, uint32_t bytes, struct costs *costs)
{
	struct cache *cache = &code[cpu % PROCESSORS];
	uint64_t line_bytes = cache->line_bytes;

	for (uint64_t at = address & ~(line_bytes - 1); at < address + bytes; at += line_bytes)
		use(cache, at, &costs->code, costs);
}

void cost_access(unsigned int cpu, uint64_t address, struct costs *costs)
{
	use(&data[cpu % PROCESSORS], address, &costs->data, costs);
}

void cost_add(struct costs *to, const struct costs *more)
{
	to->code += more->code;
	to->data += more->data;
	to->memory += more->memory;
	to->registers += more->registers;
	to->entries += more->entries;
}
