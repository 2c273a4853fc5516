// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a process may do to a canchar device by mistake or malice: bad arguments of
 * mmap and ioctl, nonsense in mapped rings while frames move, fork. TAP on standard
 * output; whether the kernel took harm, its log must tell.
 *
 *	abuse /dev/canchar0 /dev/canchar1	two devices on one bus
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../uapi/canchar.h"
#include "tap.h"

static void bad_maps(const char *path)
{
	int fd = open_device(path);
	struct canchar_frame frame;

	ok(map(fd, 1 << 20, MAP_SHARED, 0) == MAP_FAILED && errno == EINVAL,
	   "a map longer than the rings is refused");
	ok(map(fd, 4096, MAP_SHARED, 1 << 20) == MAP_FAILED && errno == EINVAL,
	   "a map behind the rings is refused");
	ok(map(fd, 3 * 4096, MAP_PRIVATE, 0) == MAP_FAILED && errno == EINVAL,
	   "a private map is refused");
	ok(read(fd, &frame, sizeof(frame)) < 0 && errno == EAGAIN,
	   "a file whose maps were refused is still read");
	close(fd);
}

static bool refused(int fd, unsigned long request, void *argument, int error)
{
	return ioctl(fd, request, argument) < 0 && errno == error;
}

static void bad_options(const char *path)
{
	int fd = open_device(path);
	struct canchar_options good, bad;
	bool all = true;

	ioctl(fd, CANCHAR_GET_OPTIONS, &good);
	for (int i = 0; i < 9; i++) {
		bad = good;
		if (i == 0)
			bad.frame_size = 16;
		if (i == 1)
			bad.flags = 0x80000000;
		if (i == 2)
			bad.rx_slots = 0;
		if (i == 3)
			bad.rx_slots = 63;
		if (i == 4)
			bad.rx_slots = 1U << 31;
		if (i == 5)
			bad.tx_slots = 8192;
		if (i == 6)
			bad.priority = 3;
		if (i == 7)
			bad.read_min = 0;
		if (i == 8)
			bad.read_min = bad.rx_slots;
		all &= refused(fd, CANCHAR_SET_OPTIONS, &bad, EINVAL);
	}
	ok(all, "options that cannot be are refused");
	close(fd);
}

static void bad_ioctls(const char *path)
{
	int fd = open_device(path);
	struct canchar_poll_entry entry = { .fd = 0 };
	struct canchar_poll_set set = { .count = 1, .entries = (__u64)(unsigned long)&entry };
	struct canchar_filters filters = { .count = 1, .filters = 8 };
	struct canchar_wait wait = { .min = 0 };
	static const unsigned long all[] = {
		CANCHAR_GET_INFO,      CANCHAR_GET_TIMING,  CANCHAR_SET_TIMING,	  CANCHAR_GET_OPTIONS,
		CANCHAR_SET_OPTIONS,   CANCHAR_SET_FILTERS, CANCHAR_GET_STATISTICS, CANCHAR_WAIT,
		CANCHAR_WAIT_TX_DONE,  CANCHAR_POLL_SET,
	};
	bool faults = true;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		faults &= refused(fd, all[i], (void *)8, EFAULT);
	ok(faults, "a structure at a bad address is a fault for every ioctl");
	ok(refused(fd, _IO(CANCHAR_IOC, 0xff), NULL, ENOTTY), "an unknown ioctl is refused");
	ok(refused(fd, CANCHAR_SET_FILTERS, &filters, EFAULT), "filters at a bad address are a fault");
	filters.count = CANCHAR_FILTERS_MAX + 1;
	ok(refused(fd, CANCHAR_SET_FILTERS, &filters, EINVAL), "too many filters are refused");
	ok(refused(fd, CANCHAR_WAIT, &wait, EINVAL), "a wait for no frame is refused");
	ok(refused(fd, CANCHAR_POLL_SET, &set, ENOTTY), "a set with another kind of file is refused");
	entry.fd = 9999;
	ok(refused(fd, CANCHAR_POLL_SET, &set, EBADF), "a set with a closed file is refused");
	set.count = CANCHAR_POLL_SET_MAX + 1;
	ok(refused(fd, CANCHAR_POLL_SET, &set, EINVAL), "too large a set is refused");
	close(fd);
}

static void bad_frames(const char *path)
{
	int fd = open_device(path);
	struct canchar_frame frame = { .can_id = 0x123, .len = 9 };
	void *volatile nowhere = (void *)8;
	bool all = true;

	all &= write(fd, &frame, sizeof(frame)) < 0 && errno == EINVAL;
	frame.len = 1;
	frame.can_id = 0x20000001;
	all &= write(fd, &frame, sizeof(frame)) < 0 && errno == EINVAL;
	frame.can_id = 0x800;
	all &= write(fd, &frame, sizeof(frame)) < 0 && errno == EINVAL;
	frame.can_id = 0x123;
	frame.flags = 1;
	all &= write(fd, &frame, sizeof(frame)) < 0 && errno == EINVAL;
	ok(all, "frames that cannot be sent are refused");
	ok(write(fd, &frame, 23) < 0 && errno == EINVAL, "part of a frame is refused");
	ok(write(fd, nowhere, 24) < 0 && errno == EFAULT, "a frame at a bad address is a fault");
	ok(read(fd, &frame, 23) < 0 && errno == EINVAL, "room for part of a frame is refused");
	close(fd);
}

/* Nonsense everywhere, with frames coming, and kicks. */
static void scribble(const char *near, const char *far)
{
	int fd = open_device(near), other = open_device(far), i;
	struct canchar_frame frame = { .can_id = 0x123, .len = 8 };
	struct canchar_map *rings = map(fd, 3 * 4096, MAP_SHARED, 0);
	struct canchar_ring *rx, *tx;
	struct canchar_wait wait = { .min = 1 };
	struct canchar_options options;

	ok(rings != MAP_FAILED && rings->magic == CANCHAR_MAP_MAGIC, "the rings are mapped");
	ok(read(fd, &frame, sizeof(frame)) < 0 && errno == EBUSY, "a mapped file is not read");
	ok(write(fd, &frame, sizeof(frame)) < 0 && errno == EBUSY, "nor written");
	ioctl(fd, CANCHAR_GET_OPTIONS, &options);
	options.rx_slots = 128;
	ok(refused(fd, CANCHAR_SET_OPTIONS, &options, EBUSY), "nor are its rings changed");
	rx = (void *)rings + rings->rx_offset;
	tx = (void *)rings + rings->tx_offset;
	srandom(2014);
	for (i = 0; i < 20000; i++) {
		struct pollfd poller = { .fd = fd, .events = POLLIN | POLLOUT };

		if (i % 4 == 0)
			memset((void *)rings + 4096 + 4096 * (i / 4 % 2), (int)random(), 4096);
		rx->tail = (__u32)random() << 1;
		tx->head = i % 2 ? (__u32)random() << 1 : tx->tail + (__u32)random() % 70;
		tx->tail = (__u32)random();
		rings->rx_slots = (__u32)random();
		ioctl(fd, CANCHAR_KICK);
		ioctl(fd, CANCHAR_WAIT, &wait);
		poll(&poller, 1, 0);
		(void)!write(other, &frame, sizeof(frame));
		while (read(other, &frame, sizeof(frame)) > 0)
			;
		frame = (struct canchar_frame){ .can_id = 0x123, .len = 8 };
	}
	close(fd);
	fd = open_device(near);
	frame = (struct canchar_frame){ .can_id = 0x321, .len = 1 };
	ok(write(other, &frame, sizeof(frame)) == sizeof(frame), "the device still sends");
	for (i = 0; i < 1000 && read(fd, &frame, sizeof(frame)) < 0; i++)
		usleep(1000);
	ok(frame.stamp_ns && frame.can_id == 0x321, "and receives");
	munmap(rings, 3 * 4096);
	close(fd);
	close(other);
}

/* The map lives on in a child that has closed the file, and in one that has not. */
static void forks(const char *path)
{
	int fd = open_device(path), status;
	char *rings = map(fd, 3 * 4096, MAP_SHARED, 0);
	pid_t child = fork();

	if (!child) {
		close(fd);
		memset(rings + 4096, 0xa5, 2 * 4096);
		munmap(rings + 4096, 4096);
		_exit(rings[0] == 0);
	}
	close(fd);
	waitpid(child, &status, 0);
	rings[8192]++;
	ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a map outlives the file, in parent and child");
	munmap(rings, 3 * 4096);
}

int main(int count, char **names)
{
	if (count != 3) {
		fprintf(stderr, "usage: abuse DEVICE DEVICE\n");
		return 2;
	}
	bad_maps(names[1]);
	bad_options(names[1]);
	bad_ioctls(names[1]);
	bad_frames(names[1]);
	scribble(names[1], names[2]);
	forks(names[1]);
	printf("1..%d\n", number);
	return failed != 0;
}
