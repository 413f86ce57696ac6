/* SPDX-License-Identifier: MIT */
/*
 * Traffic: what the applications at both ends of each flow do, in one loop over one clock.
 *
 * The client connects, the server listens, the data goes either way. A write of the application is a
 * send() of its own as far as the socket takes it; the rest follows when there is room. A message
 * (a request's answer, a group of writes, a whole flow) is complete when its last byte was read.
 */
#define _GNU_SOURCE
#include "lab.h"
#include "kernel-tcp.h" /* include/uapi/linux/tcp.h of the kernel that is run */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FLOWS_MAX 4096
#define SERVER_PORT 5001
#define CLIENT_PORT 20001
#define CLIENT "10.0.0.1"
#define SERVER "10.0.0.2"
#define NEVER UINT64_MAX
#define CHUNK_BYTES (256u << 10)
#define DRAIN_NS 50000000ull
#define SAMPLED_FLOWS 16
#define PINGS_MAX (1u << 16)
#define PING_PLACE UINT64_MAX

enum app { BULK, ASK, MESSAGES, SCHEDULE };
enum side { AT_CLIENT, AT_SERVER };

/* Bytes an application has written and the socket has not taken yet. */
struct output {
	uint64_t size; /* of one write; the last may be shorter */
	uint64_t left; /* of the write under way */
	uint64_t more; /* in writes that follow */
};

struct message {
	uint64_t end, since_ns;
};

struct flow {
	unsigned id, group;
	enum app app;
	bool started, connected, first_sent, finished, completed, closed;
	int fd[2], listening;
	enum side tx, rx;
	struct output out[2];
	/* application */
	uint64_t start_ns, bytes, request, size, gap_ns, count, writes, write;
	uint64_t *at_ns, *at_bytes;
	size_t planned, taken;
	uint64_t written, answered, asked_ns, done;
	struct message *messages;
	size_t head, tail, room;
	/* socket options */
	char congestion_control[16], policy[256], peer_policy[256];
	int nodelay, send_buffer, receive_buffer, window, pacing;
	/* reader */
	uint64_t lag_ns, reader_bps, credit_ns;
	bool reading, ended[2];
	uint64_t read[2];
	/* what is told */
	uint64_t first_ns, last_ns;
};

enum timer_kind { START, WRITE, QUESTION, READ, PROGRAM, DRAIN, SAMPLE, PING, STOP };
struct timer {
	uint64_t at_ns, order;
	enum timer_kind kind;
	size_t index;
};

static struct flow *flows;
static size_t flows_count;
static struct timer *timers;
static size_t timers_count, timers_room;
static uint64_t timers_made, base_ns, now_ns;
static struct {
	char *namespace_name, *words[64];
} programs[64];
static size_t programs_count;
static uint64_t program_times[64];
static int poller, diags[2]; /* diags by side */
static FILE *results, *samples;
static char zeros[CHUNK_BYTES];
static struct {
	uint64_t interval_ns, sent_ns[PINGS_MAX], came_ns[PINGS_MAX];
	unsigned count;
	int fd;
} pings;

/* --- timers ------------------------------------------------------------------------------ */

static bool earlier(const struct timer *a, const struct timer *b)
{
	return a->at_ns < b->at_ns || (a->at_ns == b->at_ns && a->order < b->order);
}

static void timer_set(uint64_t at_ns, enum timer_kind kind, size_t index)
{
	size_t i = timers_count++;
	struct timer t = { at_ns, timers_made++, kind, index };

	if (timers_count > timers_room) {
		timers_room = 2 * timers_room + 64;
		timers = realloc(timers, timers_room * sizeof(*timers));
		if (!timers)
			die("no memory for timers");
	}
	for (; i && earlier(&t, &timers[(i - 1) / 2]); i = (i - 1) / 2)
		timers[i] = timers[(i - 1) / 2];
	timers[i] = t;
}

static struct timer timer_pop(void)
{
	struct timer first = timers[0];
	struct timer last = timers[--timers_count];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= timers_count)
			break;
		if (child + 1 < timers_count &&
		    earlier(&timers[child + 1], &timers[child]))
			child++;
		if (!earlier(&timers[child], &last))
			break;
		timers[i] = timers[child];
		i = child;
	}
	timers[i] = last;
	return first;
}

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* --- the steps that describe flows ------------------------------------------------------- */

static struct flow *find_flow(const char *id)
{
	uint64_t index = number(id);

	if (index >= flows_count)
		die("steps: flow %s is unknown", id);
	return &flows[index];
}

static void set_key(struct flow *f, const char *key, const char *value)
{
	static const char *const apps[] = { "bulk", "ask", "messages", "schedule" };
	const struct {
		const char *name;
		uint64_t *field;
	} numbers[] = {
		{ "start", &f->start_ns },  { "bytes", &f->bytes },
		{ "request", &f->request }, { "size", &f->size },
		{ "gap", &f->gap_ns },      { "count", &f->count },
		{ "writes", &f->writes },   { "write", &f->write },
		{ "lag", &f->lag_ns },      { "rate", &f->reader_bps },
	};
	const struct {
		const char *name;
		int *field;
	} options[] = {
		{ "nodelay", &f->nodelay },
		{ "send-buffer", &f->send_buffer },
		{ "receive-buffer", &f->receive_buffer },
		{ "window", &f->window },
		{ "pacing", &f->pacing },
	};
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (!strcmp(key, numbers[i].name)) {
			*numbers[i].field = number(value);
			return;
		}
	}
	for (i = 0; i < sizeof(options) / sizeof(*options); i++) {
		if (!strcmp(key, options[i].name)) {
			*options[i].field = (int)number(value);
			return;
		}
	}
	if (!strcmp(key, "group")) {
		f->group = (unsigned)number(value);
	} else if (!strcmp(key, "direction")) {
		f->tx = strcmp(value, "up") ? AT_SERVER : AT_CLIENT;
		f->rx = !f->tx;
	} else if (!strcmp(key, "congestion")) {
		snprintf(f->congestion_control, sizeof(f->congestion_control), "%s",
			 value);
	} else if (!strcmp(key, "policy")) {
		snprintf(f->policy, sizeof(f->policy), "%s", value);
	} else if (!strcmp(key, "peer-policy")) {
		snprintf(f->peer_policy, sizeof(f->peer_policy), "%s", value);
	} else if (!strcmp(key, "app")) {
		for (i = 0; i < 4 && strcmp(value, apps[i]); i++)
			;
		if (i == 4)
			die("steps: \"%s\" is no application", value);
		f->app = (enum app)i;
	} else {
		die("steps: flow: \"%s\" is no key", key);
	}
}

void traffic_flow(char *const words[], int count)
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
	f->fd[0] = f->fd[1] = f->listening = -1;
	for (i = 0; i < count; i++) {
		char *value = strchr(words[i], '=');

		if (!value)
			die("steps: flow: \"%s\" is no key=value", words[i]);
		*value++ = 0;
		set_key(f, words[i], value);
	}
}

void traffic_write_at(const char *flow, const char *time_ns, const char *bytes)
{
	struct flow *f = find_flow(flow);

	if (!(f->planned & (f->planned - 1))) {
		size_t room = f->planned ? 2 * f->planned : 1;

		f->at_ns = realloc(f->at_ns, room * sizeof(*f->at_ns));
		f->at_bytes = realloc(f->at_bytes, room * sizeof(*f->at_bytes));
		if (!f->at_ns || !f->at_bytes)
			die("no memory for writes");
	}
	f->at_ns[f->planned] = number(time_ns);
	f->at_bytes[f->planned++] = number(bytes);
}

void traffic_program_at(uint64_t time_ns, const char *namespace_name,
			char *const words[])
{
	size_t i;

	if (programs_count == 64)
		die("steps: more than 64 programs in a run");
	program_times[programs_count] = time_ns;
	programs[programs_count].namespace_name = strdup(namespace_name);
	for (i = 0; words[i]; i++)
		programs[programs_count].words[i] = strdup(words[i]);
	programs_count++;
}

void traffic_ping(uint64_t interval_ns)
{
	if (!interval_ns)
		die("steps: pings need an interval");
	pings.interval_ns = interval_ns;
}

/* --- sockets ----------------------------------------------------------------------------- */

static void set_option(int fd, int level, int name, int value, const char *what)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		die("%s %d: %s", what, value, strerror(errno));
}

/* The one place that tells the kernel which ACK policy a socket has. */
static void choose_policy(int fd, const char *policy)
{
	if (!*policy)
		return;
#ifdef TCP_ACK_POLICY
	if (setsockopt(fd, IPPROTO_TCP, TCP_ACK_POLICY, policy,
		       (socklen_t)strlen(policy)))
		die("ACK policy %s: %s", policy, strerror(errno));
#else
	(void)fd;
	die("ACK policy %s: this kernel has none to choose", policy);
#endif
}

static struct sockaddr_in address_of(const struct flow *f, enum side side)
{
	unsigned port = (side == AT_CLIENT ? CLIENT_PORT : SERVER_PORT) + f->id;
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port) };

	inet_pton(AF_INET, side == AT_CLIENT ? CLIENT : SERVER, &address.sin_addr);
	return address;
}

static int new_socket(struct flow *f, enum side side)
{
	int fd;
	struct sockaddr_in own = address_of(f, side);
	bool sends = side == f->tx;

	enter(side == AT_CLIENT ? "client" : "server");
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket: %s", strerror(errno));
	if (*f->congestion_control &&
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, f->congestion_control,
		       (socklen_t)strlen(f->congestion_control)))
		die("congestion control %s: %s", f->congestion_control,
		    strerror(errno));
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
	if (f->nodelay)
		set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
	if (sends && f->send_buffer)
		set_option(fd, SOL_SOCKET, SO_SNDBUFFORCE, f->send_buffer,
			   "send buffer");
	if (!sends && f->receive_buffer)
		set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, f->receive_buffer,
			   "receive buffer");
	if (!sends && f->window) {
		/* a buffer of its own ends the growth of both; Linux has no bound on a sender's window */
		if (!f->receive_buffer)
			set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, 4 * f->window,
				   "receive buffer");
		set_option(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, f->window, "window");
	}
	if (sends && f->pacing) /* any finite bound switches TCP's own pacing on */
		set_option(fd, SOL_SOCKET, SO_MAX_PACING_RATE, INT32_MAX, "pacing");
	choose_policy(fd, sends ? f->peer_policy : f->policy);
	if (bind(fd, (struct sockaddr *)&own, sizeof(own)))
		die("port %u: %s", ntohs(own.sin_port), strerror(errno));
	enter("-");
	return fd;
}

static void watch(struct flow *f, int fd, unsigned place)
{
	struct epoll_event event = { .events =
					     EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
				     .data.u64 = (uint64_t)f->id << 2 | place };

	if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event))
		die("epoll: %s", strerror(errno));
}

static void listen_flow(struct flow *f)
{
	f->listening = new_socket(f, AT_SERVER);
	if (listen(f->listening, 1))
		die("listen: %s", strerror(errno));
	watch(f, f->listening, 2);
}

static void connect_flow(struct flow *f)
{
	struct sockaddr_in peer = address_of(f, AT_SERVER);

	f->started = true;
	f->fd[AT_CLIENT] = new_socket(f, AT_CLIENT);
	watch(f, f->fd[AT_CLIENT], AT_CLIENT);
	if (connect(f->fd[AT_CLIENT], (struct sockaddr *)&peer, sizeof(peer)) &&
	    errno != EINPROGRESS)
		die("connect: %s", strerror(errno));
}

/* --- applications ------------------------------------------------------------------------ */

static void flush(struct flow *f, enum side side)
{
	struct output *o = &f->out[side];

	while (o->left) {
		size_t size = o->left < sizeof(zeros) ? (size_t)o->left : sizeof(zeros);
		ssize_t taken = send(f->fd[side], zeros, size, MSG_NOSIGNAL);

		if (taken < 0) {
			if (errno == EAGAIN || errno == ECONNRESET || errno == EPIPE)
				return;
			die("flow %u: send: %s", f->id, strerror(errno));
		}
		if (side == f->tx && !f->first_sent) {
			f->first_sent = true;
			f->first_ns = now_ns;
		}
		o->left -= (uint64_t)taken;
		if (!o->left) {
			o->left = o->more < o->size ? o->more : o->size;
			o->more -= o->left;
		}
	}
}

/* Writes `bytes` in pieces of `size`. */
static void put(struct flow *f, enum side side, uint64_t bytes, uint64_t size)
{
	struct output *o = &f->out[side];

	if (o->left || !bytes || !size)
		die("flow %u: writes before its last one was taken", f->id);
	size = size < bytes ? size : bytes;
	*o = (struct output){ size, size, bytes - size };
	if (side == f->tx)
		f->written += bytes;
	flush(f, side);
}

static void expect(struct flow *f, uint64_t end, uint64_t since_ns)
{
	if (f->tail == f->room) {
		f->room = 2 * f->room + 4;
		f->messages = realloc(f->messages, f->room * sizeof(*f->messages));
		if (!f->messages)
			die("no memory for messages");
	}
	f->messages[f->tail++] = (struct message){ end, since_ns };
}

static void finish_writing(struct flow *f)
{
	/* once: each call raises an event, which would lead here again, at the same time for ever */
	if (f->out[f->tx].left || f->finished || f->fd[f->tx] < 0)
		return;
	f->finished = true;
	shutdown(f->fd[f->tx], SHUT_WR);
}

/* The writing side's turn. */
static void write_turn(struct flow *f)
{
	uint64_t at;

	switch (f->app) {
	case BULK:
		at = f->bytes ? f->bytes : (uint64_t)1 << 62;
		if (!f->written) {
			if (f->bytes)
				expect(f, f->bytes, now_ns);
			put(f, f->tx, at, at);
		}
		break;
	case MESSAGES:
		expect(f, f->written + f->size * f->writes, now_ns);
		put(f, f->tx, f->size * f->writes, f->size);
		break;
	case SCHEDULE:
		/* what the socket has not taken yet goes first: the writer is late, as a real one */
		if (f->out[f->tx].left) {
			f->out[f->tx].left += f->at_bytes[f->taken];
			f->written += f->at_bytes[f->taken];
		} else {
			put(f, f->tx, f->at_bytes[f->taken], f->at_bytes[f->taken]);
		}
		expect(f, f->written, now_ns);
		if (++f->taken < f->planned)
			timer_set(base_ns + f->start_ns + f->at_ns[f->taken], WRITE,
				  f->id);
		break;
	case ASK:
		break;
	}
}

static bool has_written_all(const struct flow *f)
{
	if (f->out[f->tx].left)
		return false;
	switch (f->app) {
	case BULK:
		return f->bytes && f->written >= f->bytes;
	case SCHEDULE:
		return f->taken == f->planned;
	default:
		return f->count && f->done >= f->count;
	}
}

static void ask(struct flow *f)
{
	f->asked_ns = now_ns;
	put(f, f->rx, f->request, f->request);
}

/* Who acts first: the writer, or the one who asks it to. */
static enum side first_actor(const struct flow *f)
{
	return f->app == ASK ? f->rx : f->tx;
}

static void begin(struct flow *f)
{
	f->connected = true;
	f->credit_ns = now_ns;
	if (f->app == ASK) {
		ask(f);
	} else if (f->app == SCHEDULE) {
		/* times count from the start of the application */
		f->start_ns = now_ns - base_ns;
		timer_set(now_ns + f->at_ns[0], WRITE, f->id);
	} else {
		write_turn(f);
	}
	if (has_written_all(f))
		finish_writing(f);
}

static void delivered(struct flow *f, uint64_t bytes)
{
	f->read[f->rx] += bytes;
	f->last_ns = now_ns;
	while (f->head < f->tail && f->messages[f->head].end <= f->read[f->rx]) {
		fprintf(results, "message %u %llu\n", f->group,
			(unsigned long long)(now_ns - f->messages[f->head++].since_ns));
		f->done++;
		if (f->app == ASK && (!f->count || f->done < f->count))
			timer_set(now_ns + f->gap_ns, QUESTION, f->id);
		if (f->app == MESSAGES && (!f->count || f->done < f->count))
			timer_set(now_ns + f->gap_ns, WRITE, f->id);
	}
	if (f->head == f->tail)
		f->head = f->tail = 0;
	if (has_written_all(f))
		finish_writing(f);
}

static void requested(struct flow *f, uint64_t bytes)
{
	f->read[f->tx] += bytes;
	while (f->app == ASK && f->answered + f->request <= f->read[f->tx]) {
		f->answered += f->request;
		expect(f, f->written + f->size, f->asked_ns);
		put(f, f->tx, f->size, f->write ? f->write : f->size);
	}
}

/* --- reading and telling ----------------------------------------------------------------- */

static void tell_end(struct flow *f)
{
	struct tcp_info tx = { 0 }, rx = { 0 };
	socklen_t length = sizeof(tx);

	if (f->closed)
		return;
	f->closed = true;
	if (f->fd[f->tx] >= 0)
		getsockopt(f->fd[f->tx], IPPROTO_TCP, TCP_INFO, &tx, &length);
	length = sizeof(rx);
	if (f->fd[f->rx] >= 0)
		getsockopt(f->fd[f->rx], IPPROTO_TCP, TCP_INFO, &rx, &length);
	fprintf(results,
		"flow %u group %u port %u started %d first %llu last %llu delivered %llu completed "
		"%d retrans %u timeouts %u reordering %u\n",
		f->id, f->group, SERVER_PORT + f->id, f->first_sent,
		f->first_sent ? (unsigned long long)(f->first_ns - base_ns) : 0ull,
		f->last_ns ? (unsigned long long)(f->last_ns - base_ns) : 0ull,
		(unsigned long long)f->read[f->rx], f->completed, tx.tcpi_total_retrans,
		(unsigned)tx.tcpi_total_rto, tx.tcpi_reord_seen);
}

static void close_flow(struct flow *f)
{
	f->completed = true;
	tell_end(f);
	if (f->fd[AT_CLIENT] >= 0)
		close(f->fd[AT_CLIENT]);
	if (f->fd[AT_SERVER] >= 0)
		close(f->fd[AT_SERVER]);
	f->fd[AT_CLIENT] = f->fd[AT_SERVER] = -1;
}

static void read_side(struct flow *f, enum side side, uint64_t limit)
{
	while (limit && f->fd[side] >= 0) {
		size_t want = limit < 1 << 20 ? (size_t)limit : 1 << 20;
		ssize_t got = recv(f->fd[side], zeros, want, MSG_TRUNC);

		if (got < 0) {
			if (errno == EAGAIN)
				return;
			die("flow %u: recv: %s", f->id, strerror(errno));
		}
		if (!got) {
			if (side == f->rx)
				close_flow(f);
			return;
		}
		limit -= limit == NEVER ? 0 : (uint64_t)got;
		if (side == f->rx)
			delivered(f, (uint64_t)got);
		else
			requested(f, (uint64_t)got);
		/* Nothing was left, and what comes next raises an event; an end may be there already. */
		if ((size_t)got < want && !f->ended[side])
			return;
	}
}

static uint64_t unread(const struct flow *f)
{
	char byte;
	ssize_t any = recv(f->fd[f->rx], &byte, 1, MSG_PEEK);

	return any < 0 ? 0 : 1;
}

/* A reader that lags or is slow takes what its clock allows and looks again later. */
static void slow_read(struct flow *f)
{
	uint64_t may = NEVER;
	uint64_t before = f->read[f->rx];

	if (f->reader_bps) {
		double ns_per_byte = 8e9 / (double)f->reader_bps;
		uint64_t full = (uint64_t)(131072 * ns_per_byte);

		if (f->credit_ns + full < now_ns)
			f->credit_ns = now_ns - full;
		may = (uint64_t)((double)(now_ns - f->credit_ns) / ns_per_byte);
		read_side(f, f->rx, may);
		f->credit_ns +=
			(uint64_t)((double)(f->read[f->rx] - before) * ns_per_byte);
	} else {
		read_side(f, f->rx, NEVER);
	}
}

static void wake_reader(struct flow *f)
{
	uint64_t wait = f->lag_ns;

	if (f->reading || f->fd[f->rx] < 0 || !unread(f))
		return;
	if (f->reader_bps) {
		uint64_t slow =
			16384ull * 8000000000ull / 1000 / (f->reader_bps / 1000 + 1) +
			1;

		wait = slow > wait ? slow : wait;
	}
	f->reading = true;
	timer_set(now_ns + wait, READ, f->id);
}

static void on_socket(uint64_t place, uint32_t events)
{
	struct flow *f = &flows[place >> 2];
	unsigned which = place & 3;

	if (which == 2) {
		int fd =
			accept4(f->listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		close(f->listening);
		f->listening = -1;
		f->fd[AT_SERVER] = fd;
		watch(f, fd, AT_SERVER);
		if (first_actor(f) == AT_SERVER)
			begin(f);
		return;
	}
	if (f->fd[which] < 0)
		return;
	if (events & EPOLLOUT && which == AT_CLIENT && !f->connected &&
	    first_actor(f) == AT_CLIENT)
		begin(f);
	if (events & EPOLLOUT) {
		flush(f, which);
		if (f->connected && which == f->tx && has_written_all(f))
			finish_writing(f);
	}
	if (!(events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		return;
	f->ended[which] |= !!(events & (EPOLLRDHUP | EPOLLHUP));
	if (which == f->rx && (f->lag_ns || f->reader_bps))
		wake_reader(f);
	else
		read_side(f, which, NEVER);
}

/* --- pings: echo requests of the client, 56 bytes as ping(8) sends ------------------------ */

struct echo {
	struct icmphdr head;
	char data[56];
};

static uint16_t internet_checksum(const void *data, size_t size)
{
	const uint16_t *words = data;
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < size / 2; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

static void open_pings(void)
{
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = PING_PLACE };

	enter("client");
	pings.fd =
		socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_ICMP);
	enter("-");
	if (pings.fd < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, pings.fd, &event))
		die("pings: %s", strerror(errno));
}

static void send_ping(void)
{
	struct sockaddr_in peer = { .sin_family = AF_INET };
	struct echo echo = { .head.type = ICMP_ECHO };

	if (pings.count == PINGS_MAX)
		die("more than %u pings", PINGS_MAX);
	inet_pton(AF_INET, SERVER, &peer.sin_addr);
	echo.head.un.echo.sequence = (uint16_t)pings.count;
	echo.head.checksum = internet_checksum(&echo, sizeof(echo));
	pings.sent_ns[pings.count++] = now_ns;
	if (sendto(pings.fd, &echo, sizeof(echo), 0, (struct sockaddr *)&peer,
		   sizeof(peer)) < 0)
		die("ping: %s", strerror(errno));
}

static void read_pings(void)
{
	_Alignas(struct echo) char packet[256];
	ssize_t got;

	while ((got = recv(pings.fd, packet, sizeof(packet), 0)) > 0) {
		size_t at = (size_t)(packet[0] & 15) * 4;
		struct echo *echo = (struct echo *)(packet + at);

		if ((size_t)got < at + sizeof(*echo) ||
		    echo->head.type != ICMP_ECHOREPLY)
			continue;
		if (echo->head.un.echo.sequence < pings.count)
			pings.came_ns[echo->head.un.echo.sequence] = now_ns;
	}
}

/* One line each: when it left, and after how long its answer came; 0 when none did. */
static void tell_pings(void)
{
	FILE *out = fopen(LAB_DIR "/pings", "we");
	unsigned i;

	for (i = 0; out && i < pings.count; i++) {
		uint64_t came = pings.came_ns[i];

		fprintf(out, "%llu %llu\n",
			(unsigned long long)(pings.sent_ns[i] - base_ns),
			(unsigned long long)(came ? came - pings.sent_ns[i] : 0));
	}
	if (!out || fclose(out))
		die("pings: %s", strerror(errno));
}

static void sample(uint64_t time_ns)
{
	size_t i;
	unsigned group = UINT32_MAX, seen = 0;

	for (i = 0; i < flows_count; i++) {
		struct flow *f = &flows[i];
		struct sockaddr_in own = address_of(f, f->rx),
				   peer = address_of(f, f->tx);
		struct tcp_info tx, rx;
		socklen_t tx_length = sizeof(tx);
		char policy[700];

		seen = f->group == group ? seen + 1 : 0;
		group = f->group;
		if (seen >= SAMPLED_FLOWS || !f->connected || f->fd[f->tx] < 0 ||
		    f->fd[f->rx] < 0)
			continue;
		memset(&tx, 0, sizeof(tx));
		if (getsockopt(f->fd[f->tx], IPPROTO_TCP, TCP_INFO, &tx, &tx_length) ||
		    !diag_look(diags[f->rx], &own, &peer, &rx, policy, sizeof(policy)))
			continue;
		fprintf(samples, "%llu %u %llu %u %u %u %u %u %u %u %u %llu %s\n",
			(unsigned long long)time_ns, f->id,
			(unsigned long long)f->read[f->rx], tx.tcpi_snd_mss,
			tx.tcpi_snd_cwnd, tx.tcpi_snd_ssthresh, tx.tcpi_rtt,
			tx.tcpi_unacked, rx.tcpi_rcv_wnd, rx.tcpi_rcv_space,
			tx.tcpi_total_retrans,
			(unsigned long long)tx.tcpi_delivery_rate, policy);
	}
}

static bool on_timer(struct timer t, uint64_t duration_ns, uint64_t sample_ns)
{
	struct flow *f = flows + t.index;

	switch (t.kind) {
	case START:
		connect_flow(f);
		break;
	case WRITE:
		if (f->fd[f->tx] >= 0) {
			write_turn(f);
			if (has_written_all(f))
				finish_writing(f);
		}
		break;
	case QUESTION:
		if (f->fd[f->rx] >= 0)
			ask(f);
		break;
	case READ:
		f->reading = false;
		if (f->fd[f->rx] >= 0) {
			slow_read(f);
			wake_reader(f);
		}
		break;
	case PROGRAM:
		run_program(programs[t.index].namespace_name, programs[t.index].words);
		break;
	case DRAIN:
		capture_drain();
		timer_set(t.at_ns + DRAIN_NS, DRAIN, 0);
		break;
	case PING:
		send_ping();
		timer_set(t.at_ns + pings.interval_ns, PING, 0);
		break;
	case SAMPLE:
		sample(t.at_ns - base_ns);
		timer_set(t.at_ns + sample_ns, SAMPLE, 0);
		break;
	case STOP:
		return false;
	}
	(void)duration_ns;
	return true;
}

void traffic_run(uint64_t duration_ns, uint64_t sample_ns)
{
	struct epoll_event events[256];
	struct timespec start;
	bool going = true;
	size_t i;

	poller = epoll_create1(EPOLL_CLOEXEC);
	diags[AT_CLIENT] = diag_open("client");
	diags[AT_SERVER] = diag_open("server");
	results = fopen(LAB_DIR "/flows", "we");
	samples = fopen(LAB_DIR "/samples", "we");
	if (poller < 0 || !results || !samples)
		die("results: %s", strerror(errno));
	for (i = 0; i < flows_count; i++)
		listen_flow(&flows[i]);
	if (pings.interval_ns)
		open_pings();
	save_counters("client", LAB_DIR "/counters-client-before");
	save_counters("server", LAB_DIR "/counters-server-before");
	/* a round time to begin at: ticks then lie alike in every run */
	base_ns = (clock_ns() / 1000000000 + 2) * 1000000000;
	start = (struct timespec){ (time_t)(base_ns / 1000000000), 0 };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL);
	for (i = 0; i < flows_count; i++)
		timer_set(base_ns + flows[i].start_ns, START, i);
	for (i = 0; i < programs_count; i++)
		timer_set(base_ns + program_times[i], PROGRAM, i);
	timer_set(base_ns + DRAIN_NS, DRAIN, 0);
	if (sample_ns)
		timer_set(base_ns, SAMPLE, 0);
	if (pings.interval_ns)
		timer_set(base_ns + pings.interval_ns, PING, 0);
	timer_set(base_ns + duration_ns, STOP, 0);
	now_ns = clock_ns();
	while (going) {
		uint64_t wait = timers[0].at_ns > now_ns ? timers[0].at_ns - now_ns : 0;
		struct timespec timeout = { (time_t)(wait / 1000000000),
					    (long)(wait % 1000000000) };
		int count = epoll_pwait2(poller, events, 256, &timeout, NULL);
		int e;

		if (count < 0 && errno != EINTR)
			die("epoll: %s", strerror(errno));
		now_ns = clock_ns();
		for (e = 0; e < count; e++) {
			if (events[e].data.u64 == PING_PLACE)
				read_pings();
			else
				on_socket(events[e].data.u64, events[e].events);
		}
		while (going && timers[0].at_ns <= now_ns)
			going = on_timer(timer_pop(), duration_ns, sample_ns);
	}
	for (i = 0; i < flows_count; i++)
		tell_end(&flows[i]);
	/* captures tell the time of day */
	clock_gettime(CLOCK_REALTIME, &start);
	fprintf(results, "end %llu base %llu\n", (unsigned long long)(now_ns - base_ns),
		(unsigned long long)start.tv_sec * 1000000000 +
			(unsigned long long)start.tv_nsec - (clock_ns() - base_ns));
	if (fclose(results) || fclose(samples))
		die("results: %s", strerror(errno));
	if (pings.interval_ns)
		tell_pings();
	save_counters("client", LAB_DIR "/counters-client");
	save_counters("server", LAB_DIR "/counters-server");
}
