/* SPDX-License-Identifier: MIT */
/* Echo requests from the client to the server during a run, 56 bytes of data as ping(8) sends. */
#ifndef LAB_PING_H
#define LAB_PING_H

#include <stdint.h>

/* The step "ping INTERVAL_NS". Without it the others do nothing. */
void ping_every(uint64_t interval_ns);
void ping_open(void);
void ping_start(void);

/* Writes LAB_DIR/pings, a table whose first line names its columns; rtt_ns 0: no reply came. */
void ping_write(void);

#endif
