/*
 * A gateway by read(2) and write(2) that executes DELAY no-operations between the two, for each frame.
 */
#include <linux/can.h>
#include <linux/can/raw.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define TEXT(number) #number
#define NOPS(number) ".rept " TEXT(number) "\n\tnop\n\t.endr"

static int bound(const char *name)
{
	struct sockaddr_can address = { .can_family = AF_CAN, .can_ifindex = if_nametoindex(name) };
	int node = socket(PF_CAN, SOCK_RAW, CAN_RAW);

	if (node < 0 || bind(node, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return node;
}

int main(int argc, char **argv)
{
	struct can_frame frame;
	int from, to;

	if (argc != 3)
		return 2;
	from = bound(argv[1]);
	to = bound(argv[2]);
	if (from < 0 || to < 0 || setsockopt(to, SOL_CAN_RAW, CAN_RAW_FILTER, NULL, 0) < 0)
		return 1;
	fputs("ready\n", stderr);
	while (read(from, &frame, sizeof(frame)) == sizeof(frame)) {
		__asm__ volatile(NOPS(DELAY));
		if (write(to, &frame, sizeof(frame)) != sizeof(frame))
			return 1;
	}
	return 1;
}
