/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "loop.h"
#include "system.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#define EVENTS_MAX 256

struct timer {
	uint64_t due_ns, order;
	on_timer *act;
	size_t index;
};

struct watch {
	on_event *act;
	size_t index;
};

uint64_t base_ns, now_ns;
static struct timer *timers; /* a binary heap, the earliest first */
static size_t timers_count, timers_room;
static uint64_t timers_made;
static struct watch *watches;
static size_t watches_count, watches_room;
static int poller;
static bool running;

static bool earlier(const struct timer *a, const struct timer *b)
{
	return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->order < b->order);
}

void loop_at(uint64_t due_ns, on_timer *act, size_t index)
{
	size_t i = timers_count++;
	struct timer t = { due_ns, timers_made++, act, index };

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

static struct timer pop_timer(void)
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

void loop_open(void)
{
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (poller < 0)
		die("epoll: %s", strerror(errno));
}

void loop_watch(int fd, uint32_t events, on_event *act, size_t index)
{
	struct epoll_event event = { .events = events, .data.u64 = watches_count };

	if (watches_count == watches_room) {
		watches_room = 2 * watches_room + 64;
		watches = realloc(watches, watches_room * sizeof(*watches));
		if (!watches)
			die("no memory for watched sockets");
	}
	watches[watches_count++] = (struct watch){ act, index };
	if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event))
		die("epoll: %s", strerror(errno));
}

void loop_align(bool spins)
{
	struct timespec start;

	base_ns = (clock_ns() / 1000000000 + 2) * 1000000000;
	while (spins && clock_ns() < base_ns)
		;
	start = (struct timespec){ (time_t)(base_ns / 1000000000), 0 };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL);
}

void loop_stop(void)
{
	running = false;
}

static void stop(uint64_t due_ns, size_t index)
{
	(void)due_ns;
	(void)index;
	loop_stop();
}

void loop_run(uint64_t end_ns)
{
	struct epoll_event events[EVENTS_MAX];

	loop_at(end_ns, stop, 0);
	running = true;
	now_ns = clock_ns();
	while (running) {
		uint64_t wait =
			timers[0].due_ns > now_ns ? timers[0].due_ns - now_ns : 0;
		struct timespec timeout = { (time_t)(wait / 1000000000),
					    (long)(wait % 1000000000) };
		int count = epoll_pwait2(poller, events, EVENTS_MAX, &timeout, NULL);
		int e;

		if (count < 0 && errno != EINTR)
			die("epoll: %s", strerror(errno));
		now_ns = clock_ns();
		for (e = 0; e < count; e++) {
			struct watch *w = &watches[events[e].data.u64];

			w->act(w->index, events[e].events);
		}
		while (running && timers[0].due_ns <= now_ns) {
			struct timer t = pop_timer();

			t.act(t.due_ns, t.index);
		}
	}
}
