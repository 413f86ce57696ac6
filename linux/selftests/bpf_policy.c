// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * ACK policies as BPF programs.  TAP on stdout.  Runs as root on a kernel with
 * CONFIG_BPF_JIT, where nobody else has loaded a policy:
 *
 *	bpf_policy ACKWISE FOLDER	the command, and what linux/bpf builds
 */
#define _GNU_SOURCE
#include "traffic.h"
#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#define SLACK_MS 20 /* a timer is never early, and this late at most */
/* what the host lets an ACK wait: 200 ms, less a tick of at most 10 ms */
#define CEILING_MS 200
#define TICK_MS 10
#define DEFAULTS SYSCTL("tcp_ack_policy")
#define AVAILABLE SYSCTL("tcp_available_ack_policies")

static const char *ackwise, *folder;

/* What `ackwise policy WORDS` says; true if it succeeds. */
static bool policy(const char *words, char *said, size_t size)
{
	char command[512];
	size_t n;
	FILE *f;

	snprintf(command, sizeof(command), "%s policy %s 2>&1", ackwise, words);
	f = popen(command, "r");
	n = f ? fread(said, 1, size - 1, f) : 0;
	said[n] = 0;
	return f && !pclose(f);
}

static bool load(const char *name)
{
	char words[256], said[8192];
	bool ok;

	snprintf(words, sizeof(words), "load %s/%s.bpf.o", folder, name);
	ok = policy(words, said, sizeof(said));
	if (!ok)
		printf("# %s: %s\n", name, said);
	return ok;
}

/* Does loading fail, for this reason? */
static bool refused(const char *name, const char *reason)
{
	char words[256], said[65536];
	bool ok;

	snprintf(words, sizeof(words), "load %s/%s.bpf.o", folder, name);
	ok = policy(words, said, sizeof(said)) || !strstr(said, reason);
	if (ok)
		printf("# %s: %s\n", name, said);
	return !ok;
}

static bool unload(const char *name)
{
	char words[64], said[8192];

	snprintf(words, sizeof(words), "unload %s", name);
	return policy(words, said, sizeof(said));
}

static bool listed(const char *name)
{
	char said[8192];

	return policy("list --loaded", said, sizeof(said)) && strstr(said, name);
}

static bool available(const char *name)
{
	return strstr(get(AVAILABLE), name);
}

static int bpf(enum bpf_cmd cmd, union bpf_attr *a)
{
	return syscall(SYS_bpf, cmd, a, sizeof(*a));
}

/* How many programs the kernel holds. */
static int programs(void)
{
	union bpf_attr a = {};
	int count = 0;

	while (!bpf(BPF_PROG_GET_NEXT_ID, &a)) {
		a.start_id = a.next_id;
		count++;
	}
	return count;
}

/* They go once nobody uses them, but not at once. */
static bool programs_become(int expected)
{
	int tries = 500;

	while (programs() != expected && --tries)
		pause_ms(10);
	if (!tries)
		printf("# %d programs, expected %d\n", programs(), expected);
	return tries;
}

static int not_acknowledged(int s)
{
	int left;

	return ioctl(s, SIOCOUTQ, &left) ? -1 : left;
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

#define SEGMENTS 60
#define SEGMENT_BYTES 1000
#define QUICK_ACKS_MOST 40 /* the kernel's are 16 */

/* What is not acknowledged after each of some segments, every second one of them read. */
static bool pattern(const char *choice, int left[SEGMENTS])
{
	char data[2 * SEGMENT_BYTES] = {};
	int c, s, i, on = 1;
	bool ok = true;

	pair(choice, &c, &s);
	setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	for (i = 0; ok && i < SEGMENTS; i++) {
		ok = write(c, data, SEGMENT_BYTES) == SEGMENT_BYTES;
		if (ok && i % 2)
			ok = recv(s, data, sizeof(data), MSG_WAITALL) == sizeof(data);
		pause_ms(2);
		left[i] = not_acknowledged(c);
	}
	part(c, s);
	return ok;
}

static void print_pattern(const char *choice, const int left[SEGMENTS])
{
	int i;

	printf("# %s:", choice);
	for (i = 0; i < SEGMENTS; i++)
		printf(" %d", left[i]);
	printf("\n");
}

/* Are the ACKs of both policies those of the same segments? */
static bool acknowledge_alike(const char *one, const char *other)
{
	int first[SEGMENTS], second[SEGMENTS], i, waits = 0;
	bool ok = pattern(one, first) && pattern(other, second);

	for (i = 0; ok && i < SEGMENTS; i++)
		waits += !!first[i];
	/* some of both */
	ok = ok && waits > 0 && waits < SEGMENTS &&
	     !memcmp(first, second, sizeof(first));
	print_pattern(one, first);
	print_pattern(other, second);
	return ok;
}

static void read_all(int s)
{
	char unread[64];

	while (recv(s, unread, sizeof(unread), MSG_DONTWAIT) > 0)
		;
}

/* Gets past quick ACKs, which are TCP's own, at the start and after a pause: bytes are read,
 * one after the other, until an ACK does not leave at once, or that many have. */
static bool settle(int c, int s)
{
	int i, on = 1;
	bool ok = true;

	setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	read_all(s);
	for (i = 0; ok && i < QUICK_ACKS_MOST && everything_is_acknowledged(c); i++) {
		ok = write(c, "", 1) == 1;
		read_all(s);
	}
	/* the one that waits is none of what is measured */
	for (i = 0; ok && i < 1000 && !everything_is_acknowledged(c); i++)
		pause_ms(1);
	return ok;
}

/* The ACK of a byte that is read leaves at once, and is none of TCP's quick ACKs. */
static bool leaves_at_once(int c, int s)
{
	bool ok = settle(c, s) && write(c, "", 1) == 1;

	read_all(s);
	return ok && everything_is_acknowledged(c);
}

/* How long the ACK of some small segments in a row takes from the first of them, in ms. */
static double latency_ms(int c, int segments)
{
	double first = now_ms();

	while (segments--)
		if (write(c, "", 1) != 1)
			return -1;
	while (!everything_is_acknowledged(c) && now_ms() - first < 2000)
		usleep(200);
	return now_ms() - first;
}

static bool takes_between(int c, int segments, double least_ms, double most_ms)
{
	double found = latency_ms(c, segments);
	bool ok = found >= least_ms && found <= most_ms + SLACK_MS;

	if (!ok)
		printf("# %d segments: %.1f ms, expected %.1f to %.1f\n", segments, found,
		       least_ms, most_ms);
	return ok;
}

/* The clock here is read after the segment left. */
static bool takes(int c, int segments, double ms)
{
	return takes_between(c, segments, ms - 1, ms);
}

static bool takes_as_long_as_allowed(int c)
{
	return takes_between(c, 1, CEILING_MS - 1 - TICK_MS, CEILING_MS);
}

/* 1, 2, 4 segments in a row: each time the ACK takes what it should. */
static bool takes_each(const char *choice, const double ms[3])
{
	int c, s, i;
	bool ok;

	pair(choice, &c, &s);
	ok = settle(c, s);
	for (i = 0; i < 3; i++)
		ok = takes(c, 1 << i, ms[i]) && ok;
	part(c, s);
	return ok;
}

/* Like transfer(), on a connection that holds bytes of latency_ms(). */
static bool still_transfers(int c, int s, size_t bytes)
{
	read_all(s);
	return transfer(c, s, bytes, NULL);
}

/* Single segments, each read once it is acknowledged: none waits longer than the host
 * allows.  Is any that waits as long as that among them? */
static bool never_too_late(int c, int s, int segments, bool *slow)
{
	char byte;
	bool ok = true;

	for (*slow = false; ok && segments; segments--) {
		double found = latency_ms(c, 1);

		ok = found >= 0 && found <= CEILING_MS + SLACK_MS &&
		     read(s, &byte, 1) == 1;
		if (!ok)
			printf("# %.1f ms, expected at most %d\n", found, CEILING_MS);
		*slow = *slow || found >= CEILING_MS - 1 - TICK_MS;
	}
	return ok;
}

static bool transfers(size_t bytes)
{
	int c, s;
	bool ok;

	pair(NULL, &c, &s);
	ok = transfer(c, s, bytes, NULL);
	part(c, s);
	return ok;
}

static bool map_info(int fd, struct bpf_map_info *info)
{
	union bpf_attr a = {
		.info = { .bpf_fd = fd, .info_len = sizeof(*info),
			  .info = (uintptr_t)info },
	};

	return !bpf(BPF_OBJ_GET_INFO_BY_FD, &a);
}

/* The policy of this name other than the one that is held; -1: there is none. */
static int policy_map(const char *name, int other)
{
	union bpf_attr next = {};

	while (!bpf(BPF_MAP_GET_NEXT_ID, &next)) {
		union bpf_attr a = { .map_id = next.next_id };
		struct bpf_map_info info = {}, others = {};
		int fd = bpf(BPF_MAP_GET_FD_BY_ID, &a);

		next.start_id = next.next_id;
		if (fd < 0)
			continue;
		if (map_info(fd, &info) && info.type == BPF_MAP_TYPE_STRUCT_OPS &&
		    !strcmp(info.name, name) &&
		    !(map_info(other, &others) && others.id == info.id))
			return fd;
		close(fd);
	}
	return -1;
}

#define CGROUP "/sys/fs/cgroup"
#define LOWER_MS 60

/* A program by which each connection that is accepted lets its ACKs wait LOWER_MS at most;
 * -1: it cannot be loaded. */
static int lower_ceiling(void)
{
	const struct bpf_insn code[] = {
		{ BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1,
		  offsetof(struct bpf_sock_ops, op), 0 },
		{ BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, 7,
		  BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB },
		{ BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -8, LOWER_MS * 1000 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, IPPROTO_TCP },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, TCP_BPF_DELACK_MAX },
		{ BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_4, BPF_REG_10, 0, 0 },
		{ BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, -8 },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_5, 0, 0, sizeof(int) },
		{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_setsockopt },
		{ BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1 },
		{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
	};
	union bpf_attr a = {
		.prog_type = BPF_PROG_TYPE_SOCK_OPS,
		.insns = (uintptr_t)code,
		.insn_cnt = sizeof(code) / sizeof(*code),
		.license = (uintptr_t)"GPL",
		.expected_attach_type = BPF_CGROUP_SOCK_OPS,
	};

	return bpf(BPF_PROG_LOAD, &a);
}

/* With the program in force, the ACK of a policy that would wait 150 ms leaves after LOWER_MS;
 * without it, when the policy says. */
static bool sockets_ceiling_holds(const char *choice)
{
	int prog = lower_ceiling(), group = open(CGROUP, O_RDONLY | O_DIRECTORY);
	int c, s;
	union bpf_attr a = {
		.target_fd = group,
		.attach_bpf_fd = prog,
		.attach_type = BPF_CGROUP_SOCK_OPS,
	};
	bool ok = prog >= 0 && group >= 0 && !bpf(BPF_PROG_ATTACH, &a);

	if (ok) {
		pair(choice, &c, &s);
		ok = settle(c, s) && takes(c, 1, LOWER_MS) && takes(c, 4, LOWER_MS);
		part(c, s);
		ok = !bpf(BPF_PROG_DETACH, &a) && ok;
		pair(choice, &c, &s);
		ok = settle(c, s) && takes(c, 1, 150) && ok;
		part(c, s);
	}
	close(prog);
	close(group);
	return ok;
}

#define SWAPS 50

/* Another policy of the name, again and again, while connections come and go. */
static bool swaps_under_traffic(const int maps[2], int *connections)
{
	union bpf_attr pin = {
		.pathname = (uintptr_t)"/sys/fs/bpf/ackwise/bpfswap",
	};
	pid_t child = fork();
	int status = 0, i, link;
	bool ok = true;

	if (!child) {
		link = bpf(BPF_OBJ_GET, &pin);
		/* last the one that is in force now */
		for (i = 0; i < 2 * SWAPS; i++) {
			union bpf_attr a = {
				.link_update = { .link_fd = link,
						 .new_map_fd = maps[i % 2] },
			};

			if (bpf(BPF_LINK_UPDATE, &a))
				_exit(1);
			pause_ms(i % 7);
		}
		_exit(0);
	}
	while (!waitpid(child, &status, WNOHANG)) {
		ok = transfers(200000) && ok;
		++*connections;
	}
	return ok && !status;
}

int main(int argc, char **argv)
{
	static const double delayed_ms[] = { 200, 200, 200 };
	int c, s, c2, s2, before, connections = 0, maps[2];
	bool slow;

	if (argc != 3 || system("ip link set lo up")) {
		fprintf(stderr, "usage: bpf_policy ACKWISE FOLDER\n");
		return 2;
	}
	ackwise = argv[1];
	folder = argv[2];
	before = programs();
	/* so that the host's limit comes long before the sender's timer */
	put(SYSCTL("tcp_rto_min_us"), "400000");
	/* nor does it probe, which is answered at once */
	put(SYSCTL("tcp_early_retrans"), "0");

	check(!available("bpfdelayed") && load("delayed") && available("bpfdelayed") &&
		      listed("bpfdelayed"),
	      "a policy in BPF can be loaded");
	check(load("dynamic") && listed("bpfdelayed") && listed("bpfdynamic"),
	      "so can another one, which has a table");
	check(refused("taken", "a policy of this name is registered"),
	      "one of a name that the kernel has cannot");

	pair(NULL, &c, &s);
	check(choose(s, "bpfdelayed") && chosen(s, "bpfdelayed"),
	      "it can be chosen by its name");
	check(!choose(s, "bpfdelayed:segments=8") && errno == EINVAL &&
		      chosen(s, "bpfdelayed"),
	      "parameters, which it has none of, are refused");
	part(c, s);

	check(acknowledge_alike("delayed:segments=8,delay_ms=200", "bpfdelayed"),
	      "delayed acknowledges the same segments as the C policy");
	check(takes_each("delayed:segments=8,delay_ms=200", delayed_ms) &&
		      takes_each("bpfdelayed", delayed_ms),
	      "delayed waits as long as the C policy");
	check(put(DEFAULTS, "bpfdynamic") && transfers(20000000),
	      "data arrives unchanged with random draws");
	check(sockets_ceiling_holds("delayed:segments=1000,delay_ms=150"),
	      "no ACK is later than TCP_BPF_DELACK_MAX allows");
	check(refused("writes-seen", "only read is supported"),
	      "what it is told cannot be written");
	check(refused("writes-beyond", "invalid access to map value"),
	      "nor can more state than there is");
	check(refused("reads-beyond", "invalid access to map value"),
	      "nor can it be read");
	check(refused("unable", "break the contract of a policy"),
	      "a policy without order is refused");
	check(!available("bpfbad") && !listed("bpfbad"), "and leaves nothing");

	check(load("silent") && put(DEFAULTS, "bpfswap"),
	      "one that wants to wait for ever can be the default");
	maps[0] = policy_map("bpfswap", -1);
	pair(NULL, &c, &s);
	check(chosen(s, "bpfswap") && settle(c, s) && takes_as_long_as_allowed(c) &&
		      takes_as_long_as_allowed(c),
	      "its ACKs leave when the host's limit has passed");
	check(still_transfers(c, s, 20000000), "and data arrives unchanged");

	check(load("eager"), "another one does");
	maps[1] = policy_map("bpfswap", maps[0]);
	pair(NULL, &c2, &s2);
	check(chosen(s2, "bpfswap") && leaves_at_once(c2, s2),
	      "new connections get the new one, also by the namespace's default");
	check(chosen(s, "bpfswap") && settle(c, s) && takes_as_long_as_allowed(c),
	      "a connection keeps the old one");
	check(choose(s, "bpfswap") && leaves_at_once(c, s), "until it chooses again");

	check(swaps_under_traffic(maps, &connections) && connections > 10,
	      "data arrives unchanged while one policy replaces the other");
	printf("# %d times, %d connections\n", 2 * SWAPS, connections);
	close(maps[0]);
	close(maps[1]);

	check(unload("bpfswap") && !available("bpfswap") && !listed("bpfswap"),
	      "a policy can be unloaded while connections use it");
	check(!strcmp(get(DEFAULTS), "stock"), "the namespace's default is then stock");
	check(chosen(s, "bpfswap") && still_transfers(c, s, 20000000) &&
		      leaves_at_once(c, s),
	      "connections that have it keep it");
	check(!choose(s2, "bpfswap") && errno == ENOENT, "but nobody can choose it");
	check(!unload("bpfswap"), "or unload it once more");
	part(c, s);
	part(c2, s2);

	check(load("nonsense") && put(DEFAULTS, "bpfnonsense") && transfers(20000000),
	      "data arrives unchanged with one that talks nonsense");
	pair(NULL, &c, &s);
	check(never_too_late(c, s, 30, &slow) && !retransmissions(c),
	      "none of its ACKs is later than the host's limit");
	check(slow, "though some are as late as that");
	part(c, s);
	check(run("tc qdisc add dev lo root netem limit 10000 delay 5ms 4ms loss 3%") &&
		      transfers(20000000) && run("tc qdisc del dev lo root"),
	      "and data arrives unchanged where packets are lost and overtake each other");

	check(unload("bpfnonsense") && unload("bpfdelayed") && unload("bpfdynamic") &&
		      programs_become(before),
	      "in the end nothing is left in the kernel");

	printf("1..%d\n", tests);
	return failures ? 1 : 0;
}
