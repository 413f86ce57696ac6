/* SPDX-License-Identifier: MIT */
/*
 * The run's event loop: sockets and timers over one clock, which is read once per wake-up. Timers
 * due at the same time run in the order they were set.
 */
#ifndef LAB_LOOP_H
#define LAB_LOOP_H

#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>

extern uint64_t
	base_ns; /* start of the run: a whole second, so that ticks are the same in every run */
extern uint64_t now_ns;

typedef void on_timer(uint64_t due_ns, size_t index);
typedef void on_event(size_t index, uint32_t events);

void loop_open(void);
void loop_watch(int fd, uint32_t events, on_event *act, size_t index);
void loop_at(uint64_t due_ns, on_timer *act, size_t index);

/* Sleeps until base_ns, or spins. */
void loop_align(bool spins);

/* Returns at `end_ns`, or after loop_stop(). */
void loop_run(uint64_t end_ns);
void loop_stop(void);

#endif
