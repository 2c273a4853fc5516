// SPDX-License-Identifier: GPL-2.0-only
/* Open files, which the threads of a process share: one closes what another waits in. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

atomic_int fds[KINDS][SLOTS] = { [0 ... KINDS - 1] = { [0 ... SLOTS - 1] = -1 } };

long made(long result)
{
	return result < 0 ? -errno : result;
}

/* An open file of the kind, or seldom one of another; -1 when there is none. */
int slot(struct worker *worker, enum kind kind)
{
	unsigned int first = below(worker, SLOTS);

	if (one_in(worker, 64))
		kind = below(worker, KINDS);
	for (unsigned int i = 0; i < SLOTS; i++) {
		int fd = fds[kind][(first + i) % SLOTS];

		if (fd >= 0)
			return fd;
	}
	return -1;
}

/* Puts a new file into a slot and closes the one that was there. */
long keep(struct worker *worker, enum kind kind, int fd)
{
	int before;

	if (fd < 0)
		return -errno;
	before = atomic_exchange(&fds[kind][below(worker, SLOTS)], fd);
	if (before >= 0)
		close(before);
	return 0;
}

long close_one(struct worker *worker, const struct row *row)
{
	enum kind kind = (enum kind)(uintptr_t)row->data;
	int fd = atomic_exchange(&fds[kind][below(worker, SLOTS)], -1);

	return fd < 0 ? -EBADF : made(close(fd));
}

void close_all(void)
{
	for (unsigned int kind = 0; kind < KINDS; kind++)
		for (unsigned int i = 0; i < SLOTS; i++) {
			int fd = atomic_exchange(&fds[kind][i], -1);

			if (fd >= 0)
				close(fd);
		}
}

static long ioctl64(int fd, unsigned long number, void *at)
{
	return made(ioctl(fd, number, at));
}

/* An ioctl with its structure drawn. */
long request_by(struct worker *worker, const struct request *request,
		long (*call)(int fd, unsigned long number, void *at))
{
	int fd = slot(worker, request->kind);
	void *at = place_for(worker, request->bytes);
	unsigned long number = request->number;

	if (fd < 0)
		return -EBADF;
	if (at == worker->scratch)
		fill_structure(worker, at, request->bytes, request->fields, request->count);
	if (one_in(worker, 64))
		number ^= 1UL << below(worker, 32);
	return call(fd, number, at);
}

long call_request(struct worker *worker, const struct row *row)
{
	return request_by(worker, row->data, ioctl64);
}

long poll_one(struct worker *worker, const struct row *row)
{
	struct pollfd set[4];
	unsigned int count = 1 + below(worker, 4);

	for (unsigned int i = 0; i < count; i++)
		set[i] = (struct pollfd){
			.fd = slot(worker, (enum kind)(uintptr_t)row->data),
			.events = one_in(worker, 4) ? draw(worker) : POLLIN | POLLOUT,
		};
	return made(poll(set, count, below(worker, 4) ? 0 : 20));
}

/* A set that keeps its members while others close, poll and unbind them. */
long epoll_one(struct worker *worker, const struct row *row)
{
	struct epoll_event events[4] = { { .events = EPOLLIN | EPOLLOUT } };
	int set = slot(worker, EPOLL), fd = slot(worker, (enum kind)(uintptr_t)row->data);

	switch (below(worker, 5)) {
	case 0:
		return keep(worker, EPOLL, epoll_create1(EPOLL_CLOEXEC));
	case 1:
		events[0].events = draw(worker);
		return made(epoll_ctl(set, EPOLL_CTL_ADD, fd, events));
	case 2:
		events[0].events |= one_in(worker, 2) ? EPOLLET : EPOLLONESHOT;
		return made(epoll_ctl(set, EPOLL_CTL_MOD, fd, events));
	case 3:
		return made(epoll_ctl(set, EPOLL_CTL_DEL, fd, events));
	default:
		return made(epoll_wait(set, events, 4, below(worker, 4) ? 0 : 20));
	}
}

/* Replaces one of the thread's own maps. */
long map_file(struct worker *worker, int fd, size_t bytes, int access, off_t offset)
{
	struct map *map = &worker->maps[below(worker, MAPS_MAX)];
	int sharing = one_in(worker, 16) ? MAP_PRIVATE : MAP_SHARED;
	char *at = mmap(NULL, bytes, access, sharing, fd, offset);

	if (at == MAP_FAILED)
		return -errno;
	if (map->at)
		munmap(map->at, map->bytes);
	*map = (struct map){ at, bytes };
	return 0;
}

long unmap_one(struct worker *worker, const struct row *row)
{
	struct map *map = &worker->maps[below(worker, MAPS_MAX)];
	long result;

	(void)row;
	if (!map->at)
		return -EBADF;
	result = made(munmap(map->at, map->bytes));
	*map = (struct map){};
	return result;
}

long write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	long result;

	if (fd < 0)
		return -errno;
	result = made(write(fd, text, strlen(text)));
	close(fd);
	return result < 0 ? result : 0;
}
