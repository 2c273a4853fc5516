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

static char *page;	/* anonymous memory, dropped before each access */
static int zero;

/* A block with a mark within ends with a call of what is not in memory: `far_away` is in a page of its own. */
static void fetched(void);
/* The block is broken off behind its mark. */
static void loaded(void);
/* The last instruction of the block is broken off. */
static void loaded_last(void);
/* An instruction is broken off that reads more than once. */
static void copied(void);

#ifdef __x86_64__
#define MARK(number) "nopl 0x43414e00 + " #number "(%%rax)\n\t"
#define READ_CLOCK "rdtsc"
#define CLOCK_REGISTERS "rax", "rdx"

__asm__(".balign 4096\n"
	"far_away: mov $1, %eax\n\tret\n"
	".balign 4096\n"
	"next_page: nop\n");
extern char here[];

static void **place;	/* shared memory that keeps an address of code, dropped before each access */

static void drop_place(void)
{
	if (!place) {
		place = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		*place = here;
	}
	madvise(place, PAGE, MADV_DONTNEED);
}

static void fetched(void)
{
	__asm__ volatile("nop\n\t" MARK(3) "call far_away" ::: "rax", "memory");
}

static void loaded(void)
{
	__asm__ volatile("nop\n\t" MARK(3) "movb (%0), %%al" ::"r"(page) : "rax", "memory");
}

static void loaded_last(void)
{
	__asm__ volatile("nop\n\t" MARK(3) "jmp *(%0)\nhere:" ::"r"(place) : "memory");
}

/* An instruction that repeats itself ends a block. */
static void copied(void)
{
	char to[64];
	char *from = page, *into = to;
	long count = sizeof(to);

	__asm__ volatile("rep movsb" : "+S"(from), "+D"(into), "+c"(count)::"memory");
}
#else
#define MARK(number) "hint #(112 + " #number ")\n\t"
#define READ_CLOCK "isb\n\tmrs x0, cntvct_el0"
#define CLOCK_REGISTERS "x0"

/* `load_last` loads at the end of a page, and so of a block. */
__asm__(".balign 4096\n"
	"far_away: mov w0, #1\n\tret\n"
	".balign 4096\n"
	".skip 4084\n"
	"load_last: nop\n\t" MARK(3) "ldrb w0, [x0]\n"
	"ret\n");

/* Nothing jumps through memory here. */
static void drop_place(void)
{
}

static void fetched(void)
{
	__asm__ volatile("nop\n\t" MARK(3) "bl far_away" ::: "x0", "x30", "memory");
}

static void loaded(void)
{
	__asm__ volatile("nop\n\t" MARK(3) "ldrb w0, [%0]" ::"r"(page) : "x0", "memory");
}

static void loaded_last(void)
{
	register char *from __asm__("x0") = page;

	__asm__ volatile("bl load_last" : "+r"(from)::"x30", "memory");
}

/* Both words of a pair, the second of which is in a page that is not there. */
static void copied(void)
{
	__asm__ volatile("nop\n\t" MARK(3) "ldp x0, x1, [%0, #-8]" ::"r"(page) : "x0", "x1", "memory");
}
#endif

extern char far_away[];

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

/* The second of two pages; the first one stays in memory. */
static char *second_page(void)
{
	char *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*pages = 1;
	return pages + PAGE;
}

int main(int argc, char **argv)
{
	void (*const kinds[])(void) = { fetched, loaded, copied, loaded_last, by_the_kernel };
	FILE *request;

	if (argc != 2 || chdir(argv[1]) < 0 || !(request = fopen("request", "w")))
		return 1;
	fputs("keep\nu 0 0 8\nend\n", request);
	fclose(request);
	unlink("ready");
	zero = open("/dev/zero", O_RDONLY);
	page = second_page();
	drop_place();
	__asm__ volatile(MARK(1) ::: "memory");
	wait_for("ready", "");
	for (unsigned int kind = 0; kind < sizeof(kinds) / sizeof(*kinds); kind++) {
		char name[32];

		__asm__ volatile(MARK(2) ::: "memory");
		__asm__ volatile(READ_CLOCK ::: CLOCK_REGISTERS);
		usleep(1);
		for (int round = 0; round < ROUNDS; round++) {
			madvise(far_away, PAGE, MADV_DONTNEED);
			madvise(page, PAGE, MADV_DONTNEED);
			drop_place();
			kinds[kind]();
			__asm__ volatile(READ_CLOCK ::: CLOCK_REGISTERS);
		}
		usleep(1);
		__asm__ volatile(MARK(4) ::: "memory");
		snprintf(name, sizeof(name), "result.%u", kind + 1);
		wait_for(name, "drift ");
		unlink(name);
	}
	return 0;
}
