// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz: random and boundary values through every border of the kernel modules, from several threads
 * and processes, while cards are unbound, wires vanish, modules go and files close.
 *
 *	fuzz [--seed N] [--seconds S] [--round S] [--patience S] [--modules FOLDER] [--only TABLE]
 *	     [--failslab] [--slower N]
 *	fuzz --fail-nth [--seed N] [--modules FOLDER]
 *	fuzz --replay PROCESS/CALL,CALL... [--patience S] [--modules FOLDER] [--only TABLE]
 *	     [--slower N]
 *
 * Bit rates are divided by N, for a machine that buses at their usual rates keep busy by themselves.
 *
 * As root in a machine that is for nothing else: `canter lab`. In rounds: after each all files are
 * closed, and all modules have to unload. Prints the seed first, the calls made at the end; exit code 1
 * when a module stays or a call hangs, and what to type to repeat it, or single calls (replay.c). The kernel's log is for the
 * caller to judge (guest.py); reports are printed here with the calls that were being made.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define REPORTS_MAX	10

const struct table *const tables[] = {
	&canchar_table, &canprobe_table, &canbare_table, &canwire_table, &tap_table, &link_table,
	&socket_table, &compat_table, &disturb_table,
};
const unsigned int tables_count = sizeof(tables) / sizeof(*tables);

_Static_assert(sizeof(tables) / sizeof(*tables) == TABLES, "counts for each table");

struct shared *shared;

static uint64_t seed = 2014, seconds = 60, round_seconds = 10, patience = 60, began;
const char *only;
bool failslab, kernel_is_mended;
uint32_t slower = 1;

uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
}

static uint64_t now_ms(void)
{
	return now_us() / 1000;
}

void found_wrong(const char *format, ...)
{
	va_list words;

	if (atomic_exchange(&shared->wrong, true))
		return;
	va_start(words, format);
	vsnprintf(shared->what, sizeof(shared->what), format, words);
	va_end(words);
}

/* ------------------------------------------------------------- watching -- */

static void print_state(void)
{
	for (unsigned int i = 0; i < PROCESSES; i++)
		for (unsigned int j = 0; j < (i == CALLERS ? 1 : THREADS); j++) {
			struct worker *worker = &shared->workers[i][j];
			const struct row *row = worker->now;

			printf("  process %u thread %u (%d): call %llu, %s\n", i, j, worker->thread,
			       (unsigned long long)worker->calls, row ? row->name : "between calls");
			replay_print_words(i, worker);
		}
	printf("  to repeat: fuzz --seed %llu --seconds %llu --round %llu --slower %u%s%s\n",
	       (unsigned long long)seed, (unsigned long long)seconds,
	       (unsigned long long)round_seconds, slower, only ? " --only " : "", only ? only : "");
	fflush(stdout);
}

static void print_file(pid_t process, pid_t thread, const char *name)
{
	char path[64], text[4096];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", process, thread, name);
	fd = open(path, O_RDONLY);
	len = fd < 0 ? 0 : read(fd, text, sizeof(text));
	if (len > 0)
		printf("%s:\n%.*s\n", path, (int)len, text);
	if (fd >= 0)
		close(fd);
}

/* Reports in the kernel's log, with what was being done when they came. */
static void watch_log(int log)
{
	static const char *const heads[] = { "BUG: ", "WARNING: ", "UBSAN: ", "Oops", "ODEBUG",
					     "general protection", "refcount_t", "INFO: task" };
	static unsigned int printed;
	char line[8192];
	ssize_t len;

	while ((len = read(log, line, sizeof(line) - 1)) > 0 || (len < 0 && errno == EPIPE)) {
		char *text;

		if (len < 0)
			continue;
		line[len] = '\0';
		text = strchr(line, ';');
		for (unsigned int i = 0; text && i < sizeof(heads) / sizeof(*heads); i++)
			if (strstr(text, heads[i]) && printed++ < REPORTS_MAX) {
				printf("fuzz: kernel: %.*s\n", (int)strcspn(text + 1, "\n"),
				       text + 1);
				print_state();
				break;
			}
	}
}

/* Whether a thread has made no call for so long. */
static bool hangs(void)
{
	static uint64_t last[PROCESSES][THREADS], since[PROCESSES][THREADS];
	uint64_t now = now_ms();
	bool found = false;

	for (unsigned int i = 0; i < PROCESSES; i++)
		for (unsigned int j = 0; j < (i == CALLERS ? 1 : THREADS); j++) {
			struct worker *worker = &shared->workers[i][j];

			if (worker->quits || worker->calls != last[i][j] || !since[i][j]) {
				last[i][j] = worker->calls;
				since[i][j] = now;
			} else if (now - since[i][j] > 1000 * patience) {
				const struct row *row = worker->now;

				printf("fuzz: process %u thread %u hangs for %llu s in %s\n", i, j,
				       (unsigned long long)(now - since[i][j]) / 1000,
				       row ? row->name : "nothing");
				print_file(worker->process, worker->thread, "stack");
				print_file(worker->process, worker->thread, "syscall");
				found = true;
			}
		}
	return found;
}

static int give_up(void)
{
	print_state();
	write_text("/proc/sysrq-trigger", "w");
	return 1;
}

/* --------------------------------------------------------------- rounds -- */

static const char *const modules[][2] = {
	{ "canwire", "nodes=wcan0:A,wcan1:A,wcan2:B" },
	{ "canchar", "virtual=2" },
	{ "canprobe", "" },
	{ "canbare", "" },
};

static int load_all(void)
{
	for (unsigned int i = 0; i < 4; i++) {
		long err = load_module(modules[i][0], modules[i][1]);

		if (err && err != -EEXIST) {
			printf("fuzz: loading %s: %s\n", modules[i][0], strerror(-err));
			return 1;
		}
	}
	bind_cards();
	return 0;
}

/* No file is open: each has to go. */
static int unload_all(void)
{
	for (unsigned int i = 0; i < 4; i++) {
		uint64_t end = now_ms() + 1000 * patience;
		long err = unload_module(modules[i][0]);

		/* Another's last file closes in a work of the kernel. */
		while (err == -EAGAIN && now_ms() < end) {
			poll(NULL, 0, 10);
			err = unload_module(modules[i][0]);
		}
		if (err && err != -ENOENT) {
			printf("fuzz: unloading %s: %s\n", modules[i][0], strerror(-err));
			return 1;
		}
	}
	return 0;
}

static uint64_t calls_made(void)
{
	uint64_t calls = 0;

	for (unsigned int i = 0; i < CALLERS; i++)
		for (unsigned int j = 0; j < THREADS; j++)
			calls += shared->workers[i][j].calls;
	return calls;
}

/* Until then, and on a slow machine until it has made a call; when calls are made again, until their end. */
static int run_round(uint64_t number, uint64_t end, int log)
{
	uint64_t before = calls_made();
	unsigned int running = 0;

	shared->stop = false;
	fflush(stdout);
	for (unsigned int i = 0; i < PROCESSES; i++) {
		for (unsigned int j = 0; j < THREADS; j++) {
			shared->workers[i][j].seed = mix(mix(seed, number), 16 * i + j);
			shared->workers[i][j].quits = true;
		}
		if (replay_is_on() && i != replay_process())
			continue;
		running++;
		if (!fork())
			run_process(i);
	}
	while (running) {
		int status;
		pid_t ended = waitpid(-1, &status, WNOHANG);

		if (ended > 0) {
			running--;
			if (status) {
				printf("fuzz: process %d ended with %x\n", ended, status);
				return give_up();
			}
			continue;
		}
		if (now_ms() >= end && calls_made() != before)
			shared->stop = true;
		if (shared->wrong) {
			printf("fuzz: after %llu s: %s\n", (unsigned long long)(now_ms() - began) / 1000,
			       shared->what);
			return give_up();
		}
		if (hangs())
			return give_up();
		watch_log(log);
		poll(NULL, 0, 50);
	}
	return 0;
}

static void print_row(const struct row *row, const struct count *count)
{
	if (!count->calls)
		return;
	printf("\"%s\" = { made = %llu, us_each = %llu", row->name, (unsigned long long)count->calls,
	       (unsigned long long)(count->took_us / count->calls));
	for (int i = 1; i < ERRORS; i++)
		if (count->errors[i])
			printf(", %s = %u", strerrorname_np(i) ?: "other", count->errors[i]);
	printf(" }\n");
}

static void print_counts(uint64_t rounds, uint64_t took_ms)
{
	uint64_t calls = 0;

	for (unsigned int i = 0; i < tables_count; i++)
		for (unsigned int j = 0; j < tables[i]->count; j++)
			calls += shared->counts[i][j].calls;
	printf("seed = %llu\nseconds = %llu\nrounds = %llu\nthreads = %u\ncalls_made = %llu\n"
	       "coverage = %u\ncompat = %s\n",
	       (unsigned long long)seed, (unsigned long long)took_ms / 1000,
	       (unsigned long long)rounds, CALLERS * THREADS + 1, (unsigned long long)calls,
	       coverage_count(), shared->has_compat ? "true" : "false");
	for (unsigned int i = 0; i < tables_count; i++) {
		printf("\n[calls.%s]\n", tables[i]->name);
		for (unsigned int j = 0; j < tables[i]->count; j++)
			print_row(&tables[i]->rows[j], &shared->counts[i][j]);
	}
}

static int run_rounds(void)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	uint64_t end, rounds = 0;

	began = now_ms();
	end = began + 1000 * seconds;
	lseek(log, 0, SEEK_END);
	while (now_ms() < end) {
		uint64_t until;

		if (unload_all() || load_all())
			return 1;
		if (shared->has_compat && !rounds && !compat_is_sound())
			return 1;
		/* Loading takes seconds on a debug kernel. */
		until = now_ms() + 1000 * round_seconds;
		if (run_round(rounds, until < end ? until : end, log))
			return 1;
		rounds++;
	}
	if (unload_all())
		return give_up();
	watch_log(log);
	print_counts(rounds, now_ms() - began);
	return 0;
}

static int replay(void)
{
	int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	began = now_ms();
	lseek(log, 0, SEEK_END);
	return unload_all() || load_all() || run_round(0, UINT64_MAX, log) || unload_all();
}

static bool is_mended(void)
{
	struct utsname kernel;

	return !uname(&kernel) && strstr(kernel.release, "-mended");
}

static int usage(void)
{
	fprintf(stderr, "usage: fuzz [--seed N] [--seconds S] [--round S] [--patience S]\n"
			"            [--modules FOLDER] [--only TABLES] [--failslab] [--slower N]\n"
			"       fuzz --fail-nth [--seed N] [--modules FOLDER]\n"
			"       fuzz --replay PROCESS/CALL,CALL... [--patience S] [--modules FOLDER] [--only TABLES]\n"
			"            [--slower N]\n");
	return 2;
}

int main(int count, char **words)
{
	bool nth = false;

	for (int i = 1; i < count; i++) {
		const char *value = i + 1 < count ? words[i + 1] : NULL;

		if (!strcmp(words[i], "--fail-nth")) {
			nth = true;
			continue;
		}
		if (!strcmp(words[i], "--failslab")) {
			failslab = true;
			continue;
		}
		if (!value)
			return usage();
		if (!strcmp(words[i], "--seed"))
			seed = strtoull(value, NULL, 0);
		else if (!strcmp(words[i], "--seconds"))
			seconds = strtoull(value, NULL, 0);
		else if (!strcmp(words[i], "--round"))
			round_seconds = strtoull(value, NULL, 0);
		else if (!strcmp(words[i], "--patience"))
			patience = strtoull(value, NULL, 0);
		else if (!strcmp(words[i], "--slower"))
			slower = strtoul(value, NULL, 0) ?: 1;
		else if (!strcmp(words[i], "--modules"))
			modules_folder = value;
		else if (!strcmp(words[i], "--only"))
			only = value;
		else if (!strcmp(words[i], "--replay") && replay_read(value))
			;
		else
			return usage();
		i++;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED) {
		perror("fuzz");
		return 1;
	}
	printf("# fuzz --seed %llu\n", (unsigned long long)seed);
	shared->has_compat = compat_is_there();
	kernel_is_mended = is_mended();
	if (replay_is_on())
		return replay();
	coverage_share();
	return nth ? unload_all() || load_all() || fail_each(seed) || unload_all() : run_rounds();
}
