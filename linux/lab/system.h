/* SPDX-License-Identifier: MIT */
/*
 * The base of the guest's program: ending the guest with a message, the clock, and work inside a
 * network namespace. Does not depend on the other parts.
 */
#ifndef LAB_SYSTEM_H
#define LAB_SYSTEM_H

#include <stdbool.h>
#include <stdint.h>

#define LAB_DIR "/run/lab" /* the run's folder on the host, writable */
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Context such as a line of input; die() begins its message with it. */
__attribute__((format(printf, 1, 2))) void set_context(const char *format, ...);

/* Ends the guest and leaves a message for the person who started it. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

__attribute__((noreturn)) void power_off(void);

/* A value from the kernel's command line, or "". */
const char *system_value(const char *name);

/* An emulated machine keeps its files in memory and copies LAB_DIR to the host at the end. */
bool system_emulated(void);

/* Ends a machine without high-resolution timers: senders would send a burst per tick. */
void system_check_timers(void);

/* Time that the CPU has been idle; -1: this kernel does not tell (Linux 7 has ticks only). */
int64_t system_idle_ns(void);

/* CLOCK_MONOTONIC. Each read advances the guest's clock, so it is read once per wake-up. */
uint64_t clock_ns(void);

/* The namespace "-" is the initial one. */
void enter(const char *name);
void load_module(const char *path);
void run_program(const char *namespace_name, char *const words[]); /* NULL: this one */
void write_file(const char *namespace_name, const char *path, const char *value);
void save_counters(const char *namespace_name, const char *file);

#endif
