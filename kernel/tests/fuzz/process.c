// SPDX-License-Identifier: GPL-2.0-only
/* A process of the fuzzer: threads that make one call after the other, and share its files. */

#include <pthread.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fuzz.h"

/* A thread is woken out of a call that waits. */
#define TICK_MS		25
#define NOBODY		65534

/* ------------------------------------------------------------ a thread -- */

static bool is_for(const struct table *table, bool disturbs)
{
	if (only && !disturbs)
		return strstr(only, table->name);
	return (table == &disturb_table) == disturbs;
}

/* A row of those tables, by its weight, with its table's index. */
static const struct row *pick(struct worker *worker, bool disturbs, unsigned int *table)
{
	unsigned int total = 0, left, i, j;

	for (i = 0; i < tables_count; i++)
		for (j = 0; is_for(tables[i], disturbs) && j < tables[i]->count; j++)
			total += tables[i]->rows[j].weight;
	left = below(worker, total);
	for (i = 0; i < tables_count; i++)
		for (j = 0; is_for(tables[i], disturbs) && j < tables[i]->count; j++) {
			*table = i;
			if (left < tables[i]->rows[j].weight)
				return &tables[i]->rows[j];
			left -= tables[i]->rows[j].weight;
		}
	abort();
}

/* New values, or a call that reached new code with one of its values changed. False: that was the last call. */
static bool choose(struct worker *worker, uint64_t number)
{
	uint64_t chosen = mix(worker->seed, number), mutation = mix(chosen, 1);
	unsigned int known = shared->corpus_count;

	if (replay_is_on())
		return replay_next(worker, number);
	draws_begin(&worker->draws, chosen);
	if (!worker->coverage || !known || mutation % 4)
		return true;
	mutation = mix(mutation, 2);
	worker->draws = shared->corpus[mutation % (known < CORPUS ? known : CORPUS)];
	worker->draws.state = worker->draws.seed;
	worker->draws.altered_at = 1 + mutation / CORPUS % (worker->draws.drawn + 1);
	worker->draws.altered_to = mix(mutation, 3);
	worker->draws.drawn = 0;
	return true;
}

/*
 * A few calls are made without a capability. By the system call: setresuid(3) of the C library is for
 * all threads.
 */
static void set_user(uid_t user)
{
	syscall(SYS_setresuid, -1, user, -1);
}

static void make_calls(struct worker *worker, bool disturbs)
{
	struct count *count;
	const struct row *row;
	unsigned int table;
	bool unprivileged;
	uint64_t began;
	long result;

	for (uint64_t number = 0; !shared->stop && choose(worker, number); number++) {
		worker->last[number % LAST] = worker->draws;
		worker->number = number;
		row = pick(worker, disturbs, &table);
		count = &shared->counts[table][row - tables[table]->rows];
		worker->now = row;
		if (replay_is_on())
			replay_print(worker, tables[table], row);
		unprivileged = !(worker->draws.seed >> 50 & 63) && !disturbs;
		if (unprivileged)
			set_user(NOBODY);
		began = now_us();
		coverage_begin(worker);
		result = row->call(worker, row);
		if (unprivileged)
			set_user(0);
		if (replay_is_on())
			replay_print_result(worker, result);
		if (result < 0 && result > -ERRORS)
			count->errors[-result]++;
		count->calls++;
		count->took_us += now_us() - began;
		if (coverage_is_new(worker))
			shared->corpus[shared->corpus_count++ % CORPUS] = worker->draws;
		worker->now = NULL;
		worker->calls++;
	}
}

static bool make_scratch(struct worker *worker)
{
	char *at = mmap(NULL, SCRATCH_BYTES + 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	worker->scratch = at;
	return at != MAP_FAILED && !mprotect(at + SCRATCH_BYTES, 4096, PROT_NONE);
}

/*
 * Not of who binds cards: ACPI frees an object twice when an allocation fails (nth.c). And not earlier:
 * the C library needs memory for a thread.
 */
static void ask_for_failures(const struct worker *worker)
{
	if (failslab && worker < shared->workers[CALLERS] && write_text("/proc/thread-self/make-it-fail", "1"))
		perror("fuzz: /proc/thread-self/make-it-fail");
}

static void *run_thread(void *argument)
{
	struct worker *worker = argument;

	worker->thread = syscall(SYS_gettid);
	memset(worker->maps, 0, sizeof(worker->maps));
	if (make_scratch(worker)) {
		coverage_open(worker);
		ask_for_failures(worker);
		make_calls(worker, worker >= shared->workers[CALLERS]);
	}
	worker->quits = true;
	return NULL;
}

/* ----------------------------------------------------------- a process -- */

static void on_tick(int signal)
{
	(void)signal;
}

static void set_up_process(unsigned int process)
{
	struct sigaction action = { .sa_handler = on_tick };
	struct rlimit no_core = {};
	struct worker *worker = &shared->workers[process][0];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &action, NULL);
	setrlimit(RLIMIT_CORE, &no_core);
	if (process == 1 && unshare(CLONE_NEWNET))
		perror("fuzz: unshare");
	if (process == 0 && make_scratch(worker)) {
		draws_begin(&worker->draws, worker->seed);
		link_up(worker, "wcan0", slowed_rate(1000000), false);
		link_up(worker, "wcan1", slowed_rate(1000000), false);
		link_up(worker, "wcan2", slowed_rate(1000000), false);
	}
}

void run_process(unsigned int process)
{
	unsigned int threads = process == CALLERS || replay_is_on() ? 1 : THREADS, i, running = threads;
	struct worker *workers = shared->workers[process];
	pthread_t started[THREADS];

	set_up_process(process);
	for (i = 0; i < threads; i++) {
		workers[i].process = getpid();
		workers[i].quits = false;
		pthread_create(&started[i], NULL, run_thread, &workers[i]);
	}
	while (running) {
		running = 0;
		for (i = 0; i < threads; i++)
			if (!workers[i].quits) {
				running++;
				pthread_kill(started[i], SIGUSR1);
			}
		poll(NULL, 0, TICK_MS);
	}
	for (i = 0; i < threads; i++)
		pthread_join(started[i], NULL);
	close_all();
	_exit(0);
}

