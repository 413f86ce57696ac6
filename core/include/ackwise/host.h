/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Hosts: the rules of TCP, for sockets that have none of their own.
 *
 *	event  ->  host's rule, with the order's numbers  ->  duties  ->  verdict
 *	             |            ^
 *	             +-> policy --+  asked for an order
 *
 *	struct aw_conn conn;
 *	aw_conn_init(&conn, aw_host_find("linux"), &host_params,
 *		     aw_policy_find("delayed"), &params, &event);
 *	verdict = aw_decide(&conn, &event);     for every event
 *
 * AW_SEND_NOW: send an ACK, then report AW_EVENT_ACK_SENT.
 * AW_WAIT: (re)arm one timer at deadline_ns; when it fires, report
 * AW_EVENT_DEADLINE.  AW_NOTHING: disarm it.
 * Report every other ACK that leaves (piggybacked on data, with a
 * retransmission) in the same way.
 */
#ifndef ACKWISE_HOST_H
#define ACKWISE_HOST_H

#include <ackwise/event.h>
#include <ackwise/policy.h>
#include <ackwise/verdict.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AW_HOST_STATE_MAX_BYTES 24

struct aw_conn;

/* When a host reads wnd_next_bytes, which may cost a socket more than the verdict. */
enum aw_wnd_use {
	AW_WND_USE_NEVER,
	/* like Linux: on data, while more than one full segment is unacknowledged and
	 * data is unread (SO_RCVLOWAT reached); on a read, while at most half of the
	 * window is left */
	AW_WND_USE_STOCK,
	AW_WND_USE_ALWAYS,
};

/*
 * A host's own rules, with its state in conn->host_state.  on_data, on_deadline and
 * on_app_read return a verdict on all unacknowledged data, which replaces the
 * previous one; duties may make it earlier.
 */
struct aw_host {
	const char *name;    /* one lower-case word */
	const char *summary; /* one line for lists */
	const char *source;  /* RFC section, spec page or code */

	const struct aw_param *params;
	aw_u8 params_count; /* at most AW_PARAMS_MAX */
	aw_u8 wnd_use;      /* enum aw_wnd_use */
	aw_u8 uses_random;  /* 1: reads the random bits of the first event */
	/* 1: no flight or window bounds an order: hosts of papers */
	aw_u8 unbounded;
	/* 1: no duties, and an order is not clamped at all: not a host of TCP */
	aw_u8 no_duties;

	void (*init)(struct aw_conn *conn, const struct aw_event *e); /* optional */
	/* How long an ACK waits by the host's own rule; for aw_wait(). */
	struct aw_verdict (*delay)(struct aw_conn *conn, const struct aw_event *e);
	struct aw_verdict (*on_data)(struct aw_conn *conn, const struct aw_event *e);
	/* The deadline passed, and it was not a duty's. */
	struct aw_verdict (*on_deadline)(struct aw_conn *conn,
					 const struct aw_event *e);
	/* Also called when no ACK is owed, if the read may be worth a window update. */
	struct aw_verdict (*on_app_read)(struct aw_conn *conn,
					 const struct aw_event *e);
	void (*on_ack_sent)(struct aw_conn *conn, const struct aw_event *e);
};

/* What came, for a policy; new_*: since the last question. */
struct aw_account {
	aw_u64 last_ns;     /* the last arrival; 0: none yet */
	aw_u32 bytes;       /* in order, modulo 2^32, as rcv_nxt counts */
	aw_u32 asked_bytes; /* their number at the last question */
	aw_u32 segments, arrivals;
	aw_u32 gap_ns;
	aw_u32 flags; /* AW_SEEN_* */
};

/* The sender's flight, measured whenever a question is asked. */
struct aw_flight {
	aw_u64 start_ns;    /* of the round */
	aw_u32 start_bytes; /* the account's bytes then */
	aw_u32 bytes;       /* in one RTT of the last round; 0: not known */
};

/* bytes: in order until now, modulo 2^32.  A pause of an RTO discards the flight: the
 * sender may restart from its initial window (RFC 5681, 4.1). */
static inline void aw_measure_flight(struct aw_flight *f, aw_u64 now_ns, aw_u32 bytes,
				     aw_u32 rtt_us, aw_u32 rto_us)
{
	aw_u64 passed_ns = now_ns - f->start_ns;
	aw_u64 rtt_ns = rtt_us * AW_NS_PER_US;
	aw_u64 new_bytes = bytes - f->start_bytes;

	if (!rtt_ns || passed_ns < rtt_ns)
		return;
	if (rto_us && passed_ns - rtt_ns >= rto_us * AW_NS_PER_US)
		new_bytes = 0;
	f->bytes = (aw_u32)aw_div64(new_bytes * rtt_us,
				    (aw_u32)aw_min_u64(aw_div64(passed_ns, 1000), ~0u));
	f->start_bytes = bytes;
	f->start_ns = now_ns;
}

/* Segments above a hole share ACKs after the third. [D-31] */
struct aw_compress {
	aw_u8 duplicate_acks; /* since the last in-order data, at most 3 */
	aw_u8 waiting;        /* segments above a hole that no ACK has reported */
};

/* What has happened since the last ACK that was reported. */
enum aw_news {
	AW_NEWS_NONE,  /* nothing; that ACK was piggybacked on data */
	AW_NEWS_REPLY, /* nothing; the next data segment may be the reply */
	AW_NEWS_EVENT, /* an event */
};

struct aw_conn {
	const struct aw_host *host;
	const struct aw_policy *policy;      /* NULL: the host alone */
	const struct aw_params *host_params; /* outlive the connection */
	const struct aw_params *params;
	aw_u64 owed_since_ns; /* oldest unacknowledged arrival, or AW_NEVER_NS */
	aw_u64 due_ns; /* end of the order's time; AW_NEVER_NS: it does not run */
	struct aw_verdict pending; /* the verdict in force */
	struct aw_order order;     /* in force */
	struct aw_account account;
	struct aw_flight flight;
	struct aw_compress compress;
	aw_u32 unacked_bytes; /* after the last segment */
	aw_u8 news;           /* enum aw_news */
	aw_u8 unbounded;      /* 1: no flight or window bounds an order */
	aw_u16 questions;     /* asked of the policy, modulo 2^16 */
	aw_u64 host_state[AW_HOST_STATE_MAX_BYTES / 8];
	aw_u64 state[AW_STATE_MAX_BYTES / 8]; /* the policy's, zeroed at init */
};

/*
 * True if the host needs to know about an ACK that leaves.  A socket that sends data
 * repeats the same ACK on every segment; only the first can be the reply to what
 * arrived [S4.1].  The others need not be reported.
 */
static inline bool aw_conn_ack_is_news(const struct aw_conn *conn, bool on_data)
{
	return conn->news > (on_data ? AW_NEWS_NONE : AW_NEWS_REPLY);
}

/*
 * host_params, params: as aw_params_init() sets them, or changed within their ranges.
 * policy: NULL, the host alone; else valid.  e: only time and random bits are read.
 * Cannot fail.
 */
void aw_conn_init(struct aw_conn *conn, const struct aw_host *host,
		  const struct aw_params *host_params, const struct aw_policy *policy,
		  const struct aw_params *params, const struct aw_event *e);

/* The verdict in force after e. */
struct aw_verdict aw_decide(struct aw_conn *conn, const struct aw_event *e);

/* The list: by index, by name; NULL when there is none. */
const struct aw_host *aw_host_at(aw_u32 index);
const struct aw_host *aw_host_find(const char *name);

/* For hosts: */

/* More than this may not wait without a question or an ACK. */
static inline aw_u32 aw_may_wait_bytes(const struct aw_conn *conn, aw_u32 own_bytes)
{
	return conn->order.bytes ? conn->order.bytes - 1 : own_bytes;
}

/* Has data arrived since the last ACK? */
static inline bool aw_owes(const struct aw_conn *conn)
{
	return conn->owed_since_ns != AW_NEVER_NS;
}

/* Does a read mean a question? */
static inline bool aw_asks_on_read(const struct aw_conn *conn)
{
	return conn->policy && conn->policy->asked_on_read && aw_owes(conn);
}

/*
 * Asks the policy while an ACK is owed, unless one is promised.  AW_SEND_NOW; else
 * AW_NOTHING, and the order in force may wait.
 */
struct aw_verdict aw_ask(struct aw_conn *conn, enum aw_why why,
			 const struct aw_event *e);

/* AW_WAIT until the order's time is up, AW_SEND_NOW if it was and the policy says so;
 * AW_NOTHING: the host's own time counts. */
struct aw_verdict aw_order_time(struct aw_conn *conn, const struct aw_event *e);

/* By the order's time; where it has none, by the host's own. */
static inline struct aw_verdict aw_wait(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_verdict v =
		conn->order.delay_ns ? aw_order_time(conn, e) : aw_nothing();

	return v.action == AW_NOTHING ? conn->host->delay(conn, e) : v;
}

/* aw_ask(), and unless that sends the ACK, aw_wait(). */
struct aw_verdict aw_ask_or_wait(struct aw_conn *conn, enum aw_why why,
				 const struct aw_event *e);

/* on_deadline() of a host whose delays do not adapt: asks, if the time was an order's. */
struct aw_verdict aw_time_is_up(struct aw_conn *conn, const struct aw_event *e);

/*
 * Duties: what the RFCs require of every host, whatever its policy.  v, or an earlier
 * verdict.
 */
struct aw_verdict aw_duties(struct aw_conn *conn, const struct aw_event *e,
			    struct aw_verdict v);
/* Notes what became of e's segment, if it is above a hole. */
void aw_duties_note(struct aw_conn *conn, const struct aw_event *e);

#ifdef __cplusplus
}
#endif

#endif /* ACKWISE_HOST_H */
