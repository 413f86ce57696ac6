// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Stresses ACK policies with random events that run concurrently: a thousand connections with loss
 * between two namespaces, policies switched on live sockets, by sysctl and by route, resets,
 * namespaces that are created and end with connections in them, modules loaded and unloaded, and
 * readers of inet_diag, /proc and the tracepoint.
 *
 *	stress SECONDS MOST SEED MODULES
 *
 * Runs as root in a virtual machine of its own, whose kernel checks itself (KASAN, lockdep,
 * kmemleak, ...) and reports on its console. On stdout, as TAP: data arrives unchanged, each kind
 * of event happened often enough, at the end no module is in use and nothing leaked. Namespaces
 * "client" and "server" must exist under /run/netns and reach each other as 10.9.0.1 and 10.9.0.2,
 * fd09::1 and fd09::2, over devices of the same names. MODULES is the folder of the policies'
 * modules. A run takes SECONDS, or longer until there were enough events, but at most MOST. Random
 * numbers come from SEED; what they do to the kernel depends on its timing.
 */
#define _GNU_SOURCE
#include "netlink.h"
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define WORKERS 10
#define EACH 100 /* connections of a worker */
#define CONNECTIONS (WORKERS * EACH)
#define PORT 7000
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const char *const modules[] = {
	"a3", "delayed", "dynamic", "every", "greedy", "ratelimit", "random",
};
#define NO_MODULE ARRAY_SIZE(modules)

static const struct choice {
	const char *text;
	unsigned int module;
} choices[] = {
	{ "stock", NO_MODULE },
	{ "a3", 0 },
	{ "a3fewer", 0 },
	{ "csa3", 0 },
	{ "delayed", 1 },
	{ "delayed:segments=8", 1 },
	{ "delayed:segments=1000,delay_ms=500", 1 },
	{ "dynamic", 2 },
	{ "every", 3 },
	{ "greedy", 4 },
	{ "ratelimit", 5 },
	{ "random", 6 },
};

/* Events counted over all processes. */
enum tally {
	OPENED,
	BYTES,
	CORRUPT,
	SWITCHED,
	REFUSED,
	RESET,
	DISCONNECTED,
	DEFAULTS,
	ROUTES,
	NAMESPACES,
	UNLOADED,
	LOADED,
	IN_USE,
	DUMPED,
	DUMPED_POLICIES,
	READ_BYTES,
	TRACED,
	TALLIES
};

static struct shared {
	uint64_t tally[TALLIES];
	unsigned int alive[WORKERS]; /* connections with both ends */
	unsigned int banned;         /* the module being unloaded */
	bool stop;
} * shared;

static const char *module_folder;
static uint64_t chance;

static void count(enum tally what, uint64_t by)
{
	__atomic_fetch_add(&shared->tally[what], by, __ATOMIC_RELAXED);
}

static uint64_t tallied(enum tally what)
{
	return __atomic_load_n(&shared->tally[what], __ATOMIC_RELAXED);
}

static bool stopped(void)
{
	return __atomic_load_n(&shared->stop, __ATOMIC_RELAXED);
}

/* The only source of random numbers: xorshift64*, seeded by SEED and the process's number. */
static uint32_t draw(uint32_t below)
{
	chance ^= chance >> 12;
	chance ^= chance << 25;
	chance ^= chance >> 27;
	return (uint32_t)((chance * 2685821657736338717ull) >> 32) % below;
}

static void die(const char *what)
{
	printf("Bail out! %s: %s\n", what, strerror(errno));
	fflush(stdout);
	exit(2);
}

static void pause_ms(unsigned int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000l };

	nanosleep(&t, NULL);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void enter(const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(path);
	close(fd);
}

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static unsigned int banned(void)
{
	return __atomic_load_n(&shared->banned, __ATOMIC_RELAXED);
}

/* Any policy that is not in the module being unloaded. */
static const struct choice *any_choice(void)
{
	const struct choice *c;

	do
		c = &choices[draw(ARRAY_SIZE(choices))];
	while (c->module == banned());
	return c;
}

/* --- connections ---------------------------------------------------------------------- */

struct connection {
	int fd[2]; /* client's, server's */
	int family;
	uint16_t port;
	uint64_t sent[2], got[2];
	bool paused[2];
};

static struct connection connections[EACH];
static unsigned int by_port[65536];
static unsigned int worker, alive;
static int listeners[2], poller;

static socklen_t address_of(int family, bool server, uint16_t port,
			    struct sockaddr_storage *to)
{
	struct sockaddr_in6 *six = (void *)to;
	struct sockaddr_in *four = (void *)to;

	memset(to, 0, sizeof(*to));
	if (family == AF_INET) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		inet_pton(AF_INET, server ? "10.9.0.2" : "10.9.0.1", &four->sin_addr);
		return sizeof(*four);
	}
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	inet_pton(AF_INET6, server ? "fd09::2" : "fd09::1", &six->sin6_addr);
	return sizeof(*six);
}

static bool choose(int fd)
{
	const struct choice *c = any_choice();
	bool ok = !setsockopt(fd, IPPROTO_TCP, TCP_ACK_POLICY, c->text,
			      (socklen_t)strlen(c->text));

	count(ok ? SWITCHED : REFUSED, 1);
	return ok;
}

static void watch(unsigned int index, int side, bool again)
{
	struct connection *c = &connections[index];
	struct epoll_event e = { .events = c->paused[side] ? 0 : EPOLLIN,
				 .data.u32 = index * 2 + (unsigned int)side };

	if (epoll_ctl(poller, again ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd[side], &e))
		die("epoll_ctl");
}

static void abort_on_close(int fd)
{
	struct linger now = { 1, 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

static void forget(unsigned int index)
{
	struct connection *c = &connections[index];

	alive -= c->fd[0] >= 0 && c->fd[1] >= 0;
	for (int side = 0; side < 2; side++)
		if (c->fd[side] >= 0)
			close(c->fd[side]);
	c->fd[0] = c->fd[1] = -1;
	if (by_port[c->port] == index)
		by_port[c->port] = EACH;
}

/* Resets the connection, so that no socket lingers. */
static void give_up(unsigned int index)
{
	for (int side = 0; side < 2; side++)
		if (connections[index].fd[side] >= 0)
			abort_on_close(connections[index].fd[side]);
	forget(index);
}

static void listen_at(int which)
{
	int family = which ? AF_INET6 : AF_INET, one = 1;
	struct sockaddr_storage own;
	socklen_t size = address_of(family, true, (uint16_t)(PORT + worker), &own);
	struct epoll_event e = { .events = EPOLLIN,
				 .data.u32 = 2 * EACH + (unsigned int)which };

	if (listeners[which] >= 0)
		close(listeners[which]);
	enter("server");
	listeners[which] =
		socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listeners[which], SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (draw(2))
		choose(listeners[which]);
	if (bind(listeners[which], (void *)&own, size) ||
	    listen(listeners[which], EACH) ||
	    epoll_ctl(poller, EPOLL_CTL_ADD, listeners[which], &e))
		die("listener");
}

static void open_connection(unsigned int index)
{
	struct connection *c = &connections[index];
	struct sockaddr_storage to, own;
	socklen_t size, length = sizeof(own);

	memset(c, 0, sizeof(*c));
	c->fd[1] = -1;
	c->family = draw(2) ? AF_INET6 : AF_INET;
	size = address_of(c->family, true, (uint16_t)(PORT + worker), &to);
	enter("client");
	c->fd[0] = socket(c->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (c->fd[0] < 0)
		die("socket");
	if (draw(2))
		choose(c->fd[0]);
	if ((connect(c->fd[0], (void *)&to, size) && errno != EINPROGRESS) ||
	    getsockname(c->fd[0], (void *)&own, &length)) {
		close(c->fd[0]);
		c->fd[0] = -1;
		return;
	}
	c->port = ntohs(
		((struct sockaddr_in *)&own)->sin_port); /* the same place in both */
	by_port[c->port] = index;
	watch(index, 0, false);
}

static void accept_all(int which)
{
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer);
	struct connection *c;
	unsigned int index;
	int fd;

	while ((fd = accept4(listeners[which], (void *)&peer, &length,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		index = by_port[ntohs(((struct sockaddr_in *)&peer)->sin_port)];
		c = &connections[index];
		if (index >= EACH || c->fd[0] < 0 || c->fd[1] >= 0 ||
		    (c->family == AF_INET6) != which) {
			close(fd); /* its client is gone */
			continue;
		}
		c->fd[1] = fd;
		watch(index, 1, false);
		alive++;
		count(OPENED, 1);
	}
}

static unsigned char byte_at(const struct connection *c, int side, uint64_t offset)
{
	return (unsigned char)(offset * 7 + c->port + (unsigned int)side * 31);
}

static void receive(unsigned int index, int side)
{
	static unsigned char in[16384];
	struct connection *c = &connections[index];
	ssize_t n = recv(c->fd[side], in, 1 + draw(sizeof(in)), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		forget(index);
		return;
	}
	for (ssize_t i = 0; i < n; i++)
		if (in[i] != byte_at(c, !side, c->got[side] + (uint64_t)i)) {
			count(CORRUPT, 1);
			break;
		}
	c->got[side] += (uint64_t)n;
	count(BYTES, (uint64_t)n);
}

static void transmit(unsigned int index, int side)
{
	static unsigned char out[16384];
	struct connection *c = &connections[index];
	size_t size = 1 + draw(draw(2) ? sizeof(out) : 2000);
	ssize_t n;

	for (size_t i = 0; i < size; i++)
		out[i] = byte_at(c, side, c->sent[side] + i);
	n = send(c->fd[side], out, size, MSG_NOSIGNAL);
	if (n > 0)
		c->sent[side] += (uint64_t)n;
	else if (errno != EAGAIN)
		forget(index);
}

/* One of the things that an application may do to its socket. */
static void disturb(unsigned int index, int side)
{
	struct connection *c = &connections[index];
	struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	int value = (int)draw(2), fd = c->fd[side];
	char text[256];
	socklen_t length = sizeof(text);

	switch (draw(32)) {
	case 0:
		abort_on_close(fd);
		count(RESET, 1);
		forget(index);
		break;
	case 1:
		if (!connect(fd, &unspec, sizeof(unspec)))
			count(DISCONNECTED, 1);
		forget(index);
		break;
	case 2:
		shutdown(fd, SHUT_WR);
		break;
	case 3:
		forget(index); /* a reset if there is unread data */
		break;
	case 4:
		setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &value, sizeof(value));
		break;
	case 5:
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, sizeof(value));
		break;
	case 6:
		value = 1 << (12 + draw(6));
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value));
		break;
	case 7:
	case 8:
		c->paused[side] = !c->paused[side];
		watch(index, side, true);
		break;
	case 9:
		getsockopt(fd, IPPROTO_TCP, TCP_ACK_POLICY, text, &length);
		break;
	case 10:
		send(fd, "!", 1, MSG_OOB | MSG_NOSIGNAL | MSG_DONTWAIT);
		/* the urgent byte is not part of the stream that is verified */
		forget(index);
		break;
	case 11:
		setsockopt(fd, IPPROTO_TCP, TCP_ACK_POLICY, "nosuch", 6);
		break;
	default:
		choose(fd);
	}
}

/* Makes all sockets of this worker let go of the module being unloaded. */
static void let_go(void)
{
	unsigned int gone = banned();

	if (gone == NO_MODULE)
		return;
	/* a policy locked by a route can only go with its connection */
	for (unsigned int i = 0; i < EACH; i++)
		for (int side = 0; side < 2; side++)
			if (connections[i].fd[side] >= 0 &&
			    !choose(connections[i].fd[side]))
				give_up(i);
	for (int which = 0; which < 2; which++)
		choose(listeners[which]);
	/* the server's socket may have the policy before it is accepted */
	for (unsigned int i = 0; i < EACH; i++)
		if (connections[i].fd[0] >= 0 && connections[i].fd[1] < 0)
			give_up(i);
}

static void carry(void)
{
	struct epoll_event events[64];
	unsigned int last = NO_MODULE;
	unsigned int i;

	poller = epoll_create1(EPOLL_CLOEXEC);
	listeners[0] = listeners[1] = -1;
	for (i = 0; i < ARRAY_SIZE(by_port); i++)
		by_port[i] = EACH;
	for (i = 0; i < EACH; i++)
		connections[i].fd[0] = connections[i].fd[1] = -1;
	listen_at(0);
	listen_at(1);
	while (!stopped()) {
		int n = epoll_wait(poller, events, ARRAY_SIZE(events), 5);

		for (int k = 0; k < n; k++) {
			unsigned int what = events[k].data.u32;

			if (what >= 2 * EACH)
				accept_all((int)(what - 2 * EACH));
			else if (connections[what / 2].fd[what % 2] >= 0)
				receive(what / 2, (int)(what % 2));
		}
		for (i = 0; i < EACH; i++)
			if (connections[i].fd[0] < 0)
				open_connection(i);
		for (i = 0; i < 40; i++) {
			unsigned int index = draw(EACH);
			int side = (int)draw(2);

			if (connections[index].fd[0] < 0 ||
			    connections[index].fd[1] < 0)
				continue;
			if (draw(8))
				transmit(index, side);
			else
				disturb(index, side);
		}
		if (!draw(200))
			listen_at((int)draw(2));
		if (banned() != last) {
			last = banned();
			let_go();
		}
		__atomic_store_n(&shared->alive[worker], alive, __ATOMIC_RELAXED);
	}
	for (i = 0; i < EACH; i++)
		give_up(i);
}

/* --- sysctls and routes --------------------------------------------------------------- */

static void set_default(const char *text)
{
	if (put("/proc/sys/net/ipv4/tcp_ack_policy", text))
		count(DEFAULTS, 1);
}

static void set_route(bool client, int family, const char *policy)
{
	struct sockaddr_storage peer;
	struct destination to = { .family = family,
				  .device = client ? "client" : "server" };

	address_of(family, client, 0, &peer);
	to.address = family == AF_INET
			     ? (void *)&((struct sockaddr_in *)&peer)->sin_addr
			     : (void *)&((struct sockaddr_in6 *)&peer)->sin6_addr;
	if (policy) {
		if (route(RTM_NEWROUTE, &to, policy, !draw(4)))
			count(ROUTES, 1);
	} else {
		route(RTM_DELROUTE, &to, NULL, false);
	}
}

static void govern(void)
{
	char path[128], value[16];
	unsigned int last = NO_MODULE;

	while (!stopped()) {
		bool client = draw(2);
		int family = draw(2) ? AF_INET6 : AF_INET;
		const struct choice *c = any_choice();

		enter(client ? "client" : "server");
		switch (draw(6)) {
		case 0:
		case 1:
			set_default(c->text);
			break;
		case 2:
			set_route(client, family, NULL);
			break;
		case 3:
			snprintf(path, sizeof(path),
				 "/proc/sys/net/ipv4/tcp_ack/delayed/%s",
				 draw(2) ? "segments" : "delay_ms");
			snprintf(value, sizeof(value), "%u", draw(600));
			put(path, value);
			break;
		case 4:
			put("/proc/sys/net/ipv4/tcp_allowed_ack_policies",
			    draw(2) ? "every delayed"
				    : "a3 csa3 random every delayed greedy");
			break;
		default:
			/* a route can have a policy's name only, not parameters */
			if (!strchr(c->text, ':') && c->module != NO_MODULE)
				set_route(client, family, c->text);
		}
		if (banned() != last) {
			last = banned();
			for (client = 0;; client = 1) {
				enter(client ? "client" : "server");
				set_default("stock");
				set_route(client, AF_INET, NULL);
				set_route(client, AF_INET6, NULL);
				if (client)
					break;
			}
		}
		pause_ms(draw(20));
	}
	for (int client = 0; client < 2; client++) {
		enter(client ? "client" : "server");
		set_default("stock");
		set_route(client, AF_INET, NULL);
		set_route(client, AF_INET6, NULL);
	}
}

/* --- readers -------------------------------------------------------------------------- */

static void dumped(struct nlmsghdr *h, void *unused)
{
	(void)unused;
	count(DUMPED, 1);
	if (diag_text(h, INET_ACK_POLICY_CHOICE))
		count(DUMPED_POLICIES, 1);
}

static uint64_t read_all(const char *path)
{
	static char text[65536];
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	uint64_t all = 0;
	ssize_t n;

	while (fd >= 0 && all < 1 << 20 && (n = read(fd, text, sizeof(text))) > 0)
		all += (uint64_t)n;
	if (fd >= 0)
		close(fd);
	return all;
}

static void observe(void)
{
	static const char *const files[] = {
		"/proc/thread-self/net/netstat",
		"/proc/thread-self/net/tcp",
		"/proc/thread-self/net/tcp6",
		"/proc/thread-self/net/route",
		"/proc/sys/net/ipv4/tcp_ack_policy",
		"/proc/sys/net/ipv4/tcp_available_ack_policies",
		"/proc/sys/net/ipv4/tcp_allowed_ack_policies",
		"/proc/modules",
	};
	struct {
		struct nlmsghdr h;
		struct rtmsg r;
	} routes = {
		.h = { sizeof(routes), RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, 0, 0 },
	};
	glob_t found;

	put("/sys/kernel/tracing/events/tcp/tcp_ack_order/enable", "1");
	while (!stopped()) {
		enter(draw(2) ? "client" : "server");
		diag_dump(draw(2) ? AF_INET6 : AF_INET, ~0u, dumped, NULL);
		netlink_ask(NETLINK_ROUTE, &routes.h, NULL, NULL);
		for (size_t i = 0; i < ARRAY_SIZE(files); i++)
			count(READ_BYTES, read_all(files[i]));
		if (!glob("/proc/sys/net/ipv4/tcp_ack/*/*", 0, NULL, &found)) {
			for (size_t i = 0; i < found.gl_pathc; i++)
				count(READ_BYTES, read_all(found.gl_pathv[i]));
			globfree(&found);
		}
		count(TRACED, read_all("/sys/kernel/tracing/trace_pipe"));
		pause_ms(draw(50));
	}
	put("/sys/kernel/tracing/events/tcp/tcp_ack_order/enable", "0");
}

/* --- namespaces ----------------------------------------------------------------------- */

/* Opens connections in a namespace that ends, with them in it, when this process exits. */
static void live_and_die(void)
{
	static char bytes[30000];
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t length = sizeof(a);
	int server, client[8], accepted[8];
	unsigned int i, pairs = 1 + draw(8);

	if (unshare(CLONE_NEWNET) || !loopback_up())
		die("unshare");
	if (draw(2))
		put("/proc/sys/net/ipv4/tcp_ack_policy", any_choice()->text);
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(server, (void *)&a, sizeof(a)) || listen(server, 8) ||
	    getsockname(server, (void *)&a, &length))
		die("loopback");
	for (i = 0; i < pairs; i++) {
		client[i] = socket(AF_INET, SOCK_STREAM, 0);
		if (draw(2))
			choose(client[i]);
		if (connect(client[i], (void *)&a, sizeof(a)))
			die("connect");
		accepted[i] = accept(server, NULL, NULL);
		send(client[i], bytes, draw(sizeof(bytes)),
		     MSG_DONTWAIT | MSG_NOSIGNAL);
		if (draw(2))
			recv(accepted[i], bytes, sizeof(bytes), MSG_DONTWAIT);
		if (draw(2))
			choose(accepted[i]);
		if (draw(2)) /* otherwise orphans keep the namespace alive for a while */
			abort_on_close(accepted[i]);
	}
	_exit(0);
}

static void populate(void)
{
	while (!stopped()) {
		pid_t child = fork();
		int status;

		if (!child) {
			for (unsigned int i = draw(4); i; i--)
				draw(2);
			live_and_die();
		}
		draw(2); /* so that the next child draws other numbers */
		if (child < 0 || waitpid(child, &status, 0) < 0 || status)
			die("namespace");
		count(NAMESPACES, 1);
		pause_ms(draw(20));
	}
}

/* --- modules -------------------------------------------------------------------------- */

static bool load(const char *name)
{
	char path[512];
	int fd;
	bool ok;

	snprintf(path, sizeof(path), "%s/tcp_ack_%s.ko", module_folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ok = fd >= 0 && !syscall(SYS_finit_module, fd, "", 0);
	if (!ok && fd >= 0 && errno == EEXIST)
		ok = true;
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool unload(const char *name)
{
	char module[32];

	snprintf(module, sizeof(module), "tcp_ack_%s", name);
	return !syscall(SYS_delete_module, module, O_NONBLOCK);
}

static void renew(void)
{
	while (!stopped()) {
		unsigned int which = draw(NO_MODULE);
		double until = now_s() + 20;

		/* probably in use: its users are told to release it */
		if (!unload(modules[which]))
			count(IN_USE, 1);
		else
			count(UNLOADED, 1);
		__atomic_store_n(&shared->banned, which, __ATOMIC_RELAXED);
		while (!stopped() && now_s() < until) {
			if (unload(modules[which])) {
				count(UNLOADED, 1);
				break;
			}
			if (errno == ENOENT)
				break;
			pause_ms(10);
		}
		pause_ms(draw(100));
		__atomic_store_n(&shared->banned, NO_MODULE, __ATOMIC_RELAXED);
		/* meanwhile choosing one of its policies may load it */
		if (draw(2))
			pause_ms(500);
		if (load(modules[which]))
			count(LOADED, 1);
		pause_ms(draw(300));
	}
}

/* --- the run ------------------------------------------------------------------------ */

static int tests, failures;

static void check(bool ok, const char *claim)
{
	printf("%sok %d %s\n", ok ? "" : "not ", ++tests, claim);
	failures += !ok;
	fflush(stdout);
}

static void start(void (*work)(void), unsigned int number, uint64_t seed)
{
	pid_t child = fork();

	if (child < 0)
		die("fork");
	if (child)
		return;
	chance = seed * 0x9e3779b97f4a7c15ull + number + 1;
	for (int i = 0; i < 8; i++)
		draw(2);
	worker = number;
	work();
	_exit(0);
}

static bool all_unloaded(double until)
{
	unsigned int gone = 0, i;

	while (gone != (1u << NO_MODULE) - 1 && now_s() < until) {
		for (i = 0; i < NO_MODULE; i++)
			if (!(gone & 1u << i) &&
			    (unload(modules[i]) || errno == ENOENT))
				gone |= 1u << i;
		pause_ms(100);
	}
	for (i = 0; i < NO_MODULE; i++)
		if (!(gone & 1u << i))
			printf("# module tcp_ack_%s is still in use\n", modules[i]);
	return gone == (1u << NO_MODULE) - 1 && unload("core");
}

static bool file_has(const char *path, const char *text)
{
	static char all[1 << 20];
	int fd = open(path, O_RDONLY);
	size_t length = 0;
	ssize_t n;

	while (fd >= 0 && length < sizeof(all) - 1 &&
	       (n = read(fd, all + length, sizeof(all) - 1 - length)) > 0)
		length += (size_t)n;
	all[length] = 0;
	if (fd >= 0)
		close(fd);
	return strstr(all, text);
}

/* kmemleak reports an object only when a scan finds it unchanged since the scan before. */
static bool nothing_leaked(void)
{
	static char line[4096];
	FILE *found;
	bool none = true;

	for (int i = 0; i < 3; i++) {
		pause_ms(6000); /* younger objects are not reported */
		if (!put("/sys/kernel/debug/kmemleak", "scan"))
			return false;
	}
	found = fopen("/sys/kernel/debug/kmemleak", "r");
	while (found && fgets(line, sizeof(line), found)) {
		printf("# %s", line);
		none = false;
	}
	if (found)
		fclose(found);
	return found && none;
}

/* How many events of each kind a run needs. */
static const struct {
	enum tally what;
	uint64_t least;
	const char *claim;
} quotas[] = {
	{ OPENED, 2 * CONNECTIONS, "connections are opened and closed" },
	{ SWITCHED, 10 * CONNECTIONS, "policies are switched on live sockets" },
	{ DEFAULTS, 100, "defaults are changed" },
	{ ROUTES, 100, "routes are changed" },
	{ RESET, 50, "connections are reset" },
	{ DISCONNECTED, 50, "connections are disconnected" },
	{ NAMESPACES, 100, "namespaces are created and removed" },
	{ UNLOADED, 10, "modules are unloaded" },
	{ LOADED, 10, "modules are loaded" },
	{ IN_USE, 1, "a module in use cannot be unloaded" },
	{ DUMPED_POLICIES, 1000, "inet_diag is read" },
	{ TRACED, 1, "the tracepoint is read" },
};

static bool enough(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(quotas); i++)
		if (tallied(quotas[i].what) < quotas[i].least)
			return false;
	return true;
}

int main(int argc, char *argv[])
{
	const unsigned int crowd =
		CONNECTIONS * 95 / 100; /* some are always being replaced */
	unsigned int most = 0, now, i;
	double begin = now_s(), spent;
	uint64_t seed;
	int status;

	if (argc != 5) {
		fprintf(stderr, "usage: stress SECONDS MOST SEED MODULES\n");
		return 2;
	}
	seed = strtoull(argv[3], NULL, 10);
	module_folder = argv[4];
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	shared->banned = NO_MODULE;
	if (!load("core")) /* what the others need */
		die("core");
	for (i = 0; i < NO_MODULE; i++)
		if (!load(modules[i]))
			die(modules[i]);
	for (i = 0; i < WORKERS; i++)
		start(carry, i, seed);
	start(govern, i++, seed);
	start(observe, i++, seed);
	start(populate, i++, seed);
	start(populate, i++, seed);
	start(renew, i++, seed);
	do {
		for (now = i = 0; i < WORKERS; i++)
			now += __atomic_load_n(&shared->alive[i], __ATOMIC_RELAXED);
		most = now > most ? now : most;
		pause_ms(200);
		spent = now_s() - begin;
	} while (spent < atof(argv[2]) &&
		 (spent < atof(argv[1]) || most < crowd || !enough()));
	__atomic_store_n(&shared->stop, true, __ATOMIC_RELAXED);
	for (i = 0, now = 0; wait(&status) > 0;)
		now += status != 0;
	printf("# %.0f s; %u connections at once; opened %llu, %llu bytes; switched %llu, refused %llu; "
	       "resets %llu, disconnects %llu\n",
	       spent, most, (unsigned long long)tallied(OPENED),
	       (unsigned long long)tallied(BYTES),
	       (unsigned long long)tallied(SWITCHED),
	       (unsigned long long)tallied(REFUSED), (unsigned long long)tallied(RESET),
	       (unsigned long long)tallied(DISCONNECTED));
	printf("# defaults %llu, routes %llu; namespaces %llu; modules unloaded %llu, loaded %llu, "
	       "in use %llu\n",
	       (unsigned long long)tallied(DEFAULTS),
	       (unsigned long long)tallied(ROUTES),
	       (unsigned long long)tallied(NAMESPACES),
	       (unsigned long long)tallied(UNLOADED),
	       (unsigned long long)tallied(LOADED),
	       (unsigned long long)tallied(IN_USE));
	printf("# dumped %llu sockets, %llu of them with a policy; read %llu bytes, traced %llu\n",
	       (unsigned long long)tallied(DUMPED),
	       (unsigned long long)tallied(DUMPED_POLICIES),
	       (unsigned long long)tallied(READ_BYTES),
	       (unsigned long long)tallied(TRACED));
	check(!now, "no process failed");
	check(!tallied(CORRUPT), "data arrives unchanged");
	check(most >= crowd,
	      "a thousand connections are open at once, save those being replaced");
	for (i = 0; i < ARRAY_SIZE(quotas); i++)
		check(tallied(quotas[i].what) >= quotas[i].least, quotas[i].claim);
	check(all_unloaded(now_s() + 120), "at the end no module is in use");
	if (access("/sys/kernel/debug/kmemleak", F_OK))
		printf("# no kmemleak in this kernel\n");
	else
		check(nothing_leaked(), "kmemleak finds nothing");
	if (access("/proc/lockdep_stats", F_OK))
		printf("# no lockdep in this kernel\n");
	else
		check(file_has("/proc/lockdep_stats",
			       "debug_locks:                             1"),
		      "lockdep is still enabled");
	check(file_has("/proc/sys/kernel/tainted", "0\n"),
	      "the kernel is not tainted by a warning");
	printf("1..%d\n", tests);
	return failures ? 1 : 0;
}
