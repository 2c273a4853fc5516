// SPDX-License-Identifier: GPL-2.0-only
/*
 * Allocations and copies that fail (CONFIG_FAULT_INJECTION): each call of a list with its first,
 * second, third ... failing, until the call comes to its end without one. The call returns an error
 * or does without. What it leaves behind, kmemleak and the unloading of the modules show.
 */

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/can.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include "../../uapi/canchar.h"
#include "../../uapi/canprobe.h"
#include "../../uapi/canwire.h"
#include "fuzz.h"

/* A call that is refused after so many never ends; loading canwire has 1235 with UBSAN. */
#define NTH_MAX		20000

static struct worker worker;

/* A call that is made with failures: what is done before it and after it, without. */
struct step {
	const char *name;
	long (*before)(const struct step *step);
	long (*call)(const struct step *step);
	void (*after)(const struct step *step);
	const void *data;
};

static int file = -1;

static long open_it(const struct step *step)
{
	/* The tap is read-only. */
	bool is_tap = strstr(step->data, "canwire-");

	file = open(step->data, (is_tap ? O_RDONLY : O_RDWR) | O_NONBLOCK);
	return made(file);
}

static void close_it(const struct step *step)
{
	(void)step;
	if (file >= 0)
		close(file);
	file = -1;
}

/* ------------------------------------------------------ ioctls and files -- */

static const char *path_of(const struct row *row)
{
	const struct request *request = row->data;

	return request->kind == CANCHAR ? "/dev/canchar0" :
	       request->kind == CANPROBE ? "/dev/canprobe" : "/dev/canbare";
}

static long before_request(const struct step *step)
{
	const struct row *row = step->data;
	const struct request *request = row->data;
	const struct step opened = { .data = path_of(row) };
	long result = open_it(&opened);

	fds[request->kind][0] = file;
	return result;
}

static long do_request(const struct step *step)
{
	const struct row *row = step->data;
	const struct request *request = row->data;

	return made(ioctl(file, request->number, worker.scratch));
}

static void after_request(const struct step *step)
{
	const struct request *request = ((const struct row *)step->data)->data;

	/* Timing is set while it is stopped; a device that stopped starts again. */
	ioctl(file, CANCHAR_START);
	fds[request->kind][0] = -1;
	close_it(step);
}

static long before_timing(const struct step *step)
{
	long result = before_request(step);

	ioctl(file, CANCHAR_STOP);
	return result;
}

/* A frame for it to read. */
static long before_read(const struct step *step)
{
	struct canchar_frame frame = { .can_id = 0x123, .len = 8 };
	int other = open("/dev/canchar1", O_RDWR | O_NONBLOCK);
	long result = open_it(step);

	if (write(other, &frame, sizeof(frame)) != sizeof(frame))
		result = -errno;
	close(other);
	return result;
}

/* A frame has left, and the instrument rests. */
static long before_floor(const struct step *step)
{
	long result = before_request(step);
	struct canprobe_state state;

	fill_valid(&worker, worker.scratch, probe_START.bytes, probe_START.fields,
		   probe_START.count);
	if (ioctl(file, CANPROBE_START, worker.scratch))
		return -errno;
	do {
		poll(NULL, 0, 1);
		if (ioctl(file, CANPROBE_GET_STATE, &state))
			return -errno;
	} while (state.running);
	return result;
}

static long do_read(const struct step *step)
{
	(void)step;
	return made(read(file, worker.scratch, 240));
}

static long do_write(const struct step *step)
{
	struct canchar_frame frame = { .can_id = 0x123, .len = 8 };

	(void)step;
	return made(write(file, &frame, sizeof(frame)));
}

static long do_poll(const struct step *step)
{
	struct pollfd one = { .fd = file, .events = POLLIN | POLLPRI };

	(void)step;
	return made(poll(&one, 1, 1));
}

static long do_epoll(const struct step *step)
{
	struct epoll_event event = { .events = EPOLLIN };
	int set = epoll_create1(0);
	long result = set < 0 ? -errno : made(epoll_ctl(set, EPOLL_CTL_ADD, file, &event));

	(void)step;
	if (set >= 0)
		close(set);
	return result;
}

static long do_map(const struct step *step)
{
	int access = strstr(step->data, "canwire-") ? PROT_READ : PROT_READ | PROT_WRITE;
	void *at = mmap(NULL, 3 * 4096, access, MAP_SHARED, file, 0);

	if (at == MAP_FAILED)
		return -errno;
	munmap(at, 3 * 4096);
	return 0;
}

/* -------------------------------------------------------- modules ------- */

static long before_load(const struct step *step)
{
	return unload_module(step->name);
}

static long do_load(const struct step *step)
{
	return load_module(step->name, step->data);
}

static void after_load(const struct step *step)
{
	load_module(step->name, step->data);
}

static long before_bitrate(const struct step *step)
{
	(void)step;
	return write_text("/sys/class/canchar/canchar0/running", "0");
}

static void after_bitrate(const struct step *step)
{
	write_text(step->data, "0");
	write_text("/sys/class/canchar/canchar0/running", "1");
}

static long do_attribute(const struct step *step)
{
	return write_text(step->data, "1");
}

/* ---------------------------------------------------------------- cards -- */

/* The step's data is the driver. */
static void write_card(const struct step *step, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/%s", card_of(step->data), name);
	write_text(path, text);
}

static void unbind(const struct step *step)
{
	write_card(step, "driver/unbind", card_of(step->data));
}

static long do_bind(const struct step *step)
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/drivers/%s/bind", (const char *)step->data);
	return write_text(path, card_of(step->data));
}

/*
 * The card is enabled already when the driver enables it, and its line has been used. Otherwise two
 * mistakes of the kernel's show (6.12; with its own kvaser_pci and no module of ours, too): ACPI
 * searches for the card's interrupt, and frees an object twice when an allocation fails
 * (acpi_rs_get_prt_method_data()); and a line without its entries in /proc/irq warns when it goes.
 */
static long before_bind(const struct step *step)
{
	long result;

	unbind(step);
	write_card(step, "enable", "1");
	result = do_bind(step);
	unbind(step);
	return result;
}

static void after_bind(const struct step *step)
{
	unbind(step);
	write_card(step, "enable", "0");
	bind_card(card_of(step->data), step->data);
}

/* -------------------------------------------------------------- netlink -- */

static long command_of(const struct step *step)
{
	return netlink_command(&worker, (uint8_t)(uintptr_t)step->data);
}

static long before_command(const struct step *step)
{
	(void)step;
	netlink_command(&worker, CANWIRE_CMD_NODE_ADD);
	return link_up(&worker, "fz0", slowed_rate(1000000), true);
}

static long before_source_stop(const struct step *step)
{
	before_command(step);
	return netlink_command(&worker, CANWIRE_CMD_SOURCE_START);
}

static void after_command(const struct step *step)
{
	(void)step;
	netlink_command(&worker, CANWIRE_CMD_SOURCE_STOP);
	netlink_command(&worker, CANWIRE_CMD_NODE_DELETE);
}

static long do_link_up(const struct step *step)
{
	(void)step;
	return link_up(&worker, "fz0", slowed_rate(500000), true);
}

static long before_link_up(const struct step *step)
{
	before_command(step);
	return link_down(&worker, "fz0");
}

static long do_send(const struct step *step)
{
	uint16_t protocol = (uint16_t)(uintptr_t)step->data;
	struct sockaddr_ll to = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(protocol),
		.sll_ifindex = if_nametoindex("fz0"),
	};
	char frame[72] = { 0x23, 1, 0, 0, 8 };
	int fd = socket(AF_PACKET, SOCK_RAW, 0);
	long result;

	if (fd < 0)
		return -errno;
	result = made(sendto(fd, frame, protocol == ETH_P_CAN ? CAN_MTU : CANFD_MTU, 0, (void *)&to,
			     sizeof(to)));
	close(fd);
	return result;
}

#define COMMAND(name) \
	{ #name, before_command, command_of, after_command, (void *)CANWIRE_CMD_##name }
#define OF_FILE(name, call, path) { name, open_it, call, close_it, path }

/* Without cards: a module that is loaded would take them, and before_bind() says what that shows. */
static const struct step loads[] = {
	{ "canwire", before_load, do_load, after_load, "nodes=wcan0:A,wcan1:A,wcan2:B" },
	{ "canchar", before_load, do_load, after_load, "virtual=2" },
	{ "canprobe", before_load, do_load, after_load, "" },
	{ "canbare", before_load, do_load, after_load, "" },
};

static const struct step steps[] = {
	{ "bind canchar", before_bind, do_bind, after_bind, "canchar_kvaser_pci" },
	{ "bind canprobe", before_bind, do_bind, after_bind, "canprobe" },
	{ "bind canbare", before_bind, do_bind, after_bind, "canbare" },
	{ "open canchar", NULL, open_it, close_it, "/dev/canchar0" },
	{ "open a card", NULL, open_it, close_it, "/dev/canchar2" },
	{ "open canprobe", NULL, open_it, close_it, "/dev/canprobe" },
	{ "open canbare", NULL, open_it, close_it, "/dev/canbare" },
	{ "open a tap", NULL, open_it, close_it, "/dev/canwire-A" },
	{ "read canchar", before_read, do_read, close_it, "/dev/canchar0" },
	OF_FILE("write canchar", do_write, "/dev/canchar0"),
	OF_FILE("poll canchar", do_poll, "/dev/canchar0"),
	OF_FILE("epoll canchar", do_epoll, "/dev/canchar0"),
	OF_FILE("map canchar", do_map, "/dev/canchar0"),
	OF_FILE("read canprobe", do_read, "/dev/canprobe"),
	OF_FILE("poll a tap", do_poll, "/dev/canwire-A"),
	OF_FILE("epoll a tap", do_epoll, "/dev/canwire-A"),
	OF_FILE("map a tap", do_map, "/dev/canwire-A"),
	{ "bitrate", before_bitrate, do_attribute, after_bitrate,
	  "/sys/class/canchar/canchar0/bitrate" },
	{ "running", before_bitrate, do_attribute, NULL, "/sys/class/canchar/canchar0/running" },
	{ "NODE_ADD", NULL, command_of, after_command, (void *)CANWIRE_CMD_NODE_ADD },
	COMMAND(NODE_DELETE), COMMAND(NODE_GET), COMMAND(BUS_GET), COMMAND(BUS_SET),
	COMMAND(CONNECT), COMMAND(BABBLE), COMMAND(INJECT), COMMAND(SOURCE_LOAD),
	COMMAND(SOURCE_START),
	{ "SOURCE_STOP", before_source_stop, command_of, after_command,
	  (void *)CANWIRE_CMD_SOURCE_STOP },
	{ "link up", before_link_up, do_link_up, after_command, NULL },
	{ "packet CAN", before_command, do_send, after_command, (void *)ETH_P_CAN },
	{ "packet CAN FD", before_command, do_send, after_command, (void *)ETH_P_CANFD },
	{ "packet CAN XL", before_command, do_send, after_command, (void *)0x000e },
};

/* ---------------------------------------------------------------- nth -- */

static int nth_file = -1;

static void set_nth(unsigned int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", nth);

	/* A failure that is still to come may be this write's. */
	for (int tries = 0; tries < 8 && pwrite(nth_file, text, len, 0) != len; tries++)
		;
}

/* Whether the failure came. */
static bool nth_came(void)
{
	char text[16] = "";

	if (pread(nth_file, text, sizeof(text) - 1, 0) <= 0)
		return false;
	return !atoi(text);
}

/* Answers the number of failures, or -1: they do not end, or a module is not loaded without one. */
static int fail_step(const struct step *step, const struct row *row)
{
	unsigned int nth, refused = 0, borne = 0;
	const struct request *request = row ? row->data : NULL;

	/* --only: a part of the calls' names. */
	if (only && !strstr(step->name, only))
		return 0;

	for (nth = 1; nth <= NTH_MAX; nth++) {
		bool came;
		long result;

		if (step->before)
			step->before(step);
		if (request) {
			draws_begin(&worker.draws, nth);
			fill_valid(&worker, worker.scratch, request->bytes, request->fields,
				   request->count);
		}
		set_nth(nth);
		result = step->call(step);
		came = nth_came();
		set_nth(0);
		if (step->after)
			step->after(step);
		if (!came) {
			printf("\"%s\" = { failures = %u, refused = %u, borne = %u, "
			       "without = %ld }\n", step->name, nth - 1, refused, borne, result);
			fflush(stdout);
			return step->call == do_load && result ? -1 : (int)nth - 1;
		}
		if (result < 0)
			refused++;
		else
			borne++;
	}
	printf("fuzz: %s: still failing after %u failures\n", step->name, NTH_MAX);
	return -1;
}

static bool fail_steps(const struct step *list, unsigned int count, int *total, int *failures)
{
	for (unsigned int i = 0; i < count; i++, ++*total) {
		int done = fail_step(&list[i], NULL);

		if (done < 0)
			return false;
		*failures += done;
	}
	return true;
}

int fail_each(uint64_t seed)
{
	const struct table *of_ioctls[] = { &canchar_table, &canprobe_table, &canbare_table };
	int total = 0, failures = 0, done;

	nth_file = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	if (nth_file < 0) {
		printf("fuzz: /proc/self/fail-nth: %s (needs a kernel with CONFIG_FAULT_INJECTION)\n",
		       strerror(errno));
		return 1;
	}
	worker.seed = seed;
	worker.exact = true;
	worker.scratch = mmap(NULL, SCRATCH_BYTES + 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	unbind_cards();
	if (!fail_steps(ROWS(loads), &total, &failures))
		return 1;
	bind_cards();
	if (!fail_steps(ROWS(steps), &total, &failures))
		return 1;
	for (unsigned int i = 0; i < 3; i++)
		for (unsigned int j = 0; j < of_ioctls[i]->count; j++) {
			const struct row *row = &of_ioctls[i]->rows[j];
			const struct step step = {
				row->name,
				!strcmp(row->name, "CANCHAR_SET_TIMING") ? before_timing :
				!strcmp(row->name, "CANPROBE_FLOOR") ? before_floor : before_request,
				do_request, after_request, row
			};

			if (strncmp(row->name, "CAN", 3))
				continue;
			done = fail_step(&step, row);
			if (done < 0)
				return 1;
			failures += done;
			total++;
		}
	printf("calls = %d\nfailures = %d\n", total, failures);
	return 0;
}
