/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * linux: what an unmodified Linux 6.12 receiver does.
 *
 * Purpose: the baseline for every comparison.
 * Formula: now, when more than one full segment is unacknowledged and the
 *	window can move, or in the quickack phase; else after ATO, the smoothed
 *	time between arrivals:
 *		m <= 20 ms:        ATO = ATO/2 + 20 ms
 *		m < ATO:           ATO = min(ATO/2 + m, RTO)
 *		m > RTO:           the quickack phase starts again
 *	where m is the time since the previous segment.  A read by the
 *	application repeats the decision: see on_app_read().
 *	With an order, its bytes stand for the full segment, and its time for
 *	ATO: the timer then starts with the oldest data that waits, and pushed
 *	data is left to the order.
 * States:
 *
 *	          first data, pause > RTO,          quick ACKs used up
 *	          duplicate          +-------+  or reply sent within ATO
 *	        +------------------->| quick |-----------------+
 *	        |                    +-------+                 v
 *	   +---------+     reply within ATO of arrival   +----------+
 *	   | delayed |---------------------------------->| pingpong |
 *	   +---------+<----------------------------------+----------+
 *	                       timer expired
 *
 * Source: net/ipv4/tcp_input.c, tcp_output.c, tcp_timer.c and tcp.c of Linux
 *	6.12 (behaviour only); measurements of that kernel in virtual time.
 * Constants: those of the kernel.
 *	ATO at least 40 ms: a shorter timer would fire between two segments of
 *	    a slow path; at most 200 ms: the usual minimum RTO.
 *	16 quick ACKs: enough for the slow start of a common initial window.
 *	RTO 1 s until measured: "the sender SHOULD set RTO <- 1 second"
 *	    [RFC 6298, 2.1].
 * Deviations: [D-13] nanoseconds instead of jiffies, so nothing is rounded up
 *	to a tick.  [D-14] A CE change in either direction starts two quick
 *	ACKs, because the event does not say which.  Duties (holes with SACK
 *	compression, FIN, route quickack) are in duties.c.
 */
#include <ackwise/host.h>

#define ATO_MIN_US 40000u
#define ATO_MIN_NS (40 * AW_NS_PER_MS)
#define DELACK_MAX_US 200000u
#define QUICK_MAX 16u
#define RTO_INITIAL_US 1000000u

struct linux_host {
	aw_u64 last_data_ns;
	aw_u64 timer_ns; /* the delayed-ACK timer; 0: not armed */
	aw_u32 ato_us;   /* 0: no data yet */
	aw_u8 quick;     /* ACKs left in the quickack phase */
	aw_u8 pingpong;  /* 1: data flows both ways, so ACKs may be piggybacked */
	aw_u8 pushed;    /* unacknowledged segments, small or with PSH: 0, 1, 2 */
};
_Static_assert(sizeof(struct linux_host) <= AW_HOST_STATE_MAX_BYTES, "state too big");

static struct linux_host *state_of(struct aw_conn *conn)
{
	return (struct linux_host *)conn->host_state;
}

static aw_u32 rto_us(const struct aw_event *e)
{
	return e->rto_us ? e->rto_us : RTO_INITIAL_US; /* [RFC 6298, 2.1] */
}

static void start_quick(struct linux_host *s, const struct aw_event *e, aw_u32 most)
{
	/* one ACK per pair of segments that fits the advertised window */
	aw_u64 pairs = aw_div64(e->wnd_bytes, 2 * e->rcv_mss_bytes);
	aw_u32 quick = (aw_u32)aw_min_u64(pairs ? pairs : 2, most);

	if (quick > s->quick)
		s->quick = (aw_u8)quick;
}

/* An ACK was lost or the path is congested: start over. */
static void enter_quick(struct linux_host *s, const struct aw_event *e, aw_u32 most)
{
	start_quick(s, e, most);
	s->pingpong = 0;
	s->ato_us = ATO_MIN_US;
}

static void measure_spacing(struct linux_host *s, const struct aw_event *e)
{
	aw_u64 gap_ns = e->now_ns - s->last_data_ns;

	if (!s->ato_us) {
		start_quick(s, e, QUICK_MAX);
		s->ato_us = ATO_MIN_US;
	} else if (gap_ns <= ATO_MIN_NS / 2) {
		s->ato_us = s->ato_us / 2 + ATO_MIN_US / 2;
	} else if (gap_ns < s->ato_us * AW_NS_PER_US) {
		s->ato_us = s->ato_us / 2 + (aw_u32)aw_div64(gap_ns, AW_NS_PER_US);
		s->ato_us = aw_min_u32(s->ato_us, rto_us(e));
	} else if (gap_ns > rto_us(e) * AW_NS_PER_US) {
		/* the sender has probably restarted from a small window */
		start_quick(s, e, QUICK_MAX);
	}
	s->last_data_ns = e->now_ns;
}

/* A short segment ends a message; one with PSH may. */
static void measure_push(struct linux_host *s, const struct aw_event *e)
{
	if (e->bytes < e->rcv_mss_bytes)
		s->pushed = s->pushed ? 2 : 1;
	else if (e->flags & AW_FLAG_PSH && !s->pushed)
		s->pushed = 1;
}

static void measure(struct linux_host *s, const struct aw_event *e)
{
	/* the peer retransmits: it has not seen our ACK */
	if (e->seq == AW_SEQ_DUPLICATE)
		enter_quick(s, e, QUICK_MAX);
	if (e->bytes && (e->seq == AW_SEQ_IN || e->seq == AW_SEQ_FILLS)) {
		measure_spacing(s, e);
		if (e->flags & AW_FLAG_CE_CHANGE)
			enter_quick(s, e, 2); /* [D-14] */
		measure_push(s, e);
	}
	if (e->flags & AW_FLAG_DELACK)
		s->pingpong = 1;
	/* last, because each of the first segments raises the window */
	if (e->flags & AW_FLAG_WND_GREW)
		s->quick |= 1;
}

static struct aw_verdict delay(struct aw_conn *conn, const struct aw_event *e)
{
	struct linux_host *s = state_of(conn);
	aw_u32 ato_us = aw_min_u32(s->ato_us, DELACK_MAX_US);
	aw_u64 ato_ns, deadline_ns;

	if (e->delay_max_us)
		ato_us = aw_min_u32(ato_us, e->delay_max_us);
	/* Segments more than an RTT apart do not justify a longer wait.  The
	 * kernel's 500 ms for one-way flows never apply: the cap is 200 ms. */
	if (e->rtt_us)
		ato_us = aw_min_u32(ato_us, aw_max_u32(e->rtt_us, ATO_MIN_US));
	ato_ns = ato_us * AW_NS_PER_US;
	deadline_ns = aw_add_ns(e->now_ns, ato_ns);
	if (s->timer_ns) {
		if (s->timer_ns <= aw_add_ns(e->now_ns, ato_ns / 4))
			return aw_send_now(AW_REASON_TIMER_NEAR);
		deadline_ns = aw_min_u64(deadline_ns, s->timer_ns);
	}
	s->timer_ns = deadline_ns;
	return aw_wait_until(deadline_ns);
}

/* If the window cannot move, the next read sends an ACK with more room, unless
 * the reader waits for more data. [S4.4] */
static bool is_worth_it(const struct aw_event *e)
{
	return e->wnd_next_bytes >= e->wnd_bytes || !e->unread_bytes ||
	       e->flags & AW_FLAG_READER_WAITS;
}

/* [S4.1] */
static struct aw_verdict on_data(struct aw_conn *conn, const struct aw_event *e)
{
	struct linux_host *s = state_of(conn);
	struct aw_verdict v;

	measure(s, e);
	if (e->unacked_bytes > aw_may_wait_bytes(conn, e->rcv_mss_bytes) &&
	    is_worth_it(e)) {
		if (!conn->order.bytes)
			return aw_send_now(AW_REASON_SEGMENT_COUNT);
		v = aw_ask(conn, AW_WHY_LIMIT, e);
		if (v.action == AW_SEND_NOW)
			return v;
	}
	if (s->quick && !s->pingpong)
		return aw_send_now(AW_REASON_QUICKACK);
	return aw_wait(conn, e);
}

static struct aw_verdict on_deadline(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_verdict v = aw_send_now(AW_REASON_DELAY_TIMER);
	struct linux_host *s = state_of(conn);

	s->timer_ns = 0;
	if (conn->order.delay_ns) {
		v = aw_ask(conn, AW_WHY_TIMEOUT, e);
		if (v.action != AW_SEND_NOW)
			return aw_wait(conn, e);
	}
	if (s->pingpong) {
		/* there was no reply to piggyback on: a one-way flow after all */
		s->pingpong = 0;
		s->ato_us = ATO_MIN_US;
	} else {
		/* the next segment came too late: wait longer next time */
		s->ato_us = (aw_u32)aw_min_u64(2ull * s->ato_us, rto_us(e));
	}
	return v;
}

static bool window_doubled(const struct aw_event *e)
{
	aw_u64 twice_left = 2ull * aw_wnd_left(e);

	return e->bytes && twice_left <= e->wnd_max_bytes && e->wnd_next_bytes &&
	       e->wnd_next_bytes >= twice_left;
}

/* TCP_QUICKACK: the application says whether its replies will carry the ACKs. */
static void ask_host(struct linux_host *s, const struct aw_event *e)
{
	if (e->flags & AW_FLAG_DELACK)
		s->pingpong = 1;
	else if (!e->bytes && e->flags & AW_FLAG_QUICKACK)
		s->pingpong = 0;
}

/* A timer that runs for the host's own time stays. */
static struct aw_verdict asked(struct aw_conn *conn, enum aw_why why,
			       const struct aw_event *e)
{
	aw_u64 timer_ns = state_of(conn)->timer_ns;
	struct aw_verdict v = aw_ask(conn, why, e);

	if (v.action != AW_SEND_NOW)
		v = !conn->order.delay_ns && timer_ns ? aw_wait_until(timer_ns)
						      : aw_wait(conn, e);
	return v;
}

/* [S4.2] */
static struct aw_verdict on_app_read(struct aw_conn *conn, const struct aw_event *e)
{
	struct linux_host *s = state_of(conn);
	struct aw_verdict v = conn->pending;

	ask_host(s, e);
	if (aw_owes(conn)) {
		if (e->unacked_bytes > aw_may_wait_bytes(conn, e->rcv_mss_bytes)) {
			if (!conn->order.bytes)
				return aw_send_now(AW_REASON_SEGMENT_COUNT);
			/* the same data again would get the same answer */
			if (conn->account.bytes != conn->account.asked_bytes)
				v = asked(conn, AW_WHY_LIMIT, e);
		} else if (aw_asks_on_read(conn)) {
			v = asked(conn, AW_WHY_READ, e);
		}
		if (v.action == AW_SEND_NOW)
			return v;
		/* all data was read, and it ended a message of the peer */
		if (!conn->order.bytes && e->bytes && !e->unread_bytes &&
		    !(e->flags & AW_FLAG_HOLE_OPEN) &&
		    (s->pushed == 2 || (s->pushed && !s->pingpong)))
			return aw_send_now(AW_REASON_PUSH);
	}
	return window_doubled(e) ? aw_send_now(AW_REASON_WINDOW_UPDATE) : v;
}

static void on_ack_sent(struct aw_conn *conn, const struct aw_event *e)
{
	struct linux_host *s = state_of(conn);

	/* a pure window update does not use up a quick ACK */
	if (s->quick && aw_owes(conn) && !--s->quick)
		s->ato_us = ATO_MIN_US;
	s->timer_ns = 0;
	s->pushed = 0;
	if (e->flags & AW_FLAG_PIGGYBACK &&
	    e->now_ns - s->last_data_ns < s->ato_us * AW_NS_PER_US)
		s->pingpong = 1;
}

const struct aw_host aw_host_linux = {
	.name = "linux",
	.summary = "as an unmodified Linux 6.12 receiver",
	.source = "Linux 6.12, net/ipv4/tcp_input.c, tcp_output.c, tcp.c",
	.wnd_use = AW_WND_USE_STOCK,
	.delay = delay,
	.on_data = on_data,
	.on_deadline = on_deadline,
	.on_app_read = on_app_read,
	.on_ack_sent = on_ack_sent,
};
