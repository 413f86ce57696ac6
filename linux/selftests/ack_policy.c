// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The user interface of ACK policies: sysctls, TCP_ACK_POLICY, RTAX_ACK_POLICY,
 * inet_diag, counters.  TAP on stdout.  Runs as root over loopback, in a network
 * namespace of its own:
 *
 *	unshare -n ./ack_policy
 */
#define _GNU_SOURCE
#include "netlink.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

static int tests, failures;

static void check(bool ok, const char *claim)
{
	printf("%sok %d %s\n", ok ? "" : "not ", ++tests, claim);
	if (!ok) {
		printf("# errno: %s\n", strerror(errno));
		failures++;
	}
	fflush(stdout);
}

static bool put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	int saved = errno;

	if (fd >= 0)
		close(fd);
	errno = saved;
	return ok;
}

static const char *get(const char *path)
{
	static char text[65536];
	int fd = open(path, O_RDONLY);
	ssize_t n, all = 0;

	while (fd >= 0 && (n = read(fd, text + all, sizeof(text) - 1 - all)) > 0)
		all += n;
	text[all] = 0;
	text[strcspn(text, "\n")] =
		strchr(path, '/') && strstr(path, "netstat") ? '\n' : 0;
	if (fd >= 0)
		close(fd);
	return text;
}

#define SYSCTL(name) "/proc/sys/net/ipv4/" name
#define DEFAULT SYSCTL("tcp_ack_policy")

static bool is(const char *path, const char *text)
{
	const char *found = get(path);

	if (strcmp(found, text))
		printf("# %s: \"%s\", expected \"%s\"\n", path, found, text);
	return !strcmp(found, text);
}

static bool choose(int s, const char *choice)
{
	return !setsockopt(s, IPPROTO_TCP, TCP_ACK_POLICY, choice, strlen(choice));
}

static const char *get_choice(int s)
{
	static char text[256];
	socklen_t len = sizeof(text);

	return getsockopt(s, IPPROTO_TCP, TCP_ACK_POLICY, text, &len) ? "" : text;
}

static bool chosen(int s, const char *choice)
{
	const char *text = get_choice(s);

	if (strcmp(text, choice))
		printf("# socket has \"%s\", expected \"%s\"\n", text, choice);
	return !strcmp(text, choice);
}

/* A connected pair; `listeners` is the policy of the listener, or NULL. */
static void pair(const char *listeners, int *client, int *server)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	*client = socket(AF_INET, SOCK_STREAM, 0);
	*server = -1;
	if ((listeners && !choose(listener, listeners)) ||
	    bind(listener, (void *)&a, sizeof(a)) || listen(listener, 1) ||
	    getsockname(listener, (void *)&a, &len) ||
	    connect(*client, (void *)&a, sizeof(a)))
		perror("# pair");
	else
		*server = accept(listener, NULL, NULL);
	close(listener);
}

static void part(int client, int server)
{
	close(client);
	close(server);
}

/* From client to server; true if the data arrives unchanged. */
static bool transfer(int client, int server, size_t bytes,
		     void (*meanwhile)(int server))
{
	static unsigned char out[65536], in[65536];
	size_t i, done = 0;
	ssize_t n;
	int status;
	pid_t child = fork();

	if (!child) {
		for (i = 0; i < sizeof(out); i++)
			out[i] = i * 7;
		for (done = 0; done < bytes; done += n) {
			size_t most = bytes - done;
			size_t from = done % sizeof(out);

			if (most > sizeof(out) - from)
				most = sizeof(out) - from;
			n = write(client, out + from, most);
			if (n < 0)
				_exit(1);
		}
		_exit(0);
	}
	while (done < bytes && (n = read(server, in, sizeof(in))) > 0) {
		for (i = 0; i < (size_t)n; i++)
			if (in[i] != (unsigned char)((done + i) % sizeof(in) * 7))
				return false;
		done += n;
		if (meanwhile)
			meanwhile(server);
	}
	waitpid(child, &status, 0);
	return done == bytes && !status;
}

static int switches;

static void switch_policy(int server)
{
	static const char *const choices[] = {
		"delayed:segments=8",
		"stock",
		"ratelimit",
		"every",
		"a3",
		"linux",
		"dynamic",
		"bsd",
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

static int choose_delayed(void)
{
	return choose(socket(AF_INET, SOCK_STREAM, 0), "delayed") ? 0 : errno;
}

int main(void)
{
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
	check(put(SYSCTL("tcp_allowed_ack_policies"),
		  "a3 a3fewer csa3 bsd delayed dynamic every greedy linux ratelimit"),
	      "all policies can be allowed");
	check(unprivileged(choose_delayed) == 0,
	      "anybody can choose an allowed policy");

	check(put(DEFAULT, "delayed:segments=8") &&
		      is(DEFAULT, "delayed:segments=8,delay_ms=200"),
	      "the default can be a policy with parameters");
	pair(NULL, &c, &s);
	check(chosen(s, "delayed:segments=8,delay_ms=200") &&
		      chosen(c, "delayed:segments=8,delay_ms=200"),
	      "both ends of a connection have the default policy");
	check(diag_shows("delayed:segments=8,delay_ms=200", false),
	      "inet_diag shows the policy");
	check(transfer(c, s, 1000000, NULL), "data arrives unchanged");
	check(choose(s, "ratelimit") && diag_shows(get_choice(s), true),
	      "inet_diag shows the state of a policy");
	part(c, s);

	check(put(SYSCTL("tcp_ack/delayed/delay_ms"), "40") &&
		      is(DEFAULT, "delayed:segments=8,delay_ms=40"),
	      "a parameter that a choice does not state is taken from its sysctl");
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
	pair("delayed", &c, &s);
	check(chosen(s, "every") && chosen(c, "every"),
	      "the route's policy takes precedence over the listener's");
	check(choose(s, "delayed") && chosen(s, "delayed:segments=2,delay_ms=40"),
	      "a socket can change a route's policy that is not locked");
	part(c, s);
	check(route(RTM_NEWROUTE, &to_loopback, "every", true),
	      "a route can lock its policy");
	pair(NULL, &c, &s);
	check(!choose(s, "delayed") && errno == EPERM && chosen(s, "every"),
	      "a socket cannot change a policy that the route locks");
	check(transfer(c, s, 1000000, NULL),
	      "data arrives unchanged over a route with a locked policy");
	part(c, s);
	check(route(RTM_NEWROUTE, &to_loopback, NULL, false),
	      "the policy can be removed from the route");
	pair(NULL, &c, &s);
	check(chosen(s, "stock"), "connections are then stock again");
	part(c, s);

	check(strstr(get("/proc/net/netstat"), "TcpAck: every-segment segment-count"),
	      "the counters are named after the reasons");

	printf("1..%d\n", tests);
	return failures ? 1 : 0;
}
