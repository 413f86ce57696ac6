// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The user interface of ACK policies: sysctls, TCP_ACK_POLICY, TCP_ACK_ORDER,
 * RTAX_ACK_POLICY, inet_diag, counters.  TAP on stdout.  Runs as root over loopback, in a network
 * namespace of its own:
 *
 *	unshare -n ./ack_policy
 */
#define _GNU_SOURCE
#include "traffic.h"
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#define POLICIES "a3 a3fewer csa3 delayed dynamic every greedy ratelimit"

static int switches;

static void switch_policy(int server)
{
	static const char *const choices[] = {
		"delayed:segments=8",
		"stock",
		"ratelimit",
		"every",
		"a3",
		"random",
		"dynamic",
		"csa3",
		"greedy",
		"delayed:segments=1000,delay_ms=500",
	};
	static unsigned int next = 1;

	next = next * 1103515245 + 12345;
	if (choose(server,
		   choices[(next >> 16) % (sizeof(choices) / sizeof(*choices))]))
		switches++;
}

static const struct in_addr loopback = { __builtin_bswap32(INADDR_LOOPBACK) };
static const struct destination to_loopback = { AF_INET, &loopback, "lo", true };

struct wanted {
	const char *choice;
	bool found, states;
};

static void look(struct nlmsghdr *h, void *data)
{
	const char *choice = diag_text(h, INET_ACK_POLICY_CHOICE);
	const char *state = diag_text(h, INET_ACK_POLICY_STATE);
	struct wanted *w = data;

	if (choice && !strcmp(choice, w->choice)) {
		w->found = true;
		w->states |= state && strchr(state, '=');
	}
}

/* Whether a dump of established sockets shows the choice, and a state with it or not. */
static bool diag_shows(const char *choice, bool states)
{
	struct wanted w = { .choice = choice };

	diag_dump(AF_INET, 1 << 1, look, &w);
	return w.found && w.states == states;
}

/* Runs work() as user nobody, without capabilities; its exit status. */
static int unprivileged(int (*work)(void))
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit(setgid(65534) || setuid(65534) ? 99 : work());
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}

/* What an order is in force, and what was asked for. */
static bool ordered(int s, unsigned int bytes, unsigned int delay_ns)
{
	struct tcp_ack_order order = { ~0U, ~0U };
	socklen_t len = sizeof(order);

	return !getsockopt(s, IPPROTO_TCP, TCP_ACK_ORDER, &order, &len) &&
	       len == sizeof(order) && order.bytes == bytes &&
	       order.delay_ns == delay_ns;
}

/* What is in force */
static unsigned int delay_of(int s)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, &len) ? 0 : info.tcpi_ack_ns;
}

static bool set_order(int s, unsigned int bytes, unsigned int delay_ns)
{
	struct tcp_ack_order order = { bytes, delay_ns };

	return !setsockopt(s, IPPROTO_TCP, TCP_ACK_ORDER, &order, sizeof(order));
}

/* Bytes are read, one after the other, until an ACK does not leave at once: quick ACKs,
 * at the start and after a pause, are TCP's own.
 */
static bool byte_waits(int c, int s)
{
	char byte = 0;

	for (int i = 0; i < 100; i++) {
		if (write(c, &byte, 1) != 1 || read(s, &byte, 1) != 1)
			return false;
		if (!everything_is_acknowledged(c))
			return true;
	}
	return false;
}

/* What waits is acknowledged after 150 ms. */
static bool ack_waits(int c, int s)
{
	unsigned int before = retransmissions(c);
	bool ok = byte_waits(c, s);

	pause_ms(50);
	ok = ok && !everything_is_acknowledged(c);
	pause_ms(200);
	return ok && everything_is_acknowledged(c) && retransmissions(c) == before;
}

static bool ack_leaves_at_once(int c, int s)
{
	char byte = 0;

	return write(c, &byte, 1) == 1 && read(s, &byte, 1) == 1 &&
	       everything_is_acknowledged(c);
}

/* A byte that nothing else acknowledges leaves its ACK when the order's time is up. */
static bool order_waits(int c, int s)
{
	return set_order(s, 1 << 20, 150000000) && ack_waits(c, s);
}

static int bpf(int command, union bpf_attr attr)
{
	return (int)syscall(SYS_bpf, command, &attr, sizeof(attr));
}

/* A program of two instructions for a stream: what it is asked for, and exit. */
static bool attach(int map, enum bpf_attach_type type, struct bpf_insn answer)
{
	struct bpf_insn program[] = { answer, { .code = BPF_JMP | BPF_EXIT } };
	union bpf_attr load = { .prog_type = BPF_PROG_TYPE_SK_SKB };
	union bpf_attr to = { .target_fd = (unsigned int)map };
	int fd;

	load.insns = (uintptr_t)program;
	load.insn_cnt = 2;
	load.license = (uintptr_t) "GPL";
	fd = bpf(BPF_PROG_LOAD, load);
	to.attach_bpf_fd = (unsigned int)fd;
	to.attach_type = type;
	return fd >= 0 && !bpf(BPF_PROG_ATTACH, to);
}

/* From now on the kernel reads the socket's data as they arrive: a socket map with a
 * parser (strparser), for which all that is there is a message, and a verdict, to pass it.
 */
static bool kernel_reads(int s)
{
	struct bpf_insn all = { .code = BPF_LDX | BPF_W | BPF_MEM,
				.dst_reg = BPF_REG_0,
				.src_reg = BPF_REG_1,
				.off = offsetof(struct __sk_buff, len) };
	struct bpf_insn pass = { .code = BPF_ALU64 | BPF_MOV | BPF_K,
				 .dst_reg = BPF_REG_0,
				 .imm = SK_PASS };
	union bpf_attr create = { .map_type = BPF_MAP_TYPE_SOCKMAP }, update = { 0 };
	unsigned int key = 0;
	int map;

	create.key_size = create.value_size = 4;
	create.max_entries = 1;
	map = bpf(BPF_MAP_CREATE, create);
	update.map_fd = (unsigned int)map;
	update.key = (uintptr_t)&key;
	update.value = (uintptr_t)&s;
	return map >= 0 && attach(map, BPF_SK_SKB_STREAM_PARSER, all) &&
	       attach(map, BPF_SK_SKB_STREAM_VERDICT, pass) &&
	       !bpf(BPF_MAP_UPDATE_ELEM, update);
}

/* Negotiated from now on; not with kernels that do not have it. */
static bool accurate_ecn(bool on)
{
	return put(SYSCTL("tcp_ecn"), on ? "3" : "2");
}

/* Segments to a socket are marked CE: netem marks what it would drop. */
static bool mark_to(int s, bool on)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);
	char command[256];

	if (!on)
		return run("tc qdisc del dev lo root");
	if (getsockname(s, (void *)&a, &len))
		return false;
	snprintf(command, sizeof(command),
		 "tc qdisc add dev lo root handle 1: prio bands 2 "
		 "priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 && "
		 "tc qdisc add dev lo parent 1:2 netem loss 100%% ecn && "
		 "tc filter add dev lo parent 1: protocol ip u32 "
		 "match ip dport %u 0xffff flowid 1:2",
		 ntohs(a.sin_port));
	return run(command);
}

/* With the namespace's default, since MPTCP sockets have neither option */
static bool subflow_waits(const char *policy)
{
	int c, s, is_mptcp = 0;
	socklen_t len = sizeof(is_mptcp);
	bool ok = put(DEFAULT, policy);

	close(pair_of(IPPROTO_MPTCP, NULL, &c, &s));
	ok = ok && !getsockopt(s, IPPROTO_TCP, TCP_IS_MPTCP, &is_mptcp, &len) &&
	     is_mptcp && transfer(c, s, 1000000, NULL);
	pause_ms(300);
	ok = ok && ack_waits(c, s);
	part(c, s);
	return put(DEFAULT, "stock") && ok;
}

#define FAILSLAB "/sys/kernel/debug/failslab/"
#define PURE_ACKS "/sys/kernel/slab/skbuff_head_cache/failslab"

/* For one pure ACK there is no memory, or for none. */
static bool shortage(bool on)
{
	return put(PURE_ACKS, on ? "1" : "0") && put(FAILSLAB "cache-filter", "Y") &&
	       put(FAILSLAB "verbose", "0") && put(FAILSLAB "times", "1") &&
	       put(FAILSLAB "probability", on ? "100" : "0");
}

/*
 * An ACK that finds no memory leaves when there is some: before the sender repeats its data.  With
 * this policy the first segment is acknowledged at once.
 */
static bool first_ack_outlives_a_shortage(const char *at_once)
{
	char byte = 0;
	int c, s;
	bool ok;

	pair(NULL, &c, &s);
	ok = choose(s, at_once) && shortage(true) && write(c, &byte, 1) == 1 &&
	     !everything_is_acknowledged(c);
	shortage(false);
	pause_ms(500);
	ok = ok && everything_is_acknowledged(c) && !retransmissions(c);
	part(c, s);
	return ok;
}

static bool owed_ack_outlives_a_shortage(void)
{
	int c, s;
	bool ok;

	pair(NULL, &c, &s);
	ok = choose(s, "delayed:delay_ms=500") && byte_waits(c, s) && shortage(true);
	/* sends what is owed, for which there is no memory */
	ok = ok && choose(s, "greedy") && !everything_is_acknowledged(c);
	shortage(false);
	pause_ms(500);
	ok = ok && everything_is_acknowledged(c) && !retransmissions(c);
	part(c, s);
	return ok;
}

#define ROUTE_OF_100_MS                                                                \
	"ip route replace local 127.0.0.1 dev lo table local proto kernel scope host " \
	"src 127.0.0.1 rto_min 100ms"

/* Whether a policy that delays for 500 ms sends an ACK by then, before its sender repeats. */
static bool ack_comes_within(unsigned int ms)
{
	int c, s;
	bool ok;

	pair(NULL, &c, &s);
	ok = choose(s, "delayed:segments=1000,delay_ms=500") && byte_waits(c, s);
	pause_ms(ms);
	ok = ok && everything_is_acknowledged(c) && !retransmissions(c);
	part(c, s);
	return ok;
}

static unsigned long counter(const char *name)
{
	char *text = strdup(get("/proc/net/netstat"));
	char *labels = strstr(text, "TcpExt:"), *values;
	char *label, *value, *rest1, *rest2;
	unsigned long found = 0;

	values = labels ? strstr(labels + 1, "TcpExt:") : NULL;
	if (values) {
		values[-1] = 0;
		values[strcspn(values, "\n")] = 0;
		label = strtok_r(labels, " ", &rest1);
		value = strtok_r(values, " ", &rest2);
		for (; label && value; label = strtok_r(NULL, " ", &rest1),
				       value = strtok_r(NULL, " ", &rest2))
			if (!strcmp(label, name))
				found = strtoul(value, NULL, 10);
	}
	free(text);
	return found;
}

#define NEAR "10.9.1.2"
#define FAR "10.9.1.1"
#define PORT 9999 /* 270F */

/* Whoever waits at the other end of the link `near`, in a namespace of its own. */
struct far_end {
	pid_t child;
	int says;
};

static bool say(int to)
{
	return write(to, "", 1) == 1;
}

static bool hear(int from)
{
	char byte;

	return read(from, &byte, 1) == 1;
}

/* The far end does its work once the link is there, and speaks when it is ready. */
static bool link_up(struct far_end *far, void (*work)(int ready))
{
	char link[300];
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return false;
	far->child = fork();
	if (!far->child) {
		close(ends[0]);
		if (!unshare(CLONE_NEWNET) && say(ends[1]) && hear(ends[1]))
			work(ends[1]);
		_exit(1);
	}
	far->says = ends[0];
	snprintf(link, sizeof(link),
		 "ip link add near address 02:00:00:00:00:02 type veth "
		 "peer name far address 02:00:00:00:00:01 netns %d && "
		 "ip addr add " NEAR "/24 dev near && ip link set near up && "
		 "ip neigh replace " FAR " lladdr 02:00:00:00:00:01 dev near",
		 far->child);
	close(ends[1]);
	return hear(ends[0]) && run(link) && say(ends[0]) && hear(ends[0]);
}

/* The exit status of the far end. */
static int link_down(struct far_end *far)
{
	int status = -1;

	close(far->says);
	waitpid(far->child, &status, 0);
	/* else it goes with the namespace of its far end, some time later */
	if (system("ip link del near 2> /dev/null"))
		printf("# the link has gone\n");
	return WEXITSTATUS(status);
}

/* Connects; 500 ms from here to the server. */
static void distant_client(int ready)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	inet_aton(NEAR, &to.sin_addr);
	if (run("ip addr add " FAR "/24 dev far && ip link set far up && "
		"ip neigh replace " NEAR " lladdr 02:00:00:00:00:02 dev far && "
		"tc qdisc add dev far root netem delay 500ms") &&
	    say(ready))
		connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof(to));
	pause_ms(1000);
	_exit(0);
}

/* A listener's child that is given up because no route leads back to the client. */
static bool child_without_a_route_is_given_up(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	unsigned long before = counter("ListenDrops");
	struct far_end far = { .says = -1 };
	int tries = 200;
	bool ok;

	ok = choose(listener, "delayed") && !bind(listener, (void *)&at, sizeof(at)) &&
	     !listen(listener, 1) && link_up(&far, distant_client) &&
	     put(SYSCTL("conf/all/rp_filter"), "0") &&
	     put(SYSCTL("conf/near/rp_filter"), "0");
	/* the ACK of the SYN-ACK comes 500 ms after the SYN */
	while (ok && system("grep -q ':270F [^ ]* 03' /proc/net/tcp") && tries--)
		pause_ms(10);
	ok = ok && run("ip route add blackhole " FAR "/32");
	link_down(&far);
	run("ip route del blackhole " FAR "/32");
	close(listener);
	return ok && counter("ListenDrops") > before;
}

struct frame {
	struct ethhdr eth;
	struct iphdr ip;
	struct tcphdr tcp;
	char rest[1500];
} __attribute__((packed));

static uint16_t checksum(const void *data, size_t len, uint32_t sum)
{
	const uint8_t *bytes = data;
	size_t i;

	for (i = 0; i < len; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

/* Turns a SYN into its answer, with data and FIN. */
static size_t answer(struct frame *f, const char *data)
{
	const uint16_t length = (uint16_t)(sizeof(f->tcp) + strlen(data));
	const uint32_t to = f->ip.saddr;
	const uint16_t port = f->tcp.source;
	uint32_t pseudo = IPPROTO_TCP + length;

	memcpy(f->eth.h_dest, f->eth.h_source, ETH_ALEN);
	memcpy(f->eth.h_source, "\2\0\0\0\0\1", ETH_ALEN);
	f->ip.tot_len = htons((uint16_t)(sizeof(f->ip) + length));
	f->ip.saddr = f->ip.daddr;
	f->ip.daddr = to;
	f->ip.check = 0;
	f->ip.check = checksum(&f->ip, sizeof(f->ip), 0);
	f->tcp = (struct tcphdr){
		.source = f->tcp.dest,
		.dest = port,
		.seq = htonl(1000),
		.ack_seq = htonl(ntohl(f->tcp.seq) + 1),
		.doff = sizeof(f->tcp) / 4,
		.syn = 1,
		.ack = 1,
		.fin = 1,
		.window = htons(65535),
	};
	memcpy(f->rest, data, strlen(data));
	pseudo += ntohl(f->ip.saddr) >> 16;
	pseudo += ntohl(f->ip.saddr) & 0xffff;
	pseudo += ntohl(f->ip.daddr) >> 16;
	pseudo += ntohl(f->ip.daddr) & 0xffff;
	f->tcp.check = checksum(&f->tcp, length, pseudo);
	return offsetof(struct frame, tcp) + length;
}

/* Answers a SYN by all that it has to say; 0 if that is acknowledged. */
static void laconic_server(int ready)
{
	struct timeval most = { .tv_sec = 5 };
	struct sockaddr_ll on = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_IP) };
	int s = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));
	struct frame f;
	size_t size;

	if (!run("ip link set far up"))
		_exit(1);
	on.sll_ifindex = (int)if_nametoindex("far");
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
	if (bind(s, (void *)&on, sizeof(on)) || !say(ready))
		_exit(1);
	while (recv(s, &f, sizeof(f), 0) > 0) {
		if (f.ip.protocol != IPPROTO_TCP)
			continue;
		if (f.tcp.syn) {
			size = answer(&f, "hello");
			if (send(s, &f, size, 0) != (ssize_t)size)
				_exit(1);
		} else if (f.tcp.ack && ntohl(f.tcp.ack_seq) == 1000 + 1 + 5 + 1) {
			_exit(0);
		}
	}
	_exit(2);
}

/* RFC 7413: a SYN-ACK that holds all of the peer's data, and its FIN. */
static bool data_in_a_synack_is_acknowledged(const char *choice)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	const struct linger abort = { .l_onoff = 1 };
	int s = socket(AF_INET, SOCK_STREAM, 0);
	struct far_end far = { .says = -1 };
	char text[5];
	bool ok;

	inet_aton(FAR, &to.sin_addr);
	ok = choose(s, choice) && link_up(&far, laconic_server) &&
	     !sendto(s, "", 0, MSG_FASTOPEN, (void *)&to, sizeof(to)) &&
	     recv(s, text, sizeof(text), MSG_WAITALL) == sizeof(text);
	ok = !link_down(&far) && ok;
	/* no FIN is left to meet the next link */
	setsockopt(s, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
	close(s);
	if (!ok)
		printf("# with %s they are not\n", choice);
	return ok;
}

static bool data_in_each_synack_are_acknowledged(void)
{
	char names[] = "stock " POLICIES, *rest, *name = strtok_r(names, " ", &rest);
	bool ok = true;

	for (; name; name = strtok_r(NULL, " ", &rest))
		ok = data_in_a_synack_is_acknowledged(name) && ok;
	return ok;
}

static int choose_delayed(void)
{
	return choose(socket(AF_INET, SOCK_STREAM, 0), "delayed") ? 0 : errno;
}

/* What is refused, added: 1, a policy that is not allowed, for a socket; 2, the same as
 * default; 4, an allowed one as default.
 */
static int choose_in_a_user_namespace(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return 98;
	return (choose_delayed() ? 1 : 0) + (put(DEFAULT, "delayed") ? 0 : 2) +
	       (put(DEFAULT, "every") ? 0 : 4);
}

int main(void)
{
	char kept[256];
	int c, s;

	if (!loopback_up() || access(DEFAULT, R_OK)) {
		printf("1..0 # SKIP no ACK policies in this kernel\n");
		return 4;
	}

	check(is(DEFAULT, "stock"), "a new namespace has stock as its default");
	pair(NULL, &c, &s);
	check(chosen(s, "stock") && !diag_shows("stock", false),
	      "a socket without a policy is a stock socket");
	part(c, s);

	check(!put(DEFAULT, "nosuch") && errno == ENOENT,
	      "an unknown policy is refused");
	check(!put(DEFAULT, "delayed:nosuch=1") && errno == EINVAL,
	      "an unknown parameter is refused");
	check(!put(DEFAULT, "delayed:segments=0") && errno == ERANGE,
	      "a value out of range is refused");
	check(is(DEFAULT, "stock"), "a refused choice changes nothing");

	check(put(SYSCTL("tcp_allowed_ack_policies"), "every"),
	      "the list of allowed policies can be set");
	check(unprivileged(choose_delayed) == EPERM,
	      "without CAP_NET_ADMIN only allowed policies can be chosen");
	check(unprivileged(choose_in_a_user_namespace) == 2,
	      "who owns a network namespace can choose any policy for a socket there, "
	      "but only an allowed one as its default");
	check(put(SYSCTL("tcp_allowed_ack_policies"), POLICIES),
	      "all policies can be allowed");
	check(unprivileged(choose_delayed) == 0,
	      "anybody can choose an allowed policy");

	check(put(DEFAULT, "delayed:segments=8") && is(DEFAULT, "delayed:segments=8"),
	      "the default can be a policy with parameters, and reads as it was written");
	pair(NULL, &c, &s);
	check(chosen(s, "delayed:segments=8") && chosen(c, "delayed:segments=8"),
	      "both ends of a connection have the default policy");
	check(diag_shows("delayed:segments=8", false), "inet_diag shows the policy");
	check(transfer(c, s, 1000000, NULL), "data arrives unchanged");
	check(choose(s, "ratelimit") && diag_shows(get_choice(s), true),
	      "inet_diag shows the state of a policy");
	part(c, s);

	check(put(DEFAULT, strcpy(kept, get(DEFAULT))) &&
		      put(SYSCTL("tcp_ack/delayed/delay_ms"), "40"),
	      "a default that was read can be written back");
	pair(NULL, &c, &s);
	check(chosen(s, "delayed:segments=8") && delay_of(s) == 40000000,
	      "a parameter that a choice does not state is taken from its sysctl");
	part(c, s);
	check(!put(SYSCTL("tcp_ack/delayed/delay_ms"), "501") &&
		      is(SYSCTL("tcp_ack/delayed/delay_ms"), "40"),
	      "a sysctl refuses a value out of its parameter's range");
	check(put(DEFAULT, "stock") && is(DEFAULT, "stock"),
	      "the default can be set back to stock");

	pair("every", &c, &s);
	check(chosen(s, "every") && chosen(c, "stock"),
	      "an accepted socket inherits its listener's policy");
	check(choose(s, "delayed:segments=4") &&
		      chosen(s, "delayed:segments=4,delay_ms=40"),
	      "a connection can change its policy");
	check(!choose(s, "nosuch") && errno == ENOENT &&
		      chosen(s, "delayed:segments=4,delay_ms=40"),
	      "a refused policy leaves the connection's policy as it is");
	check(choose(s, "stock") && chosen(s, "stock"),
	      "a connection can return to stock");
	check(transfer(c, s, 1000000, NULL),
	      "data arrives unchanged after the return to stock");
	part(c, s);

	pair(NULL, &c, &s);
	check(transfer(c, s, 20000000, switch_policy) && switches > 10,
	      "data arrives unchanged while every read switches the policy");
	printf("# %d switches\n", switches);
	part(c, s);

	check(!route(RTM_NEWROUTE, &to_loopback, "nosuch", false) && errno == EINVAL,
	      "a route with an unknown policy is refused");
	check(route(RTM_NEWROUTE, &to_loopback, "every", false),
	      "a route can have a policy");
	pair(NULL, &c, &s);
	check(chosen(s, "every") && chosen(c, "every"), "its connections have it");
	check(transfer(c, s, 1000000, NULL), "data arrives unchanged over it");
	check(choose(s, "delayed") && chosen(s, "delayed:segments=2,delay_ms=40"),
	      "a socket can change a route's policy");
	part(c, s);
	pair("delayed", &c, &s);
	check(chosen(s, "delayed:segments=2,delay_ms=40") && chosen(c, "every"),
	      "what a listener chose goes before the route's policy");
	part(c, s);
	check(route(RTM_NEWROUTE, &to_loopback, NULL, false),
	      "the policy can be removed from the route");
	pair(NULL, &c, &s);
	check(chosen(s, "stock"), "connections are then stock again");
	part(c, s);

	check(put(DEFAULT, "every") &&
		      route(RTM_NEWROUTE, &to_loopback, "stock", false) &&
		      route_shows(AF_INET, "stock"),
	      "a route can say stock, and shows it");
	pair(NULL, &c, &s);
	check(chosen(s, "stock") && chosen(c, "stock") && !diag_shows("stock", false),
	      "stock on a route goes before the namespace's policy");
	part(c, s);
	check(route(RTM_NEWROUTE, &to_loopback, NULL, false) && put(DEFAULT, "stock"),
	      "both can be set back");

	pair(NULL, &c, &s);
	check(ordered(s, 0, 0), "a socket has no order");
	check(set_order(s, 11680, 40000000) && ordered(s, 11680, 40000000) &&
		      chosen(s, "stock") && transfer(c, s, 1000000, NULL),
	      "an order can be placed without a policy, and data arrives unchanged");
	check(choose(s, "every") && chosen(s, "every") && set_order(s, 1, 0) &&
		      chosen(s, "stock"),
	      "an order takes the place of a policy");
	check(order_waits(c, s), "an ACK waits as long as ordered");
	check(set_order(s, 0, 0) && ordered(s, 0, 0) && transfer(c, s, 1000000, NULL),
	      "an order can be withdrawn");
	part(c, s);

	pair(NULL, &c, &s);
	check(transfer(c, s, 1000000, NULL) && kernel_reads(s) &&
		      ack_leaves_at_once(c, s),
	      "a reader in the kernel (strparser) has small segments acknowledged at once");
	check(order_waits(c, s),
	      "with an order it does not: the ACK waits as long as ordered");
	check(choose(s, "delayed:segments=1000,delay_ms=150") && ack_waits(c, s),
	      "nor with a policy");
	part(c, s);
	check(subflow_waits("delayed:segments=1000,delay_ms=150") &&
		      !subflow_waits("stock"),
	      "an ACK of an MPTCP subflow waits as long as its policy ordered");
	if (accurate_ecn(true)) {
		pair(NULL, &c, &s);
		check(transfer(c, s, 1000000, NULL) && order_waits(c, s) &&
			      mark_to(s, true) && ack_leaves_at_once(c, s) &&
			      mark_to(s, false) && ack_waits(c, s),
		      "with Accurate ECN, an order holds up no ACK of a CE mark");
		part(c, s);
		check(accurate_ecn(false), "Accurate ECN can be turned off");
	}

	check(put(SYSCTL("tcp_rto_min_us"), "50000"), "the minimum RTO can be set");
	pair(NULL, &c, &s);
	check(choose(s, "delayed:segments=1000,delay_ms=500") && trickle(c, s, 5) &&
		      !retransmissions(c),
	      "no ACK is delayed until the sender takes it for a loss");
	part(c, s);

	check(put(SYSCTL("tcp_rto_min_us"), "2000000") &&
		      owed_ack_outlives_a_shortage() &&
		      first_ack_outlives_a_shortage("stock") &&
		      first_ack_outlives_a_shortage("every"),
	      "an ACK for which memory was short leaves later");
	check(put(SYSCTL("tcp_rto_min_us"), "200000"),
	      "the minimum RTO can be set back");
	check(!ack_comes_within(150) && run(ROUTE_OF_100_MS) && ack_comes_within(150) &&
		      route(RTM_NEWROUTE, &to_loopback, NULL, false),
	      "no ACK is delayed until the minimum RTO of its route has passed");

	check(child_without_a_route_is_given_up(),
	      "a connection that fails in its handshake takes its policy with it");
	check(data_in_each_synack_are_acknowledged(),
	      "data and FIN in a SYN-ACK are acknowledged, whatever the policy");

	check(strstr(get("/proc/net/netstat"), "TcpAck: every-segment segment-count"),
	      "the counters are named after the reasons");

	printf("1..%d\n", tests);
	return failures ? 1 : 0;
}
