// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that are made again, as a report prints them: PROCESS/CALL,CALL...
 *
 *	SEED:AT:TO	one call, as exactly as its values decide it: draw number AT (0: none) is TO
 *	SEED+FROM-TO	calls FROM to TO of the thread with that seed since its round began, without
 *			those that KCOV chose: which these were depends on what other threads reached
 *
 * Numbers in hexadecimal, FROM and TO in decimal. One thread makes them, alone, in a machine as
 * each round finds it.
 */

#include <stdio.h>
#include <stdlib.h>

#include "fuzz.h"

#define AGAIN_MAX	(1 << 16)

struct again {
	unsigned int process, count;
	struct draws calls[AGAIN_MAX];
};

static struct again again;

static bool add(struct draws draws)
{
	if (again.count == AGAIN_MAX)
		return false;
	again.calls[again.count++] = draws;
	return true;
}

static bool add_stretch(uint64_t seed, const char *word, char **end)
{
	uint64_t from = strtoull(word, end, 10), to;

	if (**end != '-')
		return false;
	to = strtoull(*end + 1, end, 10);
	for (; from <= to; from++) {
		struct draws draws;

		draws_begin(&draws, mix(seed, from));
		if (!add(draws))
			return false;
	}
	return true;
}

static bool add_call(uint64_t seed, const char *word, char **end)
{
	struct draws draws;

	draws_begin(&draws, seed);
	draws.altered_at = strtoul(word, end, 16);
	if (**end != ':')
		return false;
	draws.altered_to = strtoull(*end + 1, end, 16);
	return add(draws);
}

bool replay_read(const char *word)
{
	char *end;

	again.process = strtoul(word, &end, 10);
	if (again.process >= PROCESSES || *end != '/')
		return false;
	do {
		uint64_t seed = strtoull(end + 1, &end, 16);
		bool added = *end == '+' ? add_stretch(seed, end + 1, &end) :
			     *end == ':' ? add_call(seed, end + 1, &end) : false;

		if (!added)
			return false;
	} while (*end == ',');
	return !*end;
}

bool replay_is_on(void)
{
	return again.count;
}

unsigned int replay_process(void)
{
	return again.process;
}

bool replay_next(struct worker *worker, uint64_t number)
{
	if (number >= again.count)
		return false;
	worker->draws = again.calls[number];
	return true;
}

/* Before the call, because it may be the last one; what it returned comes with the next line. */
void replay_print(const struct worker *worker, const struct table *table, const struct row *row)
{
	printf("%llx:%x:%llx %s %s", (unsigned long long)worker->draws.seed, worker->draws.altered_at,
	       (unsigned long long)worker->draws.altered_to, table->name, row->name);
	fflush(stdout);
}

void replay_print_result(const struct worker *worker, long result)
{
	printf(" # %u draws, returned %ld\n", worker->draws.drawn, result);
	fflush(stdout);
}

/* In the form that replay_read() takes: what the thread has made in this round, and the last calls one by one. */
void replay_print_words(unsigned int process, const struct worker *worker)
{
	uint64_t number = worker->number, from = number < LAST ? 0 : number - LAST + 1;

	printf("    replay=%u/%llx+0-%llu, or the last:\n    replay=%u/", process,
	       (unsigned long long)worker->seed, (unsigned long long)number, process);
	for (uint64_t i = from; i <= number; i++) {
		const struct draws *draws = &worker->last[i % LAST];

		printf("%s%llx:%x:%llx", i == from ? "" : ",", (unsigned long long)draws->seed,
		       draws->altered_at, (unsigned long long)draws->altered_to);
	}
	printf("\n");
}
