/* SPDX-License-Identifier: MIT */
/*
 * A QEMU plugin that counts the instructions of a machine by kernel activity.
 *
 *     -plugin profile.so,map=System.map,out=FILE
 *
 * QEMU executes blocks of instructions. The address of a block gives its function, and whether the
 * function begins there: it was then called, or an interrupt arrived. Any other change of function is a
 * return. Calls can thus be followed without reading the machine's stack, and a block counts for the
 * innermost active function of those below. The plugin takes no machine time: the machine's clock is its
 * instruction count.
 *
 * Counting begins with the first segment that TCP sends and ends when results are copied to the host,
 * which takes a varying time. The output covers everything up to the last packet that arrived.
 *
 * A FILE without a path is made in TMPDIR: elsewhere a confined emulator cannot write.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The part of QEMU's plugin API, version 1, that is used; most distributions lack the header. */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
enum { NO_REGISTERS };
int qemu_plugin_version = 1;
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
					   void (*)(qemu_plugin_id_t,
						    struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *,
					  void (*)(unsigned int, void *), int, void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t,
				    void (*)(qemu_plugin_id_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
int qemu_plugin_install(qemu_plugin_id_t, const void *, int, char **);

enum activity {
	OTHER,
	IDLE,
	PROGRAM,
	CALL,
	SWITCH,
	INTERRUPT,
	LINE,
	WRITE,
	READ,
	SEND_SEGMENT,
	SEND_ACK,
	RECEIVE, /* the kind is known at its end */
	RECEIVE_SEGMENT,
	RECEIVE_ACK,
	ACTIVITIES
};

static const char *const names[ACTIVITIES] = {
	"other",     "idle",    "program",         "call",        "switch",
	"interrupt", "line",    "write",           "read",        "send_segment",
	"send_ack",  "backlog", "receive_segment", "receive_ack",
};

#define SOFTIRQS "handle_softirqs"

/* Activities that begin with a call of a function. */
static const struct {
	const char *function;
	enum activity activity;
} marks[] = {
	{ "do_idle", IDLE },
	{ "entry_SYSCALL_64", CALL }, /* x86 */
	{ "handle_sys", CALL },       /* MIPS */
	{ "handle_ri_rdhwr", CALL },  /* what a program asks for its own storage */
	{ "__schedule", SWITCH },
	{ "asm_sysvec_apic_timer_interrupt", INTERRUPT }, /* x86 */
	{ "asm_common_interrupt", INTERRUPT },
	{ "handle_int", INTERRUPT }, /* MIPS */
	{ "except_vec_vi_handler", INTERRUPT },
	{ SOFTIRQS, INTERRUPT },
	{ "net_tx_action", LINE },
	{ "net_rx_action", LINE },
	{ "netem_dequeue", LINE },
	{ "veth_xmit", LINE },
	{ "tcp_sendmsg", WRITE },
	{ "tcp_recvmsg", READ },
	{ "tcp_write_xmit", SEND_SEGMENT },
	{ "__tcp_send_ack", SEND_ACK },
	{ "tcp_send_ack", SEND_ACK },
	{ "tcp_v4_rcv", RECEIVE },
	{ "tcp_v4_do_rcv", RECEIVE }, /* from a socket's backlog */
};

/* After an interrupt, execution may continue anywhere, even at the start of a function. */
enum { LEAVES = 4 };
static const char *const leaves[LEAVES] = {
	"restore_regs_and_return_to_kernel", "native_irq_return_iret", /* x86 */
	"restore_all", "restore_partial",                              /* MIPS */
};

/* Counted calls; the first two classify a packet. */
enum { IS_ACK, IS_SEGMENT, COUNTED = 11 };
static const char *const counted[COUNTED] = {
	"tcp_ack",         "tcp_event_data_recv", "tcp_sendmsg",
	"tcp_recvmsg",     "do_epoll_wait",       "__schedule",
	"handle_softirqs", "hrtimer_interrupt",   "net_rx_action",
	"veth_xmit",       "__tcp_transmit_skb",
};

struct function {
	uint64_t address;
	char *name;
	int mark, count; /* -1: none */
	bool leaves, hands_over;
};

struct block {
	const struct function *function; /* NULL: not of the kernel */
	unsigned int instructions;
	bool begins;
	bool vector; /* of interrupts and exceptions; MIPS makes them when it boots */
};

struct frame {
	const struct function *function;
	enum activity activity;
	int unit; /* the frame in which this packet began to be received; -1: none */
	/* of a unit */
	uint64_t instructions;
	bool is_ack, is_segment;
};

struct totals {
	uint64_t instructions[ACTIVITIES], times[ACTIVITIES], calls[COUNTED];
};

#define DEPTH_MOST 256

static struct function *functions;
static size_t functions_count;
static uint64_t end; /* of the kernel */
static struct frame stack[DEPTH_MOST];
static int depth;
static bool counting, ended;
static struct totals now, kept;
static const char *out;

static void over(const struct frame *f)
{
	enum activity found = RECEIVE;

	if (f->is_segment)
		found = RECEIVE_SEGMENT;
	else if (f->is_ack)
		found = RECEIVE_ACK;
	now.instructions[found] += f->instructions;
	now.times[found]++;
	if (!ended)
		kept = now;
}

static void pop(void)
{
	depth--;
	if (stack[depth].unit == depth)
		over(&stack[depth]);
}

static void push(const struct function *f)
{
	struct frame frame = { .function = f, .activity = OTHER, .unit = -1 };
	const struct frame *top = depth ? &stack[depth - 1] : NULL;

	if (depth == DEPTH_MOST)
		while (depth)
			pop();
	top = depth ? &stack[depth - 1] : NULL;
	if (f && f->mark >= 0) {
		frame.activity = marks[f->mark].activity;
		if (frame.activity == RECEIVE)
			frame.unit =
				top && top->activity == RECEIVE ? top->unit : depth;
		else if (!top || top->activity != frame.activity)
			now.times[frame.activity]++;
	} else if (top) {
		frame.activity = top->activity;
		frame.unit = top->unit;
	}
	stack[depth++] = frame;
}

/* An interrupt begins here; softirqs also run without one. */
static bool interrupts(const struct function *f)
{
	return f->mark >= 0 && marks[f->mark].activity == INTERRUPT &&
	       strcmp(f->name, SOFTIRQS);
}

/* Interrupted code continues only after the interrupt. */
static bool under_way(const struct function *f)
{
	int i;

	for (i = depth - 1; i >= 0; i--) {
		if (stack[i].function == f)
			return true;
		if (interrupts(stack[i].function))
			return false;
	}
	return false;
}

static void called(const struct function *f)
{
	int i = depth;

	/* A repeated assembler label: otherwise a loop would fill the stack. */
	while (i && f->mark < 0 && stack[i - 1].function != f &&
	       stack[i - 1].function->mark < 0)
		i--;
	if (i && stack[i - 1].function == f)
		while (depth > i)
			pop();
	else
		push(f);
	if (f->mark >= 0 && marks[f->mark].activity == SEND_SEGMENT)
		counting = !ended;
	if (f->hands_over)
		ended = true;
	if (f->count < 0)
		return;
	now.calls[f->count]++;
	if (stack[depth - 1].unit >= 0) {
		struct frame *unit = &stack[stack[depth - 1].unit];

		unit->is_ack |= f->count == IS_ACK;
		unit->is_segment |= f->count == IS_SEGMENT;
	}
}

/*
 * A return to the function; or, if it is not active, another process, or a named part of an assembler
 * function.
 */
static void goes_on(const struct function *f)
{
	if (under_way(f)) {
		while (stack[depth - 1].function != f)
			pop();
		return;
	}
	if (depth && stack[depth - 1].activity == SWITCH)
		while (depth)
			pop();
	if (!depth || f->mark >= 0)
		push(f);
	else
		stack[depth - 1].function = f;
}

static void interrupt_over(void)
{
	int i = depth;

	while (i && !interrupts(stack[i - 1].function))
		i--;
	while (i && depth >= i)
		pop();
}

static void on_block(unsigned int cpu, void *data)
{
	static bool leaving;
	const struct block *b = data;
	struct frame *top;

	(void)cpu;
	if (b->vector) {
		now.instructions[INTERRUPT] += counting ? b->instructions : 0;
		return;
	}
	if (leaving && !(b->function && b->function->leaves))
		interrupt_over();
	leaving = b->function && b->function->leaves;
	top = depth ? &stack[depth - 1] : NULL;
	if (!b->function) {
		/* User space: no kernel function is active. */
		while (depth)
			pop();
		if (counting) {
			now.instructions[PROGRAM] += b->instructions;
		}
		return;
	}
	if (!top || top->function != b->function) {
		if (b->begins) {
			called(b->function);
		} else {
			goes_on(b->function);
		}
		top = &stack[depth - 1];
	}
	if (!counting)
		return;
	if (top->activity == RECEIVE)
		stack[top->unit].instructions += b->instructions;
	else
		now.instructions[top->activity] += b->instructions;
}

/* Some System.map files sign-extend 32-bit addresses. */
static uint64_t with_sign(uint64_t address)
{
	return address >> 31 == 1 ? address | 0xffffffff00000000 : address;
}

static const struct function *function_at(uint64_t address)
{
	size_t low = 0, high = functions_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (functions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &functions[low - 1] : NULL;
}

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct block *b = calloc(1, sizeof(*b)); /* as long as QEMU may execute it */
	uint64_t address = qemu_plugin_tb_vaddr(tb);

	(void)id;
	if (!b)
		abort();
	b->function = function_at(with_sign(address));
	b->vector =
		with_sign(address) >> 63 && (!b->function || with_sign(address) >= end);
	if (b->vector)
		b->function = NULL;
	b->begins = b->function && b->function->address == with_sign(address);
	b->instructions = (unsigned int)qemu_plugin_tb_n_insns(tb);
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, NO_REGISTERS, b);
}

static int mark_of(const char *name)
{
	int i;

	for (i = 0; i < (int)(sizeof(marks) / sizeof(*marks)); i++)
		if (!strcmp(marks[i].function, name))
			return i;
	return -1;
}

static int place_of(const char *name, const char *const *list, int length)
{
	int i;

	for (i = 0; i < length; i++)
		if (!strcmp(list[i], name))
			return i;
	return -1;
}

/* If several functions share an address, the marked one counts. The file is sorted by address. */
static bool read_map(const char *path)
{
	FILE *file = fopen(path, "r");
	char name[512], kind;
	uint64_t address;
	size_t room = 0;

	if (!file)
		return false;
	while (fscanf(file, "%" SCNx64 " %c %511s", &address, &kind, name) == 3) {
		struct function f = {
			address,       NULL,
			mark_of(name), place_of(name, counted, COUNTED),
			false,         !strcmp(name, "v9fs_session_init")
		};
		struct function *last =
			functions_count ? &functions[functions_count - 1] : NULL;

		if (!strcmp(name, "_end"))
			end = with_sign(address);
		if (kind != 't' && kind != 'T' && kind != 'W' && kind != 'w')
			continue;
		f.address = with_sign(address);
		f.leaves = place_of(name, leaves, LEAVES) >= 0;
		if (last && last->address == f.address) {
			last->mark = last->mark >= 0 ? last->mark : f.mark;
			last->count = last->count >= 0 ? last->count : f.count;
			last->leaves |= f.leaves;
			continue;
		}
		if (functions_count == room) {
			room = 2 * room + 4096;
			functions = realloc(functions, room * sizeof(*functions));
			if (!functions)
				abort();
		}
		f.name = strdup(name);
		functions[functions_count++] = f;
	}
	fclose(file);
	return functions_count > 0;
}

static void on_exit_of(qemu_plugin_id_t id, void *data)
{
	const char *folder = getenv("TMPDIR");
	FILE *file;
	int i;

	(void)id;
	(void)data;
	if (folder && chdir(folder))
		abort();
	file = fopen(out, "w");
	if (!file)
		abort();
	for (i = 0; i < ACTIVITIES; i++)
		fprintf(file, "%s %" PRIu64 " %" PRIu64 "\n", names[i],
			kept.instructions[i], kept.times[i]);
	for (i = 0; i < COUNTED; i++)
		fprintf(file, "%s() 0 %" PRIu64 "\n", counted[i], kept.calls[i]);
	if (fclose(file))
		abort();
}

int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	const char *map = NULL;
	int i;

	(void)info;
	for (i = 0; i < argc; i++) {
		if (!strncmp(argv[i], "map=", 4))
			map = argv[i] + 4;
		else if (!strncmp(argv[i], "out=", 4))
			out = strdup(argv[i] + 4);
	}
	if (!map || !out || !read_map(map)) {
		fprintf(stderr, "profile: give map=System.map,out=FILE\n");
		return 1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
	qemu_plugin_register_atexit_cb(id, on_exit_of, NULL);
	return 0;
}
