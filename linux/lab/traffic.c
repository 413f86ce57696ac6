/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "traffic.h"
#include "application.h"
#include "capture.h"
#include "flow.h"
#include "loop.h"
#include "ping.h"
#include "results.h"
#include "system.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROGRAMS_MAX 64
#define PROGRAM_WORDS_MAX 64
#define DRAIN_NS 50000000ull

static struct program {
	uint64_t time_ns;
	char *namespace_name, *words[PROGRAM_WORDS_MAX];
} programs[PROGRAMS_MAX];
static size_t programs_count;
static uint64_t sample_interval_ns;

static char *copy(const char *text)
{
	char *made = strdup(text);

	if (!made)
		die("no memory for programs");
	return made;
}

void traffic_program_at(uint64_t time_ns, const char *namespace_name,
			char *const words[])
{
	struct program *p = &programs[programs_count];
	size_t i;

	if (programs_count == PROGRAMS_MAX)
		die("more than %d programs in a run", PROGRAMS_MAX);
	p->time_ns = time_ns;
	p->namespace_name = copy(namespace_name);
	for (i = 0; words[i]; i++)
		p->words[i] = copy(words[i]);
	programs_count++;
}

/* --- connections ------------------------------------------------------------------------- */

static void on_connection(struct flow *f, enum side side, uint32_t events)
{
	struct connection *c = &f->connection;

	if (c->fd[side] < 0)
		return;
	if (side_alone() && events & (EPOLLHUP | EPOLLERR)) {
		loop_stop(); /* the other machine's run is over */
		return;
	}
	if (events & EPOLLOUT) {
		if (side == AT_CLIENT && !c->connected &&
		    application_first(f) == AT_CLIENT)
			application_begin(f);
		application_writable(f, side);
	}
	if (!(events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
		return;
	c->ended[side] |= !!(events & (EPOLLRDHUP | EPOLLHUP));
	application_readable(f, side);
}

static void on_client(size_t index, uint32_t events)
{
	on_connection(&flows[index], AT_CLIENT, events);
}

static void on_server(size_t index, uint32_t events)
{
	on_connection(&flows[index], AT_SERVER, events);
}

static void watch(const struct flow *f, int fd, on_event *act)
{
	loop_watch(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, act, f->id);
}

static void on_listening(size_t index, uint32_t events)
{
	struct flow *f = &flows[index];
	struct connection *c = &f->connection;
	int fd;

	(void)events;
	if (c->listening < 0)
		return;
	fd = accept4(c->listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return;
	close(c->listening);
	c->listening = -1;
	c->fd[AT_SERVER] = fd;
	watch(f, fd, on_server);
	if (side_alone())
		results_start(); /* before, the other machine was booting */
	if (application_first(f) == AT_SERVER)
		application_begin(f);
}

static void listen_flow(struct flow *f)
{
	f->connection.listening = flow_socket(f, AT_SERVER);
	if (listen(f->connection.listening, 1))
		die("listen: %s", strerror(errno));
	watch(f, f->connection.listening, on_listening);
}

static void connect_flow(uint64_t due_ns, size_t index)
{
	struct flow *f = &flows[index];
	struct sockaddr_in peer = flow_address(f, AT_SERVER);
	int fd = flow_socket(f, AT_CLIENT);

	(void)due_ns;
	f->connection.fd[AT_CLIENT] = fd;
	watch(f, fd, on_client);
	if (connect(fd, (struct sockaddr *)&peer, sizeof(peer)) && errno != EINPROGRESS)
		die("connect: %s", strerror(errno));
}

/* The other machine's run ends with ours. */
static void hang_up(void)
{
	const struct linger at_once = { .l_onoff = 1 };
	size_t i;

	for (i = 0; i < flows_count; i++) {
		int fd = flows[i].connection.fd[AT_CLIENT];

		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		close(fd);
	}
}

/* --- the run ----------------------------------------------------------------------------- */

/* With two machines, the host has to know the progress of each. */
static void tell(const char *stage)
{
	if (side_alone())
		fprintf(stderr, "traffic: %s\n", stage);
}

static void save_all_counters(const char *when)
{
	enum side side;

	for (side = 0; side < SIDES; side++) {
		char file[64];

		snprintf(file, sizeof(file), LAB_DIR "/counters-%s%s", side_name(side),
			 when);
		if (side_here(side))
			save_counters(side_name(side), file);
	}
}

static void start_program(uint64_t due_ns, size_t index)
{
	(void)due_ns;
	run_program(programs[index].namespace_name, programs[index].words);
}

static void drain(uint64_t due_ns, size_t index)
{
	capture_drain();
	loop_at(due_ns + DRAIN_NS, drain, index);
}

static void sample(uint64_t due_ns, size_t index)
{
	results_sample(due_ns);
	loop_at(due_ns + sample_interval_ns, sample, index);
}

void traffic_run(uint64_t duration_ns, uint64_t sample_ns)
{
	size_t i;

	sample_interval_ns = sample_ns;
	loop_open();
	results_open();
	for (i = 0; i < flows_count && side_here(AT_SERVER); i++)
		listen_flow(&flows[i]);
	ping_open();
	save_all_counters("-before");
	/* a machine whose clock is behind the host's, such as after boot, catches up while busy */
	loop_align(!side_here(AT_SERVER));
	tell("begins");
	results_start();
	for (i = 0; i < flows_count && side_here(AT_CLIENT); i++)
		loop_at(base_ns + flows[i].app.start_ns, connect_flow, i);
	for (i = 0; i < programs_count; i++)
		loop_at(base_ns + programs[i].time_ns, start_program, i);
	loop_at(base_ns + DRAIN_NS, drain, 0);
	if (sample_ns)
		loop_at(base_ns, sample, 0);
	ping_start();
	loop_run(base_ns + duration_ns);
	tell("ended");
	results_close();
	if (side_alone())
		hang_up();
	ping_write();
	save_all_counters("");
}
