/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "flow.h"
#include "kernel-tcp.h" /* include/uapi/linux/tcp.h of the kernel that runs */
#include "socket.h"
#include "system.h"
#include "text.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FLOWS_MAX 4096
#define CLIENT_PORT 20001
/* Sums and products of a flow's values fit into 64 bits. */
#define FLOW_BYTES_MOST ((uint64_t)1 << 60)
#define MESSAGE_BYTES_MOST ((uint64_t)1 << 40)
#define COUNT_MOST ((uint64_t)1 << 20) /* of writes in a message, of planned writes */
#define RATE_MOST_BPS ((uint64_t)1 << 50)
#define WINDOW_MOST_BYTES (1 << 28)

struct flow *flows;
size_t flows_count;

static bool set_number(struct flow *f, const char *key, const char *value)
{
	struct application *app = &f->app;
	const struct {
		const char *name;
		uint64_t *field, most;
	} numbers[] = {
		{ "start", &app->start_ns, TIME_MOST_NS },
		{ "bytes", &app->bytes, FLOW_BYTES_MOST },
		{ "request", &app->request, MESSAGE_BYTES_MOST },
		{ "size", &app->size, MESSAGE_BYTES_MOST },
		{ "gap", &app->gap_ns, TIME_MOST_NS },
		{ "count", &app->count, UINT64_MAX },
		{ "writes", &app->writes, COUNT_MOST },
		{ "write", &app->write_bytes, MESSAGE_BYTES_MOST },
		{ "lag", &app->lag_ns, TIME_MOST_NS },
		{ "rate", &app->reader_bps, RATE_MOST_BPS },
		{ "turn", &app->turn_bytes, MESSAGE_BYTES_MOST },
		{ "copies", &app->copies, 1 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!strcmp(key, numbers[i].name)) {
			*numbers[i].field = number(value, numbers[i].most);
			return true;
		}
	}
	return false;
}

static bool set_socket_option(struct flow *f, const char *key, const char *value)
{
	struct socket_options *o = &f->options;
	const struct {
		const char *name;
		int *field, most;
	} numbers[] = {
		{ "nodelay", &o->nodelay, 1 },
		{ "send-buffer", &o->send_buffer, INT32_MAX },
		{ "receive-buffer", &o->receive_buffer, INT32_MAX },
		{ "window", &o->window, WINDOW_MOST_BYTES },
		{ "steady-window", &o->steady_window, WINDOW_MOST_BYTES },
		{ "pacing", &o->pacing, 1 },
		{ "pace", &o->pace_bytes_per_s, INT32_MAX },
	};
	const struct {
		const char *name;
		char *field;
		size_t size;
	} texts[] = {
		{ "congestion", o->congestion_control, sizeof(o->congestion_control) },
		{ "policy", o->policy, sizeof(o->policy) },
		{ "peer-policy", o->peer_policy, sizeof(o->peer_policy) },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (!strcmp(key, numbers[i].name)) {
			*numbers[i].field =
				(int)number(value, (uint64_t)numbers[i].most);
			return true;
		}
	}
	for (i = 0; i < ARRAY_SIZE(texts); i++) {
		if (!strcmp(key, texts[i].name)) {
			copy_word(texts[i].field, texts[i].size, value);
			return true;
		}
	}
	return false;
}

static enum application_kind application_of(const char *name)
{
	static const char *const names[] = { [BULK] = "bulk",
					     [ASK] = "ask",
					     [MESSAGES] = "messages",
					     [SCHEDULE] = "schedule" };

	return (enum application_kind)index_of(name, names, ARRAY_SIZE(names),
					       "application");
}

static void set_key(struct flow *f, const char *key, const char *value)
{
	if (!strcmp(key, "group")) {
		f->group = (unsigned)number(value, FLOWS_MAX);
	} else if (!strcmp(key, "direction")) {
		f->tx = strcmp(value, "up") ? AT_SERVER : AT_CLIENT;
		f->rx = !f->tx;
	} else if (!strcmp(key, "app")) {
		f->app.kind = application_of(value);
	} else if (!set_number(f, key, value) && !set_socket_option(f, key, value)) {
		die("a flow has no key \"%s\"", key);
	}
}

void flow_add(char *const words[], int count)
{
	struct flow *f;
	int i;

	if (!flows)
		flows = calloc(FLOWS_MAX, sizeof(*flows));
	if (!flows || flows_count == FLOWS_MAX)
		die("more than %d flows", FLOWS_MAX);
	f = &flows[flows_count];
	f->id = (unsigned)flows_count++;
	f->tx = AT_SERVER;
	f->rx = AT_CLIENT;
	f->connection = (struct connection){ .fd = { -1, -1 }, .listening = -1 };
	for (i = 0; i < count; i++) {
		char *value = strchr(words[i], '=');

		if (!value)
			die("flow: \"%s\" is not of the form key=value", words[i]);
		*value++ = 0;
		set_key(f, words[i], value);
	}
}

void flow_add_write(char *const words[])
{
	uint64_t index = number(words[1], FLOWS_MAX);
	const struct planned_write write = { number(words[2], TIME_MOST_NS),
					     number(words[3], MESSAGE_BYTES_MOST) };
	struct application *app;

	if (index >= flows_count)
		die("there is no flow %s", words[1]);
	app = &flows[index].app;
	if (app->scheduled == COUNT_MOST)
		die("flow %s has more than %zu writes", words[1], app->scheduled);
	/* room for the next power of two */
	if (!(app->scheduled & (app->scheduled - 1))) {
		size_t room = app->scheduled ? 2 * app->scheduled : 1;

		app->schedule = realloc(app->schedule, room * sizeof(*app->schedule));
		if (!app->schedule)
			die("no memory for writes");
	}
	app->schedule[app->scheduled++] = write;
}

static bool elsewhere[SIDES];

bool side_here(enum side side)
{
	return !elsewhere[side];
}

bool side_alone(void)
{
	return elsewhere[AT_CLIENT] || elsewhere[AT_SERVER];
}

void side_is_elsewhere(enum side side)
{
	elsewhere[side] = true;
}

const char *side_name(enum side side)
{
	return side == AT_CLIENT ? "client" : "server";
}

struct sockaddr_in flow_address(const struct flow *f, enum side side)
{
	unsigned port = (side == AT_CLIENT ? CLIENT_PORT : SERVER_PORT) + f->id;
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port) };

	inet_pton(AF_INET, side == AT_CLIENT ? CLIENT_ADDRESS : SERVER_ADDRESS,
		  &address.sin_addr);
	return address;
}

static void set_sender_options(int fd, const struct socket_options *o)
{
	if (o->send_buffer)
		set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, o->send_buffer,
			   "send buffer");
	if (o->pacing ||
	    o->pace_bytes_per_s) /* any finite rate switches TCP's own pacing on */
		set_option(fd, SOL_SOCKET, SO_MAX_PACING_RATE,
			   o->pace_bytes_per_s ? o->pace_bytes_per_s : INT32_MAX,
			   "pacing");
	if (*o->peer_policy)
		choose_policy(fd, o->peer_policy);
}

static void set_receiver_options(int fd, const struct socket_options *o)
{
	/* a fixed buffer stops autotuning; Linux cannot bound a sender's window for good */
	int window = o->window ? o->window : o->steady_window;
	int buffer = o->receive_buffer ? o->receive_buffer : 4 * window;

	if (buffer)
		set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, buffer, "receive buffer");
	if (window)
		set_option(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, window, "window");
	if (*o->policy)
		choose_policy(fd, o->policy);
}

void flow_keep_window(const struct flow *f)
{
	if (f->options.steady_window)
		set_option(f->connection.fd[f->rx], IPPROTO_TCP, TCP_WINDOW_CLAMP,
			   f->options.steady_window, "steady window");
}

int flow_socket(const struct flow *f, enum side side)
{
	const struct socket_options *o = &f->options;
	struct sockaddr_in own = flow_address(f, side);
	int fd;

	enter(side_name(side));
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket: %s", strerror(errno));
	if (*o->congestion_control &&
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, o->congestion_control,
		       (socklen_t)strlen(o->congestion_control)))
		die("congestion control %s: %s", o->congestion_control,
		    strerror(errno));
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
	if (o->nodelay)
		set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
	if (side == f->tx)
		set_sender_options(fd, o);
	else
		set_receiver_options(fd, o);
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)))
		die("port %u: %s", ntohs(own.sin_port), strerror(errno));
	enter("-");
	return fd;
}
