/* SPDX-License-Identifier: MIT */
/*
 * The one program inside a lab guest: it is init, builds the network that a list of steps
 * describes, carries the traffic, writes the captures and switches the guest off.
 *
 * One process holds both ends of every flow (a socket stays in the namespace it was made in), because
 * changing processes is what a user-mode kernel is slow at. It sleeps in one place and reads the clock
 * once for each time it wakes: in virtual time, who polls a clock waits for ever.
 */
#ifndef LAB_H
#define LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAB_DIR "/run/lab" /* the run's folder on the host, writable */

/* Ends the guest with a message for the person who waits outside. */
__attribute__((noreturn, format(printf, 1, 2))) void die(const char *format, ...);

/* guest.c: namespaces and programs. `name` "-" is the guest's first namespace. */
void enter(const char *name);
void run_program(const char *namespace_name, char *const words[]);
void write_file(const char *namespace_name, const char *path, const char *value);
void save_counters(const char *namespace_name, const char *file);

/* capture.c: headers of every packet of a device into a pcap file. */
void capture_open(const char *namespace_name, const char *device, const char *file);
void capture_drain(void);
void capture_close(void);

/* diag.c: what inet_diag tells of the socket between own and peer; false: there is none. */
struct sockaddr_in;
struct tcp_info;
int diag_open(const char *namespace_name);
bool diag_look(int diag, const struct sockaddr_in *own, const struct sockaddr_in *peer,
	       struct tcp_info *tcp, char *policy, size_t size);

/* traffic.c */
void traffic_flow(char *const words[], int count);
void traffic_write_at(const char *flow, const char *time_ns, const char *bytes);
void traffic_program_at(uint64_t time_ns, const char *namespace_name,
			char *const words[]);
void traffic_ping(
	uint64_t interval_ns); /* from the client to the server, all the time */
void traffic_run(uint64_t duration_ns, uint64_t sample_ns);

/* conform.c: the claims of one file, what came of them into another. */
void conform_run(const char *from, const char *to);

uint64_t number(const char *text);

#endif
