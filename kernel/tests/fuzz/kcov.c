// SPDX-License-Identifier: GPL-2.0-only
/*
 * Coverage of the modules' code, on kernels with CONFIG_KCOV and modules built for it: a call that
 * reached new code is made again with one of its values changed. All processes share what was seen.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/kcov.h>

#include "fuzz.h"

#define WORDS		(1 << 14)
#define TEXT_BYTES	(1 << 18)
#define MODULES		4

static const char *const modules[MODULES] = { "canwire", "canchar", "canprobe", "canbare" };
static atomic_uchar (*seen)[TEXT_BYTES];
static atomic_uint *count;
/* Where a module's code is now; 0: not loaded. */
static _Atomic uint64_t texts[MODULES];

void coverage_share(void)
{
	void *at = mmap(NULL, MODULES * TEXT_BYTES + 4096, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || access("/sys/kernel/debug/kcov", R_OK))
		return;
	count = at;
	seen = at + 4096;
}

static void find_texts(void)
{
	for (unsigned int i = 0; i < MODULES; i++) {
		char path[96], text[32] = "";
		int fd;

		snprintf(path, sizeof(path), "/sys/module/%s/sections/.text", modules[i]);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			(void)!read(fd, text, sizeof(text) - 1);
			close(fd);
		}
		texts[i] = strtoull(text, NULL, 16);
	}
}

void coverage_open(struct worker *worker)
{
	int fd = seen ? open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC) : -1;

	worker->coverage = NULL;
	if (fd < 0)
		return;
	find_texts();
	if (!ioctl(fd, KCOV_INIT_TRACE, WORDS)) {
		void *at = mmap(NULL, WORDS * 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (at != MAP_FAILED && !ioctl(fd, KCOV_ENABLE, KCOV_TRACE_PC))
			worker->coverage = at;
	}
	/* Not closed: that would end it. It goes with the process. */
}

void coverage_begin(struct worker *worker)
{
	if (worker->coverage)
		__atomic_store_n(worker->coverage, 0, __ATOMIC_RELAXED);
}

bool coverage_is_new(struct worker *worker)
{
	uint64_t made = worker->coverage ? __atomic_load_n(worker->coverage, __ATOMIC_RELAXED) : 0;
	bool is_new = false, moved = false;

	for (uint64_t i = 1; i <= made && i < WORDS; i++) {
		unsigned int module = 0;
		uint64_t offset = 0;

		for (; module < MODULES; module++) {
			offset = worker->coverage[i] - texts[module];
			if (texts[module] && offset < TEXT_BYTES)
				break;
		}
		if (module == MODULES)
			moved = true;
		else if (!atomic_exchange(&seen[module][offset], 1)) {
			atomic_fetch_add(count, 1);
			is_new = true;
		}
	}
	/* A module that was loaded again lies elsewhere. */
	if (moved)
		find_texts();
	return is_new;
}

unsigned int coverage_count(void)
{
	return count ? *count : 0;
}
