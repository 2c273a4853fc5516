/*
 * Costs that are known beforehand: ROUNDS times each of LINES lines of a buffer in `walk`, and then as many writes of a port
 * in `write_port` and system calls in `call_kernel`, as ROUNDS says.
 */
#include <stdlib.h>
#include <sys/io.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE 64
#define UNUSED_PORT 0x80

static __attribute__((noinline)) void walk(volatile char *buffer, long lines, long rounds)
{
	for (long round = 0; round < rounds; round++)
		for (long line = 0; line < lines; line++)
			(void)buffer[line * LINE];
}

static __attribute__((noinline)) void write_port(long rounds)
{
	for (long round = 0; round < rounds; round++)
		outb(0, UNUSED_PORT);
}

static __attribute__((noinline)) void call_kernel(long rounds)
{
	for (long round = 0; round < rounds; round++)
		syscall(SYS_getppid);
}

int main(int argc, char **argv)
{
	long lines, rounds;
	char *buffer;

	if (argc != 3 || ioperm(UNUSED_PORT, 1, 1) < 0)
		return 1;
	lines = atol(argv[1]);
	rounds = atol(argv[2]);
	buffer = aligned_alloc(4096, lines * LINE);
	for (long line = 0; line < lines; line++)
		buffer[line * LINE] = 1;
	usleep(300000); /* so that the profiler sees this program */
	walk(buffer, lines, rounds);
	write_port(rounds);
	call_kernel(rounds);
	return 0;
}
