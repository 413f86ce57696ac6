/* SPDX-License-Identifier: MIT */
/*
 * What every part of the guest's program stands on: ending the guest with a message, the clock, and
 * work inside a network namespace. Knows nothing of the other parts.
 */
#ifndef LAB_SYSTEM_H
#define LAB_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#define LAB_DIR "/run/lab" /* the run's folder on the host, writable */
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* What the program is working on, such as a line of its input; die() begins its message with it. */
__attribute__((format(printf, 1, 2))) void set_context(const char *format, ...);

/* Ends the guest and leaves a message for the person who started it. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

__attribute__((noreturn)) void power_off(void);

/* From the kernel's command line; "" if it is not there. */
const char *system_value(const char *name);

/* An emulated machine has its files in memory, and hands LAB_DIR to the host when it ends. */
bool system_emulated(void);

/* Ends a machine whose timers are not exact: senders would send in bursts, one for each tick. */
void system_check_timers(void);

/* Time that its processor has spent idle. */
uint64_t system_idle_ns(void);

/* CLOCK_MONOTONIC. Reading it moves the guest's clock by a step, so it is read once per wake-up. */
uint64_t clock_ns(void);

/* The namespace "-" is the one the guest starts in. */
void enter(const char *name);
void run_program(const char *namespace_name, char *const words[]);
void write_file(const char *namespace_name, const char *path, const char *value);
void save_counters(const char *namespace_name, const char *file);

#endif
