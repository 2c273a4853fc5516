// SPDX-License-Identifier: GPL-2.0-only
/*
 * System calls of a 32-bit process: "int $0x80" has them from a 64-bit one, too, where the kernel has
 * CONFIG_IA32_EMULATION. Numbers are those of i386; pointers have 32 bits, for which the scratch
 * memory lies below 4 GiB.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/can/raw.h>

#include "../../uapi/canbare.h"
#include "../../uapi/canchar.h"
#include "../../uapi/canprobe.h"
#include "fuzz.h"

#define I386_READ	3
#define I386_WRITE	4
#define I386_GETPID	20
#define I386_IOCTL	54
#define I386_SETSOCKOPT	366

/* The result, or -errno. */
static long call32(long number, long a, long b, long c, long d, long e)
{
	long result;

	asm volatile("int $0x80"
		     : "=a"(result)
		     : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
		     : "memory", "r8", "r9", "r10", "r11");
	return (int)result;
}

static void end_of_child(int signal)
{
	_exit(signal);
}

/* Without it the kernel sends SIGSEGV, and logs one that nobody handles. */
bool compat_is_there(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		signal(SIGSEGV, end_of_child);
		_exit(call32(I386_GETPID, 0, 0, 0, 0, 0) != getpid());
	}
	return child > 0 && waitpid(child, &status, 0) == child && !status;
}

static long ioctl32(int fd, unsigned long number, void *at)
{
	return shared->has_compat ? call32(I386_IOCTL, fd, number, (long)at, 0, 0) : -ENOSYS;
}

/* ---------------------------------------------------------- the same answers -- */

static bool answers_alike(const char *path, unsigned long number, char *native, char *compat, size_t bytes)
{
	int fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	long result;

	memset(native, 0x55, bytes);
	memset(compat, 0x55, bytes);
	result = fd < 0 ? -errno : made(ioctl(fd, number, native));
	if (result >= 0 && (ioctl32(fd, number, compat) != result || memcmp(native, compat, bytes)))
		result = -EPROTO;
	if (fd >= 0)
		close(fd);
	if (result < 0)
		printf("fuzz: %s: an ioctl of a 32-bit process: %s\n", path, strerror(-result));
	return result >= 0;
}

/* An ioctl of each device answers a 32-bit process as a 64-bit one. */
bool compat_is_sound(void)
{
	const size_t bytes = 512;
	char *at = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1,
			0);
	bool sound = at != MAP_FAILED &&
		     answers_alike("/dev/canchar0", CANCHAR_GET_INFO, at, at + bytes, bytes) &&
		     answers_alike("/dev/canprobe", CANPROBE_GET_STATE, at, at + bytes, bytes) &&
		     answers_alike("/dev/canbare", CANBARE_GET_STATUS, at, at + bytes, bytes);

	if (at != MAP_FAILED)
		munmap(at, 2 * bytes);
	return sound;
}

/* -------------------------------------------------------------------- calls -- */

/* A request of canchar or canprobe. An image for canbare needs care: pair.c. */
static long any_ioctl(struct worker *worker, const struct row *row)
{
	const struct table *table = one_in(worker, 3) ? &canprobe_table : &canchar_table;
	const struct row *chosen;

	(void)row;
	do
		chosen = &table->rows[below(worker, table->count)];
	while (chosen->call != call_request);
	return request_by(worker, chosen->data, ioctl32);
}

static long any_read(struct worker *worker, const struct row *row)
{
	size_t bytes = below(worker, 512);
	int fd = slot(worker, (enum kind)(uintptr_t)row->data);
	void *at = place_for(worker, bytes);

	return shared->has_compat ? call32(I386_READ, fd, (long)at, bytes, 0, 0) : -ENOSYS;
}

static long write_frames(struct worker *worker, const struct row *row)
{
	struct canchar_frame *frame = (void *)worker->scratch;
	unsigned int count = 1 + below(worker, 16);
	int fd = slot(worker, CANCHAR);

	(void)row;
	memset(frame, 0, count * sizeof(*frame));
	for (unsigned int i = 0; i < count; i++)
		frame[i] = (struct canchar_frame){ .can_id = below(worker, 0x800), .len = below(worker, 10) };
	return shared->has_compat ? call32(I386_WRITE, fd, (long)frame, count * sizeof(*frame), 0, 0) : -ENOSYS;
}

static long set_raw_option(struct worker *worker, const struct row *row)
{
	static const int options[] = { CAN_RAW_FILTER, CAN_RAW_ERR_FILTER, CAN_RAW_LOOPBACK, CAN_RAW_RECV_OWN_MSGS,
				       CAN_RAW_FD_FRAMES, CAN_RAW_JOIN_FILTERS };
	int option = options[below(worker, sizeof(options) / sizeof(*options))], fd = slot(worker, RAW);
	size_t bytes = one_in(worker, 2) ? 4 : below(worker, 64);

	(void)row;
	fill_bytes(worker, worker->scratch, bytes);
	if (!shared->has_compat)
		return -ENOSYS;
	return call32(I386_SETSOCKOPT, fd, SOL_CAN_RAW, option, (long)worker->scratch, bytes);
}

static const struct row rows[] = {
	{ "ioctl", 16, any_ioctl, NULL },
	{ "read canchar", 2, any_read, (void *)CANCHAR },
	{ "read canprobe", 1, any_read, (void *)CANPROBE },
	{ "write canchar", 3, write_frames, NULL },
	{ "setsockopt", 1, set_raw_option, NULL },
};

const struct table compat_table = { "compat", ROWS(rows) };
