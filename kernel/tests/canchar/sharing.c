// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several files and threads on one canchar device: none may harm, starve or delay another. TAP on
 * standard output; the kernel's log must show whether it took harm.
 *
 *	sharing /dev/canchar0 /dev/canchar1	two virtual devices on one bus, without a bit rate
 */

#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "../../uapi/canchar.h"
#include "tap.h"

/*
 * Within this time everything happens that is to happen, on a busy machine too. A failure takes at
 * least twice as long.
 */
#define SOON_MS		10000
/* Files that linger one after the other, a second each, if closing them goes wrong. */
#define LINGERING_FILES	(2 * SOON_MS / 1000)
#define MS_NS		1000000ULL

static const char *near_name, *far_name;

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct canchar_options options_of(int fd)
{
	struct canchar_options options;

	if (ioctl(fd, CANCHAR_GET_OPTIONS, &options))
		perror("CANCHAR_GET_OPTIONS");
	return options;
}

static int set_options(int fd, struct canchar_options options)
{
	return ioctl(fd, CANCHAR_SET_OPTIONS, &options);
}

static bool send_one(int fd, unsigned int id)
{
	struct canchar_frame frame = { .can_id = id, .len = 2 };

	return write(fd, &frame, sizeof(frame)) == sizeof(frame);
}

static long wait_for(int fd, unsigned int min, unsigned long long timeout_ns)
{
	struct canchar_wait wait = { .timeout_ns = timeout_ns, .min = min };

	return ioctl(fd, CANCHAR_WAIT, &wait);
}

static struct canchar_statistics statistics_of(int fd)
{
	struct canchar_statistics statistics;

	if (ioctl(fd, CANCHAR_GET_STATISTICS, &statistics))
		perror("CANCHAR_GET_STATISTICS");
	return statistics;
}

static void write_attribute(const char *name, const char *attribute, const char *value)
{
	char path[128];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/canchar/%s/%s", strrchr(name, '/') + 1, attribute);
	file = fopen(path, "w");
	if (!file || fputs(value, file) < 0 || fclose(file))
		perror(path);
}

static void restart_with(const char *name, const char *bitrate, unsigned int flags)
{
	struct canchar_timing timing = { .bitrate = atoi(bitrate), .flags = flags };
	int fd = open_device(name);

	if (ioctl(fd, CANCHAR_STOP) || ioctl(fd, CANCHAR_SET_TIMING, &timing) ||
	    ioctl(fd, CANCHAR_START))
		perror("restart");
	close(fd);
}

/* ------------------------------------------------------- who needs stamps -- */

static int set_stamps(int fd, bool needed)
{
	struct canchar_options options = options_of(fd);

	options.flags = needed ? 0 : CANCHAR_NO_STAMPS;
	return set_options(fd, options);
}

/* Whether the next frame, from another device, reaches the file with a stamp; -1: not at all. */
static int next_is_stamped(int from, int to)
{
	struct canchar_frame frame;

	while (wait_for(to, 1, 0) > 0 && read(to, &frame, sizeof(frame)) > 0)
		;
	if (!send_one(from, 0x123) || wait_for(to, 1, SOON_MS * MS_NS) != 1 ||
	    read(to, &frame, sizeof(frame)) != sizeof(frame))
		return -1;
	return frame.stamp_ns != 0;
}

static void stamps_for_those_who_need_them(void)
{
	int from = open_device(far_name), to = open_device(near_name), beside;

	ok(next_is_stamped(from, to) == 1, "frames are stamped ...");
	set_stamps(to, false);
	ok(next_is_stamped(from, to) == 0, "... unless no file needs it ...");
	beside = open_device(near_name);
	ok(next_is_stamped(from, to) == 1, "... which one that was opened later does ...");
	set_stamps(beside, false);
	set_stamps(beside, false);
	ok(next_is_stamped(from, to) == 0, "... until it declines, twice ...");
	set_stamps(beside, true);
	ok(next_is_stamped(from, beside) == 1, "... or until it is closed ...");
	close(beside);
	ok(next_is_stamped(from, to) == 0, "... and the other one is as before");
	set_stamps(to, true);
	ok(next_is_stamped(from, to) == 1, "a file may need stamps again");
	close(to);
	to = open_device(near_name);
	ok(next_is_stamped(from, to) == 1, "the next file has them");
	close(to);
	close(from);
}

/* ------------------------------------------------- rings that are replaced -- */

static atomic_bool stop;

static void *poll_it(void *argument)
{
	int fd = *(int *)argument;

	while (!stop) {
		struct pollfd one = { .fd = fd, .events = POLLIN | POLLOUT };
		struct canchar_poll_entry entry = { .fd = fd };
		struct canchar_poll_set set = { .count = 1, .entries = (unsigned long)&entry };

		poll(&one, 1, 0);
		ioctl(fd, CANCHAR_POLL_SET, &set);
		wait_for(fd, 1, 0);
	}
	return NULL;
}

static void polled_while_its_rings_change(void)
{
	int fd = open_device(near_name), peer = open_device(far_name);
	struct canchar_options options = options_of(fd);
	pthread_t thread;
	bool changed = true;

	stop = false;
	pthread_create(&thread, NULL, poll_it, &fd);
	for (int i = 0; i < 2000; i++) {
		options.rx_slots = i % 2 ? 4096 : 2;
		options.tx_slots = i % 2 ? 1 : 4096;
		changed &= !set_options(fd, options);
		send_one(peer, i & 0x7ff);
	}
	stop = true;
	pthread_join(thread, NULL);
	ok(changed, "rings are replaced while another thread polls");
	close(fd);
	close(peer);
}

/* ------------------------------------------------------ a chip that is masked -- */

/* Masks the chip's interrupt and never polls again. */
static int mask_and_leave(const char *name)
{
	int fd = open_device(name);
	struct canchar_options options = options_of(fd);

	options.flags |= CANCHAR_POLL_CHIP;
	set_options(fd, options);
	wait_for(fd, 1, MS_NS);
	return fd;
}

static void sleeper_in_epoll_beside_one_who_left(void)
{
	int sender = open_device(near_name), sleeper = open_device(far_name), poller, epoll;
	struct epoll_event event = { .events = EPOLLIN };

	epoll = epoll_create1(0);
	epoll_ctl(epoll, EPOLL_CTL_ADD, sleeper, &event);
	poller = mask_and_leave(far_name);
	send_one(sender, 0x123);
	ok(epoll_wait(epoll, &event, 1, SOON_MS) == 1,
	   "a file in an epoll set gets frames after a poller left");
	close(epoll);
	close(poller);
	close(sleeper);
	close(sender);
}

static void sender_beside_one_who_left(void)
{
	int sender, receiver, poller, tries;

	restart_with(near_name, "125000", 0);
	restart_with(far_name, "125000", 0);
	sender = open_device(near_name);
	receiver = open_device(far_name);
	poller = mask_and_leave(near_name);
	for (int i = 0; i < 5; i++)
		send_one(sender, i);
	for (tries = 0; tries < SOON_MS && statistics_of(receiver).file_rx_frames < 5; tries++)
		usleep(1000);
	ok(statistics_of(receiver).file_rx_frames == 5,
	   "queued frames are sent after a poller left");
	close(poller);
	close(receiver);
	close(sender);
	restart_with(near_name, "0", 0);
	restart_with(far_name, "0", 0);
}

static void bus_off_beside_one_who_left(void)
{
	int watcher = open_device(near_name), poller = mask_and_leave(near_name), tries;

	write_attribute(near_name, "report", "bus-off");
	for (tries = 0; tries < SOON_MS && statistics_of(watcher).state != CANCHAR_BUS_OFF; tries++)
		usleep(1000);
	ok(statistics_of(watcher).state == CANCHAR_BUS_OFF, "bus-off is seen after a poller left");
	ioctl(watcher, CANCHAR_START);
	close(poller);
	close(watcher);
}

/* --------------------------------------------------------------------- bounds -- */

static void too_many_files(void)
{
	int fds[64], opened = 0, error;

	while (opened < 64 && (fds[opened] = open(near_name, O_RDWR | O_NONBLOCK)) >= 0)
		opened++;
	error = open(near_name, O_RDWR) < 0 ? errno : 0;
	ok(opened == 64 && error == EUSERS, "a device has 64 files at most");
	while (opened)
		close(fds[--opened]);
}

static void too_many_filters(void)
{
	static struct canchar_filter list[513];
	struct canchar_filters filters = { .count = 513, .filters = (unsigned long)list };
	int fds[5], set = 0, error = 0;
	bool refused;

	for (int i = 0; i < 5; i++)
		fds[i] = open_device(near_name);
	refused = ioctl(fds[0], CANCHAR_SET_FILTERS, &filters) < 0 && errno == EINVAL;
	filters.count = 512;
	for (int i = 0; i < 5; i++) {
		if (ioctl(fds[i], CANCHAR_SET_FILTERS, &filters))
			error = errno;
		else
			set++;
	}
	ok(refused && set == 4 && error == ENOSPC,
	   "a file has 512 filters at most, a device 2048");
	filters.count = 0;
	ok(!ioctl(fds[0], CANCHAR_SET_FILTERS, &filters), "filters that go make room ...");
	filters.count = 512;
	ok(!ioctl(fds[4], CANCHAR_SET_FILTERS, &filters), "... for those of another file");
	for (int i = 0; i < 5; i++)
		close(fds[i]);
}

/* ---------------------------------------------------------- what others see -- */

static void a_ring_shows_no_kernel_memory(void)
{
	struct canchar_short_frame brief = { .can_id = 0x42, .len = 8 };
	struct canchar_options options;
	struct canchar_frame *slots;
	struct canchar_map *page;
	bool clean = true;
	int fd;

	restart_with(near_name, "20000", 0);
	fd = open_device(near_name);
	options = options_of(fd);
	options.frame_size = sizeof(brief);
	set_options(fd, options);
	for (int i = 0; i < 20; i++)
		if (write(fd, &brief, sizeof(brief)) != sizeof(brief))
			perror("write");
	page = map(fd, 4096, MAP_SHARED, 0);
	slots = map(fd, page->bytes - page->tx_offset, MAP_SHARED, page->tx_offset);
	slots = (void *)slots + sizeof(struct canchar_ring);
	for (int i = 0; i < 19; i++)
		clean &= !slots[i].stamp_ns && !slots[i].lost;
	ok(clean, "frames of 20 bytes leave nothing else in a mapped ring");
	ioctl(fd, CANCHAR_STOP);
	close(fd);
	restart_with(near_name, "0", 0);
}

static void an_echo_ends_with_its_data(void)
{
	struct canchar_frame frame = { .can_id = 0x42, .len = 2, .data = { 1, 2, 3, 4, 5, 6, 7, 8 } };
	int fd = open_device(near_name);
	struct canchar_options options = options_of(fd);

	options.flags |= CANCHAR_ECHO_OWN;
	set_options(fd, options);
	if (write(fd, &frame, sizeof(frame)) != sizeof(frame))
		perror("write");
	ok(wait_for(fd, 1, SOON_MS * MS_NS) == 1 && read(fd, &frame, sizeof(frame)) == sizeof(frame) &&
	   frame.data[1] == 2 && !memcmp(frame.data + 2, "\0\0\0\0\0", 6),
	   "an echo has zeros after its data");
	close(fd);
}

/* ------------------------------------------------------------------ waits -- */

static void *wait_for_two(void *argument)
{
	return (void *)wait_for(*(int *)argument, 2, 2 * SOON_MS * MS_NS);
}

/* Until the thread that was just made sleeps in its call. */
static void let_it_sleep(void)
{
	usleep(50000);
}

static void a_poll_beside_a_reader(void)
{
	int sender = open_device(near_name), fd = open_device(far_name);
	struct canchar_options options = options_of(fd);
	struct pollfd one = { .fd = fd, .events = POLLIN };
	pthread_t thread;
	void *woken;
	long began;

	options.read_min = 8;
	set_options(fd, options);
	pthread_create(&thread, NULL, wait_for_two, &fd);
	let_it_sleep();
	poll(&one, 1, 0);
	began = now_ms();
	send_one(sender, 1);
	send_one(sender, 2);
	pthread_join(thread, &woken);
	ok((long)woken == 2 && now_ms() - began < SOON_MS,
	   "two frames wake a reader that waits for two, while a poll waits for eight");
	close(fd);
	close(sender);
}

static void calls_beside_a_sleeping_reader(void)
{
	int sender = open_device(near_name), fd = open_device(far_name);
	struct canchar_filters filters = {};
	long began, took;
	pthread_t thread;

	pthread_create(&thread, NULL, wait_for_two, &fd);
	let_it_sleep();
	began = now_ms();
	options_of(fd);
	ioctl(fd, CANCHAR_SET_FILTERS, &filters);
	wait_for(fd, 1, 0);
	took = now_ms() - began;
	ok(took < SOON_MS, "options, filters and a look do not wait for a reader that sleeps");
	send_one(sender, 1);
	send_one(sender, 2);
	pthread_join(thread, NULL);
	close(fd);
	close(sender);
}

static void timed_waits_beside_a_sleeping_reader(void)
{
	int sender = open_device(near_name), fd = open_device(far_name);
	struct canchar_options options = options_of(fd);
	struct canchar_frame frame;
	pthread_t first, second;
	bool none, again;
	void *woken;
	long began;

	options.timeout_ns = 100 * MS_NS;
	set_options(fd, options);
	fcntl(fd, F_SETFL, 0);	/* without O_NONBLOCK */
	pthread_create(&first, NULL, wait_for_two, &fd);
	let_it_sleep();
	began = now_ms();
	none = wait_for(fd, 1, 100 * MS_NS) == 0;
	again = read(fd, &frame, sizeof(frame)) < 0 && errno == EAGAIN;
	ok(none && again && now_ms() - began < SOON_MS,
	   "waits with a timeout end in time beside a reader that sleeps ...");
	pthread_create(&second, NULL, wait_for_two, &fd);
	let_it_sleep();
	began = now_ms();
	send_one(sender, 1);
	send_one(sender, 2);
	pthread_join(first, NULL);
	pthread_join(second, &woken);
	ok((long)woken == 2 && now_ms() - began < SOON_MS, "... and go on when it has ended");
	close(fd);
	close(sender);
}

static void *write_until_it_stops(void *argument)
{
	while (send_one(*(int *)argument, 1))
		;
	return NULL;
}

static void a_look_beside_a_sleeping_writer(void)
{
	struct canchar_options options;
	unsigned long long now = 0, soon = 100 * MS_NS;
	long began, took;
	pthread_t thread;
	bool waits;
	int fd;

	restart_with(near_name, "4", 0);	/* 16 s a frame */
	fd = open_device(near_name);
	options = options_of(fd);
	options.tx_slots = 4;	/* so that the writer sleeps soon */
	set_options(fd, options);
	fcntl(fd, F_SETFL, 0);	/* without O_NONBLOCK */
	pthread_create(&thread, NULL, write_until_it_stops, &fd);
	let_it_sleep();
	began = now_ms();
	waits = ioctl(fd, CANCHAR_WAIT_TX_DONE, &now) < 0 && errno == ETIME;
	took = now_ms() - began;
	ok(waits && took < SOON_MS, "a look at what is sent does not wait for a writer that sleeps ...");
	waits = ioctl(fd, CANCHAR_WAIT_TX_DONE, &soon) < 0 && errno == ETIME;
	took = now_ms() - began;
	ok(waits && took < SOON_MS, "... and a wait with a timeout ends in time");
	ioctl(fd, CANCHAR_STOP);
	pthread_join(thread, NULL);
	close(fd);
	restart_with(near_name, "0", 0);
}

static void on_signal(int signal)
{
	(void)signal;
}

/* A call of a thread that waits behind another thread of the file. */
struct waiting {
	bool (*call)(int fd);	/* whether a signal ended it */
	int fd;
	pthread_t thread;
	atomic_bool ended, interrupted;
};

static bool setting_options_is_interrupted(int fd)
{
	return set_options(fd, options_of(fd)) < 0 && errno == EINTR;
}

static bool writing_is_interrupted(int fd)
{
	return !send_one(fd, 2) && errno == EINTR;
}

static void *wait_behind(void *argument)
{
	struct waiting *waiting = argument;

	waiting->interrupted = waiting->call(waiting->fd);
	waiting->ended = true;
	return NULL;
}

/* A signal may come before the call; so there are several. */
static bool ends_by_signal(struct waiting *waiting)
{
	struct sigaction action = { .sa_handler = on_signal };
	long began = now_ms();

	sigaction(SIGUSR1, &action, NULL);
	pthread_create(&waiting->thread, NULL, wait_behind, waiting);
	while (!waiting->ended && now_ms() - began < SOON_MS) {
		pthread_kill(waiting->thread, SIGUSR1);
		usleep(1000);
	}
	return waiting->interrupted;
}

static void a_signal_ends_what_waits_for_a_reader(void)
{
	int sender = open_device(near_name), fd = open_device(far_name);
	struct waiting options = { .call = setting_options_is_interrupted, .fd = fd };
	pthread_t reader;

	pthread_create(&reader, NULL, wait_for_two, &fd);
	let_it_sleep();
	ok(ends_by_signal(&options), "options wait for a reader that sleeps, until a signal ...");
	send_one(sender, 1);
	send_one(sender, 2);
	pthread_join(reader, NULL);
	pthread_join(options.thread, NULL);
	close(fd);
	close(sender);
}

static void a_signal_ends_what_waits_for_a_writer(void)
{
	struct canchar_options options;
	struct waiting both[] = {
		{ .call = writing_is_interrupted }, { .call = setting_options_is_interrupted },
	};
	pthread_t writer;
	bool end = true;
	int fd;

	restart_with(near_name, "4", 0);	/* 16 s a frame */
	fd = open_device(near_name);
	options = options_of(fd);
	options.tx_slots = 4;	/* so that the writer sleeps soon */
	set_options(fd, options);
	fcntl(fd, F_SETFL, 0);	/* without O_NONBLOCK */
	pthread_create(&writer, NULL, write_until_it_stops, &fd);
	let_it_sleep();
	for (int i = 0; i < 2; i++) {
		both[i].fd = fd;
		end &= ends_by_signal(&both[i]);
	}
	ok(end, "... and so do another writer and options for a writer that sleeps");
	ioctl(fd, CANCHAR_STOP);
	pthread_join(writer, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(both[i].thread, NULL);
	close(fd);
	restart_with(near_name, "0", 0);
}

/* With SA_RESTART a restarted wait would end with 0 after the whole time again. */
static void a_timeout_is_not_restarted(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct itimerval timer = { .it_value.tv_usec = 100000 };
	int fd = open_device(near_name);
	long answer;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	answer = wait_for(fd, 1, SOON_MS * MS_NS);
	ok(answer < 0 && errno == EINTR, "a signal ends a wait that has a timeout");
	close(fd);
}

/* ---------------------------------------------------------- devices that end -- */

static void a_listener_refuses_to_send(void)
{
	struct canchar_timing timing = {};
	int fd;

	restart_with(near_name, "125000", CANCHAR_LISTEN_ONLY);
	fd = open_device(near_name);
	ok(!send_one(fd, 1) && errno == EOPNOTSUPP, "a listen-only device refuses to send");
	ioctl(fd, CANCHAR_STOP);
	write_attribute(near_name, "bitrate", "250000");
	ioctl(fd, CANCHAR_GET_TIMING, &timing);
	ok(timing.bitrate == 250000 && timing.flags == CANCHAR_LISTEN_ONLY,
	   "a bit rate by sysfs leaves a listener one");
	close(fd);
	restart_with(near_name, "0", 0);
}

static void a_stopped_device_in_a_set(void)
{
	int fd = open_device(near_name);
	struct canchar_poll_entry entry = { .fd = fd };
	struct canchar_poll_set set = {
		.timeout_ns = SOON_MS * MS_NS, .count = 1, .entries = (unsigned long)&entry
	};

	ioctl(fd, CANCHAR_STOP);
	ok(ioctl(fd, CANCHAR_POLL_SET, &set) < 0 && errno == ENETDOWN,
	   "a set of stopped devices ends the wait");
	ioctl(fd, CANCHAR_START);
	close(fd);
}

static void frames_queued_before_bus_off(void)
{
	struct canchar_statistics after;
	int fd, receiver, tries;

	restart_with(near_name, "1000", 0);	/* 63 ms a frame */
	receiver = open_device(far_name);
	fd = open_device(near_name);
	for (int i = 0; i < 10; i++)
		send_one(fd, i);
	write_attribute(near_name, "report", "bus-off");
	for (tries = 0; tries < SOON_MS && statistics_of(fd).state != CANCHAR_BUS_OFF; tries++)
		usleep(1000);
	ioctl(fd, CANCHAR_START);
	send_one(fd, 0x7ff);
	for (tries = 0; tries < SOON_MS && statistics_of(fd).file_tx_frames < 1; tries++)
		usleep(1000);
	after = statistics_of(fd);
	ok(after.file_tx_lost > 0 && after.file_tx_frames + after.file_tx_lost == 11,
	   "frames that were queued before bus-off are lost and counted, not sent after it");
	close(receiver);
	close(fd);
	restart_with(near_name, "0", 0);
}

static void *wait_for_one(void *argument)
{
	int *fd = argument;

	return (void *)(wait_for(*fd, 1, 2 * SOON_MS * MS_NS) < 0 ? (long)errno : 0);
}

static void a_restart_that_fails(void)
{
	int fd = open_device(near_name), polled = open_device(near_name);
	struct pollfd one = { .fd = polled, .events = POLLPRI };
	pthread_t thread;
	void *error;
	long began;

	write_attribute(near_name, "restart_ms", "100");
	write_attribute(near_name, "broken", "1");
	pthread_create(&thread, NULL, wait_for_one, &fd);
	let_it_sleep();
	began = now_ms();
	write_attribute(near_name, "report", "bus-off");
	ok(poll(&one, 1, 2 * SOON_MS) == 1 && one.revents & POLLERR && now_ms() - began < SOON_MS,
	   "a restart that fails wakes those who poll ...");
	pthread_join(thread, &error);
	ok((long)error == ENETDOWN && now_ms() - began < SOON_MS, "... and readers that sleep");
	ok(statistics_of(fd).state == CANCHAR_STOPPED, "... and leaves the device stopped");
	write_attribute(near_name, "broken", "0");
	close(polled);
	close(fd);
	restart_with(near_name, "0", 0);
}

/* In bus-off nothing is sent: closing many blocking files takes one linger, not one each. */
static void closing_many_files(void)
{
	int fds[LINGERING_FILES], watcher = open_device(near_name);
	long began;

	write_attribute(near_name, "report", "bus-off");
	for (int tries = 0; tries < SOON_MS && statistics_of(watcher).state != CANCHAR_BUS_OFF; tries++)
		usleep(1000);
	for (int i = 0; i < LINGERING_FILES; i++) {
		fds[i] = open(near_name, O_RDWR);
		send_one(fds[i], i);
	}
	began = now_ms();
	for (int i = 0; i < LINGERING_FILES; i++)
		close(fds[i]);
	ok(now_ms() - began < SOON_MS, "closing many files lingers once");
	ioctl(watcher, CANCHAR_START);
	close(watcher);
}

/* ------------------------------------- interrupts that lead to the next one -- */

#define MANY_SLOTS	4096
/* Half of the interrupts that send a full ring, eight frames each. */
#define AT_A_STRETCH	(MANY_SLOTS / 8 / 2)

static void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		perror("sched_setaffinity");
}

/* Without the priority of the thread that made this one. */
static void be_usual_on(int cpu)
{
	const struct sched_param usual = {};

	stay_on(cpu);
	if (sched_setscheduler(0, SCHED_OTHER, &usual))
		perror("sched_setscheduler");
}

static void fill_ring(struct canchar_ring *ring)
{
	struct canchar_frame *slots = (struct canchar_frame *)(ring + 1);
	unsigned int head = ring->head;

	while (head - __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) < MANY_SLOTS) {
		slots[head % MANY_SLOTS] = (struct canchar_frame){ .can_id = 1, .len = 2 };
		__atomic_store_n(&ring->head, ++head, __ATOMIC_RELEASE);
	}
}

struct full_ring {
	struct canchar_ring *ring;
	int fd;
	int cpu;
	long end;	/* when its threads give up: a processor may have nothing for the one that stops them */
};

static void *keep_full(void *argument)
{
	const struct full_ring *full = argument;

	be_usual_on(0);
	while (!stop && now_ms() < full->end)
		fill_ring(full->ring);
	return NULL;
}

static void *keep_sending(void *argument)
{
	const struct full_ring *full = argument;

	be_usual_on(full->cpu);
	while (!stop && now_ms() < full->end)
		ioctl(full->fd, CANCHAR_KICK);
	return NULL;
}

static struct canchar_ring *map_many(int fd)
{
	struct canchar_options options = options_of(fd);
	struct canchar_map *head;

	options.tx_slots = MANY_SLOTS;
	set_options(fd, options);
	head = map(fd, sizeof(*head), MAP_SHARED, 0);
	return map(fd, head->bytes, MAP_SHARED, 0) + head->tx_offset;
}

/* As a producer does it: a kick only when the driver asks for one. */
static void put_into(struct canchar_ring *ring, int fd, unsigned int id)
{
	struct canchar_frame *slots = (struct canchar_frame *)(ring + 1);

	slots[ring->head % MANY_SLOTS] = (struct canchar_frame){ .can_id = id, .len = 2 };
	__atomic_store_n(&ring->head, ring->head + 1, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&ring->need_wakeup, __ATOMIC_RELAXED))
		ioctl(fd, CANCHAR_KICK);
}

static bool is_empty(const struct canchar_ring *ring)
{
	return __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE) == ring->head;
}

static void frames_in_a_ring_before_bus_off(void)
{
	struct canchar_statistics after;
	struct canchar_frame frame = {};
	struct canchar_ring *ring;
	int fd, receiver, tries;
	bool emptied;

	restart_with(near_name, "1000", 0);	/* 63 ms a frame */
	receiver = open_device(far_name);
	fd = open_device(near_name);
	ring = map_many(fd);
	for (int i = 0; i < 10; i++)
		put_into(ring, fd, i);
	write_attribute(near_name, "report", "bus-off");
	for (tries = 0; tries < SOON_MS && statistics_of(fd).state != CANCHAR_BUS_OFF; tries++)
		usleep(1000);
	emptied = is_empty(ring);
	put_into(ring, fd, 0x7ff);
	ioctl(fd, CANCHAR_START);
	for (tries = 0; tries < SOON_MS && frame.can_id != 0x7ff; tries++) {
		usleep(1000);
		(void)!read(receiver, &frame, sizeof(frame));
	}
	after = statistics_of(fd);
	ok(emptied && after.file_tx_lost > 0 && after.file_tx_frames + after.file_tx_lost == 11,
	   "frames that were in a mapped ring before bus-off are lost and counted, too ...");
	ok(frame.can_id == 0x7ff && is_empty(ring), "... and one from within it is sent after the restart");
	close(receiver);
	close(fd);
	restart_with(near_name, "0", 0);
}

/* The most interrupts between two times that a thread with a priority runs, until these frames are sent. */
static unsigned long long longest_stretch(int fd, unsigned int frames)
{
	/* Long enough for others to run meanwhile. */
	static const struct timespec little = { .tv_nsec = 50000 };
	struct canchar_statistics now, before = statistics_of(fd);
	unsigned long long most = 0;

	for (now = before; now.file_tx_frames < frames; before = now) {
		nanosleep(&little, NULL);
		now = statistics_of(fd);
		if (now.interrupts - before.interrupts > most)
			most = now.interrupts - before.interrupts;
	}
	return most;
}

/*
 * Three threads: one kicks, and in the interrupts of its processor the frames are sent; one looks on
 * from the same processor. If there is another, a thread there keeps the ring full meanwhile.
 */
static void a_full_ring_leaves_the_processor(void)
{
	int last = sysconf(_SC_NPROCESSORS_ONLN) - 1, fd = open_device(near_name);
	struct full_ring full = { map_many(fd), fd, last, now_ms() + SOON_MS };
	const struct sched_param above = { .sched_priority = 1 };
	pthread_t filler, sender;
	unsigned long long most;

	fill_ring(full.ring);
	stop = false;
	stay_on(last);
	if (sched_setscheduler(0, SCHED_FIFO, &above))
		perror("sched_setscheduler");
	pthread_create(&sender, NULL, keep_sending, &full);
	if (last)
		pthread_create(&filler, NULL, keep_full, &full);
	most = longest_stretch(fd, MANY_SLOTS);
	stop = true;
	be_usual_on(last);
	pthread_join(sender, NULL);
	if (last)
		pthread_join(filler, NULL);
	printf("# %llu interrupts at a stretch\n", most);
	ok(most < AT_A_STRETCH, "a controller that sends a full ring leaves its processor to others");
	close(fd);
}

/* ----------------------------------------------------- what rings cost whom -- */

#define CGROUPS		"/tmp/canchar-cgroups"
#define RING_FILES	10
/* Both rings of the largest size. */
#define RINGS_BYTES	(2 * MANY_SLOTS * sizeof(struct canchar_frame))

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool good = fd >= 0 && write(fd, text, strlen(text)) > 0;

	if (fd >= 0)
		close(fd);
	return good;
}

static unsigned long long charged(void)
{
	char text[32] = "";
	int fd = open(CGROUPS "/test/memory.current", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		perror("memory.current");
	close(fd);
	return strtoull(text, NULL, 10);
}

/* This process in a control group of its own; false: the kernel has none for memory. */
static bool enter_cgroup(void)
{
	mkdir(CGROUPS, 0700);
	if (mount("none", CGROUPS, "cgroup2", 0, NULL))
		return false;
	return write_text(CGROUPS "/cgroup.subtree_control", "+memory") &&
	       !mkdir(CGROUPS "/test", 0700) && write_text(CGROUPS "/test/cgroup.procs", "0");
}

static void rings_are_charged_to_who_opens_them(void)
{
	unsigned long long before, open_now, closed;
	struct canchar_options options;
	int files[RING_FILES];

	if (!enter_cgroup()) {
		ok(true, "rings are charged # SKIP no control group for memory");
		return;
	}
	before = charged();
	for (int i = 0; i < RING_FILES; i++) {
		files[i] = open_device(near_name);
		options = options_of(files[i]);
		options.rx_slots = MANY_SLOTS;
		options.tx_slots = MANY_SLOTS;
		set_options(files[i], options);
	}
	open_now = charged();
	for (int i = 0; i < RING_FILES; i++)
		close(files[i]);
	closed = charged();
	printf("# %llu bytes before, %llu with %d files open, %llu after them\n", before, open_now, RING_FILES,
	       closed);
	ok(open_now >= before + RING_FILES * RINGS_BYTES, "rings are charged to who opens them ...");
	/* The kernel keeps some pages for the next charge. */
	ok(closed < before + 2 * RINGS_BYTES, "... until they are closed");
	write_text(CGROUPS "/cgroup.procs", "0");
	rmdir(CGROUPS "/test");
	umount(CGROUPS);
}

int main(int count, char **names)
{
	if (count != 3) {
		fprintf(stderr, "usage: sharing DEVICE DEVICE\n");
		return 2;
	}
	near_name = names[1];
	far_name = names[2];
	stamps_for_those_who_need_them();
	polled_while_its_rings_change();
	sleeper_in_epoll_beside_one_who_left();
	sender_beside_one_who_left();
	bus_off_beside_one_who_left();
	too_many_files();
	too_many_filters();
	a_ring_shows_no_kernel_memory();
	an_echo_ends_with_its_data();
	a_poll_beside_a_reader();
	calls_beside_a_sleeping_reader();
	timed_waits_beside_a_sleeping_reader();
	a_look_beside_a_sleeping_writer();
	a_signal_ends_what_waits_for_a_reader();
	a_signal_ends_what_waits_for_a_writer();
	a_timeout_is_not_restarted();
	a_listener_refuses_to_send();
	a_stopped_device_in_a_set();
	frames_queued_before_bus_off();
	frames_in_a_ring_before_bus_off();
	closing_many_files();
	a_restart_that_fails();
	a_full_ring_leaves_the_processor();
	rings_are_charged_to_who_opens_them();
	printf("1..%d\n", number);
	return failed != 0;
}
