/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Policy linux, for policies that behave like stock most of the time. */
#ifndef ACKWISE_POLICY_LINUX_H
#define ACKWISE_POLICY_LINUX_H

#include <ackwise/policy.h>

#define AW_LINUX_ATO_MIN_US 40000u

struct aw_linux {
	u64 last_data_ns;
	u64 timer_ns; /* the delayed-ACK timer; 0: not armed */
	u32 ato_us;   /* 0: no data yet */
	u8 quick;     /* ACKs left in the quickack phase */
	u8 pingpong;  /* 1: data flows both ways, so ACKs may be piggybacked */
	u8 pushed;    /* unacknowledged segments, small or with PSH: 0, 1, 2 */
	u8 owed;      /* 1: data arrived since the last ACK */
};

/* Measures an arrival.  Call it first on every AW_EVENT_DATA. */
void aw_linux_measure(struct aw_linux *s, const struct aw_event *e);
/* Waits for the delayed-ACK timer; arms it if necessary. */
struct aw_verdict aw_linux_delay(struct aw_linux *s, const struct aw_event *e);

/* The members of policy linux: state is a struct aw_linux, p is not read. */
struct aw_verdict aw_linux_on_deadline(void *state, const struct aw_params *p,
				       const struct aw_event *e);
struct aw_verdict aw_linux_on_app_read(void *state, const struct aw_params *p,
				       const struct aw_event *e,
				       struct aw_verdict pending);
void aw_linux_on_ack_sent(void *state, const struct aw_params *p,
			  const struct aw_event *e);

/* Call it first on every AW_EVENT_APP_READ. */
void aw_linux_ask_host(struct aw_linux *s, const struct aw_event *e);
/* True if an ACK now helps the sender: the window moves, or the reader waits for more. */
bool aw_linux_is_worth_it(const struct aw_event *e);
/* The verdict on a segment that aw_linux_measure() has seen. */
struct aw_verdict aw_linux_decide(struct aw_linux *s, const struct aw_event *e);
/* True if the read freed enough room for an immediate window update. */
bool aw_linux_window_doubled(const struct aw_event *e);

#endif /* ACKWISE_POLICY_LINUX_H */
