/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The analyzer: a plugin of QEMU that sees every instruction of the guest and costs the guest none.
 *
 * A program in the guest asks by marker instructions (no-operations with a number), and by files in
 * a folder that it shares with the plugin:
 *
 *   LOAD    read `request`: the functions of the kernel with their classes and marks, or `keep`
 *           for those of the LOAD before, and the address ranges of user programs. Translate all
 *           code anew; then write `ready`.
 *   OPEN    begin a window: count instructions by class and by function, and keep events.
 *   FRAME   an event of the program itself.
 *   CLOSE   end the window and write `result.N`; N counts the windows since LOAD.
 *   SEND    a driver outside the kernel begins to send a frame: an event.
 *
 * Whose instruction is it? The plugin follows calls and returns by the functions' addresses: a
 * block at a function's start is a call, a block inside a function further down the stack is a
 * return. An instruction belongs to the class of the innermost function that has one, so a shared
 * function counts for its caller. Each task has a stack; the address of the first push after a
 * switch tells which. It requires the virtual clock, where processors take turns.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cost.h"
#include "plugin.h"
#include "processor.h"
#include "qemu.h"

enum marker { LOAD = 1, OPEN, FRAME, CLOSE, SEND };
/* Classes, in the order of analyzer::account in the lab's sources; 0 is the caller's. */
enum { CALLERS, SYSTEM_CALL = 7, GATEWAY = 8, INSTRUMENT = 10, IDLE = 11, CLASSES };
/* Flags of functions. */
enum {
	ASIDE = 1,	/* not on behalf of the task: interrupts, soft interrupts */
	SWITCHES = 2,	/* its first push is on the stack of the task that begins to run */
	ENTERS = 4,	/* its first push is on the stack of the task that calls the kernel */
	FAULTS = 8,	/* handles a fault, after which an instruction may be repeated */
	BEGINS = 16,	/* a new task begins here */
	KERNEL_ENTRY = 32,	/* the processor gets here from a user program, or from anywhere by an interrupt */
	BREAKS_OFF = 64,	/* entered by a fault, or by what looks like one */
};
/* Marks of the plugin's own events. MARK_USER: the gateway's program runs for the first time since FRAME. */
enum { MARK_FRAME = 0, MARK_USER = 0xfffd, MARK_SEND, MARK_CLOCK };

#define PROCESSORS 64
#define FRAMES 96
#define STACK_BYTES 0x4000ull
#define EVENTS_MAX (1u << 18)
#define KERNEL 0x8000000000000000ull

struct function {
	uint64_t address;
	uint16_t mark;
	uint8_t class;
	uint8_t flags;
	uint64_t count;
	struct costs costs;
};

struct range {
	uint64_t start, end;
	uint8_t class;
};

/* A block of instructions that QEMU has translated. */
struct block {
	uint64_t address;
	uint64_t count;
	struct costs costs;
	int32_t function;	/* -1: of a user program, or unknown */
	uint32_t bytes;		/* its length, of the longest translation */
	uint8_t class;		/* of a user program */
	bool user, starts, halts;
	bool reads_clock;	/* its last instruction does, so QEMU's clock is exact after it */
};

struct frame {
	int32_t function;
	uint8_t class;
	bool aside;
};

struct task {
	uint64_t stack;
	struct frame frames[FRAMES];
	uint16_t depth;
	uint8_t owner;		/* the class of its user program; 0: unknown */
	bool partial;		/* it was in functions that `frames` does not have */
};

struct processor {
	struct task *task;
	struct task unknown;
	struct block *last;
	struct block *broken_off;	/* the one before a function with the flag BREAKS_OFF */
	struct costs costs;	/* since `last` began */
	uint8_t class;		/* of the instructions since `last` began */
	bool aside;		/* they are of an interrupt or a soft interrupt */
	uint8_t user;		/* the class of the last user program */
	uint16_t users;		/* the classes of all its user programs, as bits */
};

/* Since the window was opened. */
struct counts {
	uint64_t idle_ns;
	uint64_t aside;		/* instructions of interrupts and soft interrupts */
	uint64_t entries;	/* of functions of the kernel, without the instrument's */
	uint64_t classes[CLASSES];
	struct costs costs[CLASSES];
};

struct event {
	uint64_t time_ns;
	struct counts counts;
	uint32_t cpu, mark;
};

static qemu_plugin_id_t self;
static const char *folder;
static unsigned int shift;

static struct function *functions;
static size_t functions_count, functions_size;
static struct range *ranges;
static size_t ranges_count, ranges_size;
static bool loaded;

/* Blocks by their addresses, and tasks by their stacks: open addressing. */
#define BLOCKS (1u << 20)
#define TASKS 4096u
static struct block *blocks[BLOCKS];
static struct task *tasks[TASKS];

static struct processor processors[PROCESSORS];
static struct processor *running;
static bool counting;
static bool has_frames;		/* FRAME was met in this window */
static bool awaits_user;	/* for MARK_USER */
static unsigned int window;

static uint64_t aborted;	/* instructions that were counted and not executed */
static uint64_t seen;		/* executed() at the last block or mark */
static struct counts counts;
static uint64_t drift_ns, deepest, overflown, lost_blocks;
static uint64_t base_ns, base_count;
static bool based;		/* `base_ns` is exact */
static struct event *events;
static size_t events_count, events_size;

#if API == 1
static uint64_t counter;
#else
static qemu_plugin_u64 counter;
#endif

EXPORTED int qemu_plugin_version = API;

static uint64_t executed(void)
{
#if API == 1
	return counter - aborted;
#else
	return qemu_plugin_u64_sum(counter) - aborted;
#endif
}

static void count_instruction(struct qemu_plugin_insn *insn)
{
#if API == 1
	qemu_plugin_register_vcpu_insn_exec_inline(insn, ADD_U64, &counter, 1);
#else
	qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(insn, ADD_U64, counter, 1);
#endif
}

/* The first eight bytes of an instruction, filled with zeros. */
static uint64_t instruction_bytes(const struct qemu_plugin_insn *insn)
{
	size_t size = qemu_plugin_insn_size(insn);
	uint64_t bytes = 0;

	if (size > sizeof(bytes))
		size = sizeof(bytes);
#if API < 3
	memcpy(&bytes, qemu_plugin_insn_data(insn), size);
#else
	qemu_plugin_insn_data(insn, &bytes, size);
#endif
	return bytes;
}

/* Room for one more in an array of `count`. */
#define GROW(array, count, size) do { \
	if ((count) == (size)) { \
		(size) = (size) ? (size) * 2 : 1024; \
		(array) = realloc((array), (size) * sizeof(*(array))); \
	} \
} while (0)

/* Files appear complete: they are written under another name. */
static FILE *begin_file(const char *name)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/.%s", folder, name);
	return fopen(path, "w");
}

static void end_file(FILE *file, const char *name)
{
	char from[4096], to[4096];

	snprintf(from, sizeof(from), "%s/.%s", folder, name);
	snprintf(to, sizeof(to), "%s/%s", folder, name);
	if (fclose(file) == 0)
		rename(from, to);
}

static void report(const char *name, const char *text)
{
	FILE *file = begin_file(name);

	if (!file)
		return;
	fputs(text, file);
	end_file(file, name);
}

/* The last function at or before an address; -1: none. */
static int32_t function_at(uint64_t address)
{
	size_t low = 0, high = functions_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (functions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return (int32_t)low - 1;
}

static uint8_t user_class(uint64_t address)
{
	uint8_t others = INSTRUMENT;

	for (size_t i = 0; i < ranges_count; i++) {
		if (address >= ranges[i].start && address < ranges[i].end)
			return ranges[i].class;
		if (ranges[i].start == 0 && ranges[i].end == 0)
			others = ranges[i].class;
	}
	return others;
}

static size_t hash(uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull) >> 20;
}

/* NULL: there are too many. */
static struct block *block_at(uint64_t address)
{
	struct block *block;
	size_t at = hash(address), tries;

	for (tries = 0; tries < BLOCKS && blocks[at % BLOCKS]; tries++, at++)
		if (blocks[at % BLOCKS]->address == address)
			return blocks[at % BLOCKS];
	if (tries == BLOCKS)
		return NULL;
	block = blocks[at % BLOCKS] = calloc(1, sizeof(*block));
	block->address = address;
	block->user = address < KERNEL;
	block->function = block->user ? -1 : function_at(address);
	block->class = block->user ? user_class(address) : CALLERS;
	block->starts = block->function >= 0 && functions[block->function].address == address;
	return block;
}

static struct task *task_with(uint64_t stack)
{
	size_t at = hash(stack), tries;

	for (tries = 0; tries < TASKS && tasks[at % TASKS]; tries++, at++)
		if (tasks[at % TASKS]->stack == stack)
			return tasks[at % TASKS];
	if (tries == TASKS)
		return NULL;
	tasks[at % TASKS] = calloc(1, sizeof(struct task));
	tasks[at % TASKS]->stack = stack;
	tasks[at % TASKS]->partial = true;
	return tasks[at % TASKS];
}

static uint64_t time_ns(void)
{
	return base_ns + ((seen - base_count) << shift);
}

static void keep_event(unsigned int cpu, uint32_t mark)
{
	struct event *event;

	if (events_count == EVENTS_MAX) {
		overflown++;
		return;
	}
	GROW(events, events_count, events_size);
	event = &events[events_count++];
	event->time_ns = time_ns();
	event->counts = counts;
	event->cpu = cpu;
	event->mark = mark;
}

/* Gives the costs since the last block to the class and, unless it is the instrument's, to that block. */
static void commit_costs(void)
{
	const struct costs *costs = &running->costs;
	struct block *block = running->last;

	cost_add(&counts.costs[running->class], costs);
	if (running->class != INSTRUMENT) {
		cost_add(&block->costs, costs);
		if (block->function >= 0)
			cost_add(&functions[block->function].costs, costs);
	}
	running->costs = (struct costs){ 0 };
}

/* Gives the instructions since the last block to that block. */
static void commit(void)
{
	uint64_t now = executed(), since = now - seen;

	seen = now;
	if (!running || !running->last)
		return;
	if (cost_counted)
		commit_costs();
	counts.classes[running->class] += since;
	if (running->aside)
		counts.aside += since;
	if (running->class == INSTRUMENT)
		return;
	running->last->count += since;
	if (running->last->function >= 0)
		functions[running->last->function].count += since;
}

/*
 * After a halt the clock may have jumped, because no processor executed anything; otherwise it must
 * be where the instructions put it. It is older, and says nothing, after a halt that was none
 * because an interrupt was pending.
 */
static void compare_clocks(unsigned int cpu, bool halted)
{
	uint64_t now_ns = qemu_clock_ns(), expected_ns = time_ns();
	uint64_t behind_ns = expected_ns > now_ns ? expected_ns - now_ns : 0;
	uint64_t ahead_ns = now_ns > expected_ns ? now_ns - expected_ns : 0;

	if (halted && behind_ns)
		return;
	if (based && halted)
		counts.idle_ns += ahead_ns;
	else if (based)
		drift_ns += ahead_ns;
	if (based)
		drift_ns += behind_ns;
	base_ns = now_ns;
	base_count = seen;
	if (!based) {
		based = true;
		keep_event(cpu, MARK_CLOCK);
	}
}

static void push(struct task *task, int32_t function)
{
	const struct function *its = &functions[function];
	struct frame *below, *frame;

	if (task->depth == FRAMES)
		task->depth--;
	below = task->depth ? &task->frames[task->depth - 1] : NULL;
	frame = &task->frames[task->depth++];
	frame->function = function;
	frame->class = its->class != CALLERS ? its->class : below ? below->class : SYSTEM_CALL;
	/* An idle task that was first seen in an interrupt has its frames below those of that. */
	frame->aside = (its->flags & ASIDE) || (its->class != IDLE && below && below->aside);
	if (task->depth > deepest)
		deepest = task->depth;
}

/*
 * Whether the processor is of several and has run the instrument's programs only. Then its idle
 * task goes to sleep and wakes for the instrument, beside the frame's way on another processor.
 */
static bool idles_for_instrument(const struct processor *processor)
{
	const struct task *task = processor->task;
	uint16_t depth = task->depth;

	if (processor->users != 1u << INSTRUMENT || !processors[1].last)
		return false;
	while (depth && task->frames[depth - 1].class != IDLE)
		depth--;
	return depth;
}

/* Sets the class of what the processor executes now. */
static void classify(struct processor *processor)
{
	const struct task *task = processor->task;
	const struct frame *top;

	processor->aside = false;
	if (!task->depth) {
		processor->class = SYSTEM_CALL;
		return;
	}
	top = &task->frames[task->depth - 1];
	/* What a process that is neither the gateway nor the kernel asked for is its own. */
	processor->class = task->owner >= INSTRUMENT - 1 && !top->aside ? task->owner : top->class;
	if (!top->aside && idles_for_instrument(processor))
		processor->class = INSTRUMENT;
	processor->aside = top->aside;
}

/* Follows the processor into a block of the kernel. */
static void follow(struct processor *processor, const struct block *block)
{
	struct task *task = processor->task;
	const struct frame *top = task->depth ? &task->frames[task->depth - 1] : NULL;

	if (top && top->function == block->function)
		return;
	if (block->starts) {
		if (functions[block->function].flags & BEGINS) {
			task->depth = 0;
			task->owner = 0;
			task->partial = false;
		}
		push(task, block->function);
	} else {
		uint16_t depth = task->depth;

		while (depth && task->frames[depth - 1].function != block->function)
			depth--;
		if (depth) {
			task->depth = depth;
		} else {
			/* It returns further than the frames go. */
			if (task->partial && !(top && top->aside))
				task->depth = 0;
			push(task, block->function);
		}
	}
	classify(processor);
	counts.entries += block->starts && processor->class != INSTRUMENT;
}

/*
 * Whether the fault that is handled here broke off an instruction of that block: then it was counted, and will be
 * repeated. Otherwise the fault was that the next block is not in memory.
 */
static bool broke_off(const struct block *last)
{
	return last && processor_faulted_at() - last->address < last->bytes;
}

static void enter_block(unsigned int cpu, void *data)
{
	struct processor *processor = &processors[cpu % PROCESSORS];
	struct block *block = data;
	const struct function *function;
	uint8_t flags;

	if (!counting)
		return;
	function = block->function >= 0 ? &functions[block->function] : NULL;
	flags = block->starts ? function->flags : 0;
	if (flags & BREAKS_OFF)
		processor->broken_off = processor->last;
	if (flags & FAULTS)
		aborted += broke_off(processor->broken_off);
	commit();
	if (!(flags & BREAKS_OFF) && processor->last &&
	    (processor->last->halts || processor->last->reads_clock))
		compare_clocks(cpu, processor->last->halts);
	running = processor;
	processor->last = block;
	if (cost_counted) {
		cost_execute(cpu, block->address, block->bytes, &processor->costs);
		processor->costs.entries += (flags & KERNEL_ENTRY) != 0;
	}
	if (block->user) {
		processor->task->depth = 0;
		processor->task->partial = false;
		processor->user = block->class;
		processor->users |= 1u << block->class;
		processor->class = block->class;
		processor->aside = false;
		if (awaits_user && block->class == GATEWAY) {
			awaits_user = false;
			keep_event(cpu, MARK_USER);
		}
	} else if (function) {
		follow(processor, block);
	}
	if (block->starts && function->mark)
		keep_event(cpu, function->mark);
}

/* The first push of a function that runs on another task's stack than the block before it. */
static void stack_used(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct processor *processor = &processors[cpu % PROCESSORS];
	const struct function *function = data;
	struct task *task;

	(void)info;
	if (!counting)
		return;
	task = task_with(address & ~(STACK_BYTES - 1));
	if (!task) {
		overflown++;
		return;
	}
	if (function->flags & ENTERS) {
		task->owner = processor->user;
		task->depth = 0;
		task->partial = false;
	}
	if (task != processor->task || !task->depth) {
		processor->task = task;
		if (!task->depth)
			push(task, function - functions);
	}
	classify(processor);
}

/* An instruction reads or writes memory, or a register of a device that is where memory could be. */
static void accessed(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	struct costs *costs = &processors[cpu % PROCESSORS].costs;
	const struct qemu_plugin_hwaddr *place;

	(void)data;
	if (!counting)
		return;
	place = qemu_plugin_get_hwaddr(info, address);
	if (place && qemu_plugin_hwaddr_is_io(place))
		costs->registers++;
	else
		cost_access(cpu, place ? qemu_plugin_hwaddr_phys_addr(place) : address, costs);
}

static void port_accessed(unsigned int cpu, void *data)
{
	(void)data;
	processors[cpu % PROCESSORS].costs.registers++;
}

static void open_window(unsigned int cpu)
{
	for (size_t i = 0; i < functions_count; i++) {
		functions[i].count = 0;
		functions[i].costs = (struct costs){ 0 };
	}
	for (size_t i = 0; i < BLOCKS; i++) {
		if (!blocks[i])
			continue;
		blocks[i]->count = 0;
		blocks[i]->costs = (struct costs){ 0 };
	}
	for (size_t i = 0; i < PROCESSORS; i++) {
		processors[i] = (struct processor){ .user = INSTRUMENT, .class = SYSTEM_CALL };
		processors[i].task = &processors[i].unknown;
		processors[i].unknown.partial = true;
	}
	for (size_t i = 0; i < TASKS; i++) {
		free(tasks[i]);
		tasks[i] = NULL;
	}
	counts = (struct counts){ 0 };
	drift_ns = deepest = overflown = events_count = 0;
	has_frames = awaits_user = false;
	running = &processors[cpu % PROCESSORS];
	seen = base_count = executed();
	base_ns = qemu_clock_ns();
	based = false;
	counting = true;
	window++;
}

static void print_costs(FILE *file, const struct costs *costs)
{
	if (cost_counted)
		fprintf(file, " %lu %lu %lu %lu %lu", costs->code, costs->data, costs->memory, costs->registers,
			costs->entries);
}

static void print_counts(FILE *file, const struct counts *of)
{
	fprintf(file, " %lu %lu %lu", of->idle_ns, of->aside, of->entries);
	for (size_t i = 1; i < CLASSES; i++)
		fprintf(file, " %lu", of->classes[i]);
	for (size_t i = 1; i < CLASSES; i++)
		print_costs(file, &of->costs[i]);
	fputc('\n', file);
}

/* Instructions by address. */
static void print_place(FILE *file, char kind, uint64_t address, uint64_t count, const struct costs *costs)
{
	if (!count)
		return;
	fprintf(file, "%c %lx %lu", kind, address, count);
	print_costs(file, costs);
	fputc('\n', file);
}

static void close_window(void)
{
	char name[32];
	FILE *file;

	if (!counting)
		return;
	commit();
	counting = false;
	snprintf(name, sizeof(name), "result.%u", window);
	file = begin_file(name);
	if (!file)
		return;
	fprintf(file, "canter analyzer 3\ndrift %lu\noverflow %lu\ndepth %lu\nshift %u\n", drift_ns,
		overflown + lost_blocks, deepest, shift);
	fprintf(file, "end %lu", time_ns());
	print_counts(file, &counts);
	for (size_t i = 0; i < events_count; i++) {
		const struct event *event = &events[i];

		fprintf(file, "e %u %u %lu", event->mark, event->cpu, event->time_ns);
		print_counts(file, &event->counts);
	}
	for (size_t i = 0; i < functions_count; i++)
		print_place(file, 'f', functions[i].address, functions[i].count, &functions[i].costs);
	for (size_t i = 0; i < BLOCKS; i++)
		if (blocks[i] && blocks[i]->function < 0)
			print_place(file, 'u', blocks[i]->address, blocks[i]->count, &blocks[i]->costs);
	end_file(file, name);
}

static bool read_request(void)
{
	char path[4096], line[256], kind;
	size_t functions_before = functions_count;
	FILE *file;

	snprintf(path, sizeof(path), "%s/request", folder);
	file = fopen(path, "r");
	if (!file)
		return false;
	functions_count = ranges_count = 0;
	while (fgets(line, sizeof(line), file)) {
		unsigned long first, second;
		unsigned int class, flags, mark;

		if (sscanf(line, "f %lx %u %u %u", &first, &class, &flags, &mark) == 4 && class < CLASSES) {
			GROW(functions, functions_count, functions_size);
			functions[functions_count++] = (struct function){
				.address = first, .class = class, .flags = flags, .mark = mark,
			};
		} else if (sscanf(line, "u %lx %lx %u", &first, &second, &class) == 3 && class < CLASSES) {
			GROW(ranges, ranges_count, ranges_size);
			ranges[ranges_count++] = (struct range){ first, second, class };
		} else if (!strcmp(line, "keep\n")) {
			functions_count = functions_before;
		} else if (sscanf(line, "end%c", &kind) == 1) {
			fclose(file);
			return true;
		}
	}
	fclose(file);
	return false;
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);

/* QEMU has forgotten all translated code, and with it all uses of the old blocks. */
static void forgotten(qemu_plugin_id_t id)
{
	counting = false;
	running = NULL;
	for (size_t i = 0; i < BLOCKS; i++) {
		free(blocks[i]);
		blocks[i] = NULL;
	}
	window = lost_blocks = 0;
	loaded = read_request();
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	report(loaded ? "ready" : "failed", "the request cannot be read\n");
}

static void marked(unsigned int cpu, void *data)
{
	switch ((enum marker)(uintptr_t)data) {
	case LOAD:
		qemu_plugin_reset(self, forgotten);
		break;
	case OPEN:
		if (loaded)
			open_window(cpu);
		break;
	case FRAME:
		if (counting) {
			commit();
			keep_event(cpu, MARK_FRAME);
			has_frames = awaits_user = true;
		}
		break;
	case CLOSE:
		close_window();
		break;
	case SEND:
		if (counting && has_frames) {
			commit();
			keep_event(cpu, MARK_SEND);
		}
		break;
	}
}

static void count_costs(struct qemu_plugin_insn *insn, bool accesses_port)
{
	qemu_plugin_register_vcpu_mem_cb(insn, accessed, NO_REGISTERS, MEMORY_ALL, NULL);
	if (accesses_port)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, port_accessed, NO_REGISTERS, NULL);
}

/* A block is about to be translated. */
static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);
	struct block *block = NULL;
	bool pushed = false;

	(void)id;
	if (loaded) {
		block = block_at(qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0)));
		if (block)
			qemu_plugin_register_vcpu_tb_exec_cb(tb, enter_block, NO_REGISTERS, block);
		else
			lost_blocks++;
	}
	if (block) {
		const struct qemu_plugin_insn *last = qemu_plugin_tb_get_insn(tb, count - 1);
		uint64_t end = qemu_plugin_insn_vaddr(last) + qemu_plugin_insn_size(last);

		if (block->bytes < end - block->address)
			block->bytes = end - block->address;
	}
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		struct instruction is = processor_decode(instruction_bytes(insn));

		if (is.marker)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, marked, NO_REGISTERS,
					(void *)(uintptr_t)is.marker);
		if (!block)
			continue;
		count_instruction(insn);
		if (cost_counted)
			count_costs(insn, is.accesses_port);
		block->halts |= is.halts;
		block->reads_clock = is.reads_clock;
		if (block->function >= 0 && !pushed && is.pushes &&
		    (functions[block->function].flags & (SWITCHES | ENTERS)) &&
		    qemu_plugin_insn_vaddr(insn) < functions[block->function].address + 64) {
			pushed = true;
			qemu_plugin_register_vcpu_mem_cb(insn, stack_used, NO_REGISTERS, MEMORY_WRITES,
					&functions[block->function]);
		}
	}
}

EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info_t *info, int argc,
				 char **argv)
{
	(void)info;
	self = id;
	for (int i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "folder=", 7))
			folder = strdup(argv[i] + 7);
		else if (!strncmp(argv[i], "shift=", 6))
			shift = atoi(argv[i] + 6);
		else if (!cost_configure(argv[i]))
			return 1;
	}
	if (!folder || !qemu_found())
		return 1;
#if API > 1
	counter = (qemu_plugin_u64){ qemu_plugin_scoreboard_new(sizeof(uint64_t)), 0 };
#endif
	qemu_plugin_register_vcpu_tb_trans_cb(id, translate);
	return 0;
}
