/* SPDX-License-Identifier: MIT */
/*
 * A run's output about its flows, for ackwise.lab.measure.
 *
 * LAB_DIR/flows: lines of names and values,
 *
 *	message GROUP latency_ns N		when a message is complete
 *	flow ID group N port N ...		when a flow is complete, or at the end; `segments` are those
 *						that its receiver got, `empty` those without data that it
 *						sent, the handshake's included
 *	sender ID acked BYTES segments N in N	of the sender, where its receiver is another machine
 *	elapsed_ns N idle_ns N			of the processor, on an emulated machine
 *	end TIME_NS base TIME_NS		the run's length, until its sockets were counted; time of day at
 *						its start
 *
 * LAB_DIR/samples: a table of both ends' TCP over time; its first line names the columns.
 */
#ifndef LAB_RESULTS_H
#define LAB_RESULTS_H

#include "flow.h"

void results_open(void);
void results_start(void);
void results_close(void);
void result_message(const struct flow *f, uint64_t latency_ns);
void result_flow(struct flow *f);

/* A line for each connected flow, the first 16 of a group; `due_ns` is of the loop's clock. */
void results_sample(uint64_t due_ns);

#endif
