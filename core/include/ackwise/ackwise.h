/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The whole interface: event -> policy -> verdict -> rails -> driver.
 *
 *	struct aw_conn conn;
 *	aw_conn_init(&conn, aw_policy_find("delayed"), &params,
 *		     AW_RAILS_NETWORK, &event);
 *	verdict = aw_decide(&conn, &event);     for every event
 *
 * AW_SEND_NOW: send an ACK, then report AW_EVENT_ACK_SENT.
 * AW_WAIT: (re)arm one timer at deadline_ns; when it fires, report
 * AW_EVENT_DEADLINE.  AW_NOTHING: disarm it.
 * Report every other ACK that leaves (piggybacked on data, with a
 * retransmission) in the same way.
 */
#ifndef ACKWISE_ACKWISE_H
#define ACKWISE_ACKWISE_H

#include <ackwise/compress.h>
#include <ackwise/flight.h>
#include <ackwise/policy.h>
#include <ackwise/rails.h>

/* What has happened since the last ACK that was reported to the policy. */
enum aw_news {
	AW_NEWS_NONE,  /* nothing; that ACK was piggybacked on data */
	AW_NEWS_REPLY, /* nothing; the next data segment may be the reply */
	AW_NEWS_EVENT, /* an event */
};

struct aw_conn {
	const struct aw_policy *policy;
	const struct aw_params *params; /* outlives the connection */
	u64 owed_since_ns;           /* oldest unacknowledged arrival, or AW_NEVER_NS */
	struct aw_verdict pending;   /* the verdict in force */
	u32 rails;                   /* AW_RAIL_* in force */
	struct aw_flight flight;     /* for AW_RAIL_FLIGHT */
	struct aw_compress compress; /* for AW_RAIL_ORDER */
	u8 news;                     /* enum aw_news */
	u8 reserved;
	u64 state[AW_STATE_MAX_BYTES / 8]; /* the policy's, zeroed at init */
};

/*
 * True if the policy needs to know about an ACK that leaves.  A host that sends
 * data repeats the same ACK on every segment; only the first can be the reply to
 * what arrived [S4.1].  Drivers need not report the others.
 */
static inline bool aw_conn_ack_is_news(const struct aw_conn *conn, bool on_data)
{
	return conn->news > (on_data ? AW_NEWS_NONE : AW_NEWS_REPLY);
}

/* policy: must be valid.  e: only time and random bits are read.  Cannot fail. */
void aw_conn_init(struct aw_conn *conn, const struct aw_policy *policy,
		  const struct aw_params *params, u32 rails, const struct aw_event *e);

/* The verdict in force after e. */
struct aw_verdict aw_decide(struct aw_conn *conn, const struct aw_event *e);

#endif /* ACKWISE_ACKWISE_H */
