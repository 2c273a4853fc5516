/*
 * Costs that are known beforehand: ROUNDS times each of LINES lines of a buffer in `walk`, and then as many writes of a port
 * in `write_port` and system calls in `call_kernel`, as ROUNDS says.
 */
#include <stdlib.h>
#ifdef __x86_64__
#include <sys/io.h>
#endif
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

#ifdef __x86_64__
static __attribute__((noinline)) void write_port(long rounds)
{
	for (long round = 0; round < rounds; round++)
		outb(0, UNUSED_PORT);
}
#endif

static __attribute__((noinline)) void call_kernel(long rounds)
{
	for (long round = 0; round < rounds; round++)
		syscall(SYS_getppid);
}

int main(int argc, char **argv)
{
	long lines, rounds;
	char *buffer;

	if (argc != 3)
		return 1;
	lines = atol(argv[1]);
	rounds = atol(argv[2]);
	buffer = aligned_alloc(4096, lines * LINE);
	for (long line = 0; line < lines; line++)
		buffer[line * LINE] = 1;
	usleep(300000); /* so that the profiler sees this program */
	walk(buffer, lines, rounds);
#ifdef __x86_64__
	if (ioperm(UNUSED_PORT, 1, 1) < 0)
		return 1;
	write_port(rounds);
#endif
	call_kernel(rounds);
	return 0;
}
