/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One connection: dispatches each event to the policy, replaces answers that no
 * driver could obey, and keeps the verdict in force.
 *
 *	            data                    data, read
 *	NOTHING ------------> WAIT ---------------------------> SEND_NOW
 *	   ^                   |  deadline, policy or rail         |
 *	   +-------------------+-----------------------------------+
 *	                         ACK sent
 *
 * Only an ACK ends SEND_NOW: a promised ACK is never withdrawn, whatever the
 * policy answers before the driver has sent it.
 */
#include <ackwise/ackwise.h>

/*
 * The share of the sender's flight that may wait for an ACK [D-26].  Until the
 * flight is known, a whole initial window, min(10*MSS, max(2*MSS, 14600))
 * [RFC 6928, 2]: the sender gets an ACK before it stalls until the timer.
 */
static u32 share_bytes(const struct aw_conn *conn, const struct aw_event *e)
{
	u32 acks, share = conn->flight.bytes;

	/* two segments may always wait */
	if (!(conn->rails & AW_RAIL_FLIGHT) ||
	    e->unacked_bytes < 2ull * e->rcv_mss_bytes)
		return 0;
	if (!share)
		return (u32)aw_min_u64(AW_INITIAL_WINDOW * (u64)e->rcv_mss_bytes, ~0u);
	acks = conn->policy->acks_per_round ? conn->policy->acks_per_round
					    : AW_ACKS_PER_ROUND;
	/* no division: some 32-bit targets would need libgcc */
	for (; acks > 1; acks >>= 1)
		share >>= 1;
	return share;
}

static u64 hole_until_ns(const struct aw_conn *conn, const struct aw_event *e)
{
	return conn->rails & AW_RAIL_ORDER
		       ? aw_compress_until_ns(&conn->compress, conn->pending, e)
		       : AW_NEVER_NS;
}

/* Applies the rails to v and puts the result in force. */
static void put_in_force(struct aw_conn *conn, const struct aw_event *e,
			 struct aw_verdict v)
{
	conn->pending =
		aw_rails_apply(conn->rails, conn->owed_since_ns, share_bytes(conn, e),
			       hole_until_ns(conn, e), e, v);
}

/*
 * Puts a policy's answer in force while an ACK is owed, or the nearest valid one.
 * A bad policy may be slow, but must not lose an ACK or keep arming a timer in the
 * past.
 */
static void obey(struct aw_conn *conn, const struct aw_event *e, struct aw_verdict v)
{
	switch (v.action) {
	case AW_SEND_NOW:
		if (v.reason <= AW_REASON_WAITING || v.reason >= AW_REASONS)
			v.reason = AW_REASON_UNSTATED;
		conn->pending = aw_send_now((enum aw_reason)v.reason);
		break;
	case AW_WAIT:
		if (v.deadline_ns <= e->now_ns)
			conn->pending = aw_send_now(AW_REASON_DELAY_TIMER);
		else
			put_in_force(conn, e, aw_wait_until(v.deadline_ns));
		break;
	default:
		/* "nothing" would never send the ACK: "the delay MUST be less than
		 * 0.5 seconds" [RFC 9293, 3.8.6.3] */
		v = aw_rails_apply(AW_RAIL_MAX_DELAY, conn->owed_since_ns, 0,
				   AW_NEVER_NS, e, aw_wait_until(AW_NEVER_NS));
		put_in_force(conn, e, v);
	}
}

static void on_data(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_verdict v;

	if (conn->owed_since_ns == AW_NEVER_NS)
		conn->owed_since_ns = e->now_ns;
	aw_flight_measure(&conn->flight, e);
	v = conn->policy->on_data(conn->state, conn->params, e);
	if (conn->pending.action == AW_SEND_NOW)
		return;
	obey(conn, e, v);
	aw_compress_note(&conn->compress, e, conn->pending);
}

static void on_deadline(struct aw_conn *conn, const struct aw_event *e)
{
	const struct aw_policy *policy = conn->policy;

	if (conn->pending.action == AW_SEND_NOW)
		return;
	/* the timer fired early, or was armed for an older verdict */
	if (conn->pending.action != AW_WAIT || e->now_ns < conn->pending.deadline_ns) {
		put_in_force(conn, e, conn->pending);
	} else if (conn->pending.by_rail) {
		/* the policy's own deadline has not passed: do not call it */
		conn->pending =
			aw_send_now(conn->compress.waiting ? AW_REASON_OUT_OF_ORDER
							   : AW_REASON_MAX_DELAY);
		conn->pending.by_rail = 1;
	} else if (policy->on_deadline) {
		obey(conn, e, policy->on_deadline(conn->state, conn->params, e));
	} else {
		conn->pending = aw_send_now(AW_REASON_DELAY_TIMER);
	}
}

/* False for reads that the policy is not told about; drivers need not report them. */
static bool read_is_news(const struct aw_conn *conn, const struct aw_event *e)
{
	u32 slide;

	if (conn->owed_since_ns != AW_NEVER_NS || e->unacked_bytes || !e->bytes ||
	    e->flags & AW_FLAG_DELACK)
		return true;
	/* the driver need not compute wnd_next_bytes when no one reads it */
	slide = aw_wnd_next_matters(conn->policy, e) ? aw_wnd_slide(e) : 0;
	return aw_wnd_worth_update(aw_wnd_left(e), slide, e->wnd_max_bytes,
				   e->rcv_mss_bytes);
}

static void on_app_read(struct aw_conn *conn, const struct aw_event *e)
{
	const struct aw_policy *policy = conn->policy;
	struct aw_verdict pending = conn->pending, v = pending;

	if (policy->on_app_read)
		v = policy->on_app_read(conn->state, conn->params, e, pending);
	if (pending.action == AW_SEND_NOW)
		return;
	if (v.action == pending.action && v.deadline_ns == pending.deadline_ns)
		put_in_force(conn, e, pending);
	/* no ACK is owed, so there is nothing to wait for */
	else if (conn->owed_since_ns == AW_NEVER_NS && v.action != AW_SEND_NOW)
		put_in_force(conn, e, aw_nothing());
	else
		obey(conn, e, v);
}

void aw_conn_init(struct aw_conn *conn, const struct aw_policy *policy,
		  const struct aw_params *params, u32 rails, const struct aw_event *e)
{
	u32 i;

	conn->policy = policy;
	conn->params = params;
	conn->owed_since_ns = AW_NEVER_NS;
	conn->pending = aw_nothing();
	conn->rails = rails;
	conn->flight = (struct aw_flight){ 0, 0, 0 };
	conn->compress = (struct aw_compress){ 0, 0 };
	conn->news = AW_NEWS_EVENT;
	conn->reserved = 0;
	for (i = 0; i < AW_STATE_MAX_BYTES / 8; i++)
		conn->state[i] = 0;
	if (policy->init)
		policy->init(conn->state, params, e);
}

static void on_ack_sent(struct aw_conn *conn, const struct aw_event *e)
{
	if (conn->policy->on_ack_sent)
		conn->policy->on_ack_sent(conn->state, conn->params, e);
	conn->news = e->flags & AW_FLAG_PIGGYBACK ? AW_NEWS_NONE : AW_NEWS_REPLY;
	conn->owed_since_ns = AW_NEVER_NS;
	conn->compress.waiting = 0;
	conn->pending = aw_nothing();
}

/*
 * One verdict per event: "A TCP receiver MUST NOT generate more than one ACK for
 * every incoming segment" [RFC 5681, 4.2 (c)].
 */
struct aw_verdict aw_decide(struct aw_conn *conn, const struct aw_event *e)
{
	switch (e->kind) {
	case AW_EVENT_DATA:
		conn->news = AW_NEWS_EVENT;
		on_data(conn, e);
		break;
	case AW_EVENT_DEADLINE:
		conn->news = AW_NEWS_EVENT;
		on_deadline(conn, e);
		break;
	case AW_EVENT_APP_READ:
		if (!read_is_news(conn, e))
			break;
		conn->news = AW_NEWS_EVENT;
		on_app_read(conn, e);
		break;
	case AW_EVENT_ACK_SENT: /* also when piggybacked on data [S1.8] */
		if (aw_conn_ack_is_news(conn, e->flags & AW_FLAG_PIGGYBACK))
			on_ack_sent(conn, e);
		break;
	default:
		break;
	}
	return conn->pending;
}
