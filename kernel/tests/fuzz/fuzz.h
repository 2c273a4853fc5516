/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fuzzer of the kernel modules. A call is one system call with drawn arguments; a row of a
 * table names it. Each call has a seed of its own, from which all its values are drawn, so that it
 * can be made again whatever the calls before it returned.
 */
#ifndef CANTER_FUZZ_H
#define CANTER_FUZZ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Two that make calls, the second in a network namespace of its own; the last disturbs. */
#define CALLERS		2
#define PROCESSES	(CALLERS + 1)
#define THREADS		3
#define CORPUS		1024
#define TABLES		9
#define ROWS_MAX	32
#define ERRORS		134
#define MAPS_MAX	4
#define SLOTS		8
#define SCRATCH_BYTES	(1 << 16)
/* Calls of a thread that a report has one by one. */
#define LAST		16

/* Draws of a call; draw number altered_at has another value than the seed gives. */
struct draws {
	uint64_t seed;
	uint64_t state;
	uint64_t altered_to;
	uint32_t altered_at;
	uint32_t drawn;
};

struct map {
	char *at;
	size_t bytes;
};

/* A thread that makes calls. In shared memory, so that the watchdog sees it. */
struct worker {
	pid_t process, thread;
	uint64_t seed;
	_Atomic uint64_t calls;		/* made since the start, over all lives */
	_Atomic(const struct row *) now;
	struct draws draws;
	_Atomic uint64_t number;	/* of the call in its round */
	struct draws last[LAST];	/* call n at n % LAST */
	struct map maps[MAPS_MAX];
	char *scratch;			/* SCRATCH_BYTES below 4 GiB, then a page that cannot be accessed */
	uint64_t *coverage;
	bool quits;
	bool exact;			/* never what is seldom: one_in() is false */
};

struct row {
	const char *name;
	unsigned int weight;
	/* The result of the system call, or -errno. */
	long (*call)(struct worker *worker, const struct row *row);
	const void *data;
};

struct table {
	const char *name;
	const struct row *rows;
	unsigned int count;
};

#define ROWS(array) (array), sizeof(array) / sizeof(*(array))

/* The kinds of files that threads of a process share. */
enum kind { CANCHAR, CANPROBE, CANBARE, TAP, EPOLL, PACKET, RAW, KINDS };

/* What --slower does with a value: bit rates are divided, prescalers of a clock multiplied. */
enum speed { NO_SPEED, BIT_RATE, PRESCALER };

/* An interval, a list, or a pointer: what a field of a structure may be. */
struct field {
	uint16_t at, bytes;
	uint16_t count;
	enum speed speed;
	/* Fills what the field points to. */
	void (*fill)(struct worker *worker, void *buffer, size_t bytes);
	const uint64_t *values;		/* the first: one with which the call does something */
};

#define VALUES_OF(speed, ...) sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), speed, NULL, \
	(const uint64_t[]){ __VA_ARGS__ }
#define VALUES(...) VALUES_OF(NO_SPEED, __VA_ARGS__)
#define FIELD_OF(speed, type, member, ...) \
	{ offsetof(type, member), sizeof(((type *)NULL)->member), VALUES_OF(speed, __VA_ARGS__) }
#define FIELD(type, member, ...) FIELD_OF(NO_SPEED, type, member, __VA_ARGS__)
#define POINTER(type, member, fill) \
	{ offsetof(type, member), sizeof(((type *)NULL)->member), 0, NO_SPEED, fill, NULL }

struct request {
	unsigned long number;
	enum kind kind;
	uint16_t bytes, count;
	const struct field *fields;
};

#define FIELDS(array) sizeof(array) / sizeof(*(array)), (array)

uint64_t now_us(void);
/* The kernel's tools see nothing of what is overwritten inside of a structure; what comes out shows it. */
void found_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* draw.c */
uint64_t mix(uint64_t a, uint64_t b);
void draws_begin(struct draws *draws, uint64_t seed);
uint64_t draw(struct worker *worker);
/* 0...below - 1 */
uint64_t below(struct worker *worker, uint64_t below);
bool one_in(struct worker *worker, uint64_t chances);
uint64_t any_value(struct worker *worker, unsigned int bytes);
uint64_t value_of(struct worker *worker, const struct field *field);
/* The first one. */
uint64_t valid_value(const struct field *field);
void fill_bytes(struct worker *worker, void *buffer, size_t bytes);
void fill_structure(struct worker *worker, void *to, size_t bytes, const struct field *fields,
		    unsigned int count);
/* The same with the first value of each field. */
void fill_valid(struct worker *worker, void *to, size_t bytes, const struct field *fields,
		unsigned int count);
/* A place for so many bytes: mostly a good one. */
void *place_for(struct worker *worker, size_t bytes);
void fill_can_frame(struct worker *worker, void *buffer, size_t bytes);

/* files.c */
int slot(struct worker *worker, enum kind kind);
long keep(struct worker *worker, enum kind kind, int fd);
long close_one(struct worker *worker, const struct row *row);
void close_all(void);
long made(long result);
long call_request(struct worker *worker, const struct row *row);
long request_by(struct worker *worker, const struct request *request,
		long (*call)(int fd, unsigned long number, void *at));
long poll_one(struct worker *worker, const struct row *row);
long epoll_one(struct worker *worker, const struct row *row);
long unmap_one(struct worker *worker, const struct row *row);
long map_file(struct worker *worker, int fd, size_t bytes, int access, off_t offset);
long write_text(const char *path, const char *text);

/* tx_ring.c */
long send_by_ring(struct worker *worker, const struct row *row);

/* netlink.c: a message under construction, and one that is sent. */
struct message {
	struct worker *worker;
	char *bytes;
	unsigned int len;
};

void message_begin(struct message *message, struct worker *worker, uint16_t type, uint16_t flags);
void *message_put(struct message *message, const void *data, unsigned int bytes);
void message_attribute(struct message *message, uint16_t type, const void *data, unsigned int bytes);
unsigned int message_nest(struct message *message, uint16_t type);
void message_nest_end(struct message *message, unsigned int at);
/* Sends and reads the answer; 0 or the error in it. */
long message_send(struct message *message, int protocol);
int family_id(void);
const char *node_name(struct worker *worker);
int any_interface(struct worker *worker);
int any_node(struct worker *worker);

/* kcov.c */
void coverage_open(struct worker *worker);
void coverage_begin(struct worker *worker);
/* Whether the call reached code of the modules that no call before it had reached. */
bool coverage_is_new(struct worker *worker);
unsigned int coverage_count(void);
void coverage_share(void);

/* cards.c */
unsigned int cards(void);
const char *card(unsigned int number);
long bind_card(const char *address, const char *driver);
/* Each card to the driver that it usually has, or to none. */
void bind_cards(void);
void unbind_cards(void);
/* The first card that usually has this driver. */
const char *card_of(const char *driver);

struct count {
	_Atomic uint64_t calls, took_us;
	_Atomic uint32_t errors[ERRORS];	/* by errno */
};

/* In memory that all processes share. */
extern struct shared {
	atomic_bool stop;
	bool has_compat;
	/* What no driver may show: the first that was seen. */
	atomic_bool wrong;
	char what[160];
	struct worker workers[PROCESSES][THREADS];
	struct count counts[TABLES][ROWS_MAX];
	atomic_uint corpus_count;
	struct draws corpus[CORPUS];
} *shared;

/* --failslab: callers' allocations fail now and then. */
extern bool failslab;

/* --slower: bit rates are divided by this, so that a slow machine has time for programs beside the frames. */
extern uint32_t slower;
uint64_t slowed_rate(uint64_t bitrate);

/* With the patches of kernel/upstream: debug_kernel.sh names its kernels so. */
extern bool kernel_is_mended;

/* sockets.c: PACKET_QDISC_BYPASS for half of the packet sockets. */
void bypass_queue(struct worker *worker, int fd);
/* --only: the names of tables; NULL: all. */
extern const char *only;

/* process.c: makes calls until shared->stop, and ends. */
void run_process(unsigned int process) __attribute__((noreturn));

/* compat.c */
bool compat_is_there(void);
bool compat_is_sound(void);

/* replay.c */
bool replay_read(const char *word);
bool replay_is_on(void);
unsigned int replay_process(void);
/* The draws of the next call; false: there is none. */
bool replay_next(struct worker *worker, uint64_t number);
void replay_print(const struct worker *worker, const struct table *table, const struct row *row);
void replay_print_result(const struct worker *worker, long result);
void replay_print_words(unsigned int process, const struct worker *worker);

/* nth.c */
int fail_each(uint64_t seed);

/* The tables. */
/* canprobe: a plan of one frame. */
extern const struct request probe_START;

extern const struct table canchar_table, canprobe_table, canbare_table, canwire_table, tap_table,
	link_table, socket_table, compat_table, disturb_table;
extern const struct table *const tables[];
extern const unsigned int tables_count;

/* For nth.c: calls that do something. */
long netlink_command(struct worker *worker, uint8_t command);
long link_up(struct worker *worker, const char *name, uint32_t bitrate, bool fd);
long link_down(struct worker *worker, const char *name);
long load_module(const char *name, const char *parameters);
long unload_module(const char *name);

extern const char *modules_folder;
extern atomic_int fds[KINDS][SLOTS];

#endif
