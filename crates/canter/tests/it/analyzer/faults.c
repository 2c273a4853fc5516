/*
 * Windows of the analyzer in which ROUNDS page faults happen, each at another place of a block of instructions; prints how far
 * its count and QEMU's clock differ, a number for each kind of fault. FOLDER is the one that is shared with the analyzer.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 10
#define PAGE 4096
#define MARK(number) "nopl 0x43414e00 + " #number "(%%rax)\n\t"

/* A function in a page of its own, which is dropped before each call. */
__asm__(".balign 4096\n"
	"far_away: mov $1, %eax\n\tret\n"
	".balign 4096\n"
	"next_page: nop\n");
extern char far_away[], here[];

static char *page;	/* anonymous memory, dropped before each access */
static void **place;	/* shared memory that keeps an address of code, dropped before each access */
static int zero;

/* A block with a mark within ends with a call of what is not in memory. */
static void fetched(void)
{
	__asm__ volatile("nop\n\t" MARK(3) "call far_away" ::: "rax", "memory");
}

/* The block is broken off behind its mark. */
static void loaded(void)
{
	__asm__ volatile("nop\n\t" MARK(3) "movb (%0), %%al" ::"r"(page) : "rax", "memory");
}

/* The last instruction of the block is broken off: one that repeats itself ends a block. */
static void copied(void)
{
	char to[64];
	char *from = page, *into = to;
	long count = sizeof(to);

	__asm__ volatile("rep movsb" : "+S"(from), "+D"(into), "+c"(count)::"memory");
}

/* So is another one here. */
static void through_memory(void)
{
	__asm__ volatile("nop\n\t" MARK(3) "jmp *(%0)\nhere:" ::"r"(place) : "memory");
}

static void by_the_kernel(void)
{
	if (read(zero, page, 64) != 64)
		exit(1);
}

/* Waits for a file of the analyzer and prints the line that begins like this. */
static void wait_for(const char *name, const char *wanted)
{
	char line[256];
	FILE *file;

	while (!(file = fopen(name, "r")))
		usleep(1000);
	while (fgets(line, sizeof(line), file))
		if (*wanted && strncmp(line, wanted, strlen(wanted)) == 0)
			fputs(line, stdout);
	fclose(file);
}

int main(int argc, char **argv)
{
	void (*const kinds[])(void) = { fetched, loaded, copied, through_memory, by_the_kernel };
	FILE *request;

	if (argc != 2 || chdir(argv[1]) < 0 || !(request = fopen("request", "w")))
		return 1;
	fputs("keep\nu 0 0 8\nend\n", request);
	fclose(request);
	unlink("ready");
	zero = open("/dev/zero", O_RDONLY);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	place = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*place = here;
	__asm__ volatile(MARK(1) ::: "memory");
	wait_for("ready", "");
	for (unsigned int kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++) {
		char name[32];

		__asm__ volatile(MARK(2) ::: "memory");
		__builtin_ia32_rdtsc();
		usleep(1);
		for (int round = 0; round < ROUNDS; round++) {
			madvise(far_away, PAGE, MADV_DONTNEED);
			madvise(page, PAGE, MADV_DONTNEED);
			madvise(place, PAGE, MADV_DONTNEED);
			kinds[kind]();
			__builtin_ia32_rdtsc();
		}
		usleep(1);
		__asm__ volatile(MARK(4) ::: "memory");
		snprintf(name, sizeof(name), "result.%u", kind + 1);
		wait_for(name, "drift ");
		unlink(name);
	}
	return 0;
}
