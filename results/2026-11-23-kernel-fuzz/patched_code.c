// SPDX-License-Identifier: GPL-2.0-only
/*
 * patched_code: makes the kernel change code that another processor executes. It writes 1 and 0 in turn to a file
 * that switches a tracepoint or a static branch, on processor 1, while processor 0 takes the interrupts of a CAN card.
 *
 *	patched_code SECONDS FILE
 *
 * As root, can0 up. A correct machine prints the number of switches; see README.md for the other kind.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <linux/can.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int fail(const char *what)
{
	perror(what);
	return 2;
}

static void run_on(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		exit(fail("sched_setaffinity"));
}

/* Every interrupt line that can be moved. */
static void interrupts_on_processor_0(void)
{
	glob_t found;

	if (glob("/proc/irq/*/smp_affinity", 0, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		int fd = open(found.gl_pathv[i], O_WRONLY);

		if (fd < 0)
			continue;
		(void)!write(fd, "1", 1);
		close(fd);
	}
	globfree(&found);
}

/* An interrupt for each frame. write() sleeps until the frame before it has left. */
static void send_frames(void)
{
	struct sockaddr_can at = { .can_family = AF_CAN, .can_ifindex = if_nametoindex("can0") };
	struct can_frame frame = { .can_id = 0x123, .len = 1 };
	int fd = socket(AF_CAN, SOCK_RAW, CAN_RAW), small = 1;

	run_on(0);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	if (bind(fd, (void *)&at, sizeof(at)))
		exit(fail("can0"));
	for (;;) {
		(void)!write(fd, &frame, sizeof(frame));
		usleep(100);	/* so that processor 0 answers processor 1 */
	}
}

int main(int count, char **words)
{
	unsigned long switches = 0;
	int fd, seconds;
	pid_t sender;
	time_t began;

	if (count != 3)
		return 2;
	seconds = atoi(words[1]);
	fd = open(words[2], O_WRONLY);
	if (fd < 0)
		return fail(words[2]);
	interrupts_on_processor_0();
	sender = fork();
	if (!sender)
		send_frames();
	run_on(1);
	for (began = time(NULL); time(NULL) - began < seconds; switches++)
		if (pwrite(fd, switches & 1 ? "0" : "1", 1, 0) != 1)
			return fail(words[2]);
	kill(sender, SIGKILL);
	wait(NULL);
	printf("%lu switches in %d s\n", switches, seconds);
	return 0;
}
