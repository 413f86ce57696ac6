/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * One connection: dispatches each event to its host, asks the policy for orders, and
 * keeps the verdict in force.
 *
 *	            data                    data, read
 *	NOTHING ------------> WAIT ---------------------------> SEND_NOW
 *	   ^                   |  deadline, order or duty          |
 *	   +-------------------+-----------------------------------+
 *	                         ACK sent
 *
 * Only an ACK ends SEND_NOW: a promised ACK is never withdrawn.
 */
#include <ackwise/host.h>

static void measure_flight(struct aw_conn *conn, const struct aw_event *e)
{
	aw_measure_flight(&conn->flight, e->now_ns, conn->account.bytes, e->rtt_us,
			  e->rto_us);
}

static struct aw_order most(const struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_order m = aw_most(e->rcv_mss_bytes, e->wnd_bytes, conn->flight.bytes,
				    e->delay_max_us);

	if (conn->unbounded)
		m.bytes = ~0u;
	if (conn->host->no_duties)
		m.delay_ns = AW_NOW_NS - 1;
	return m;
}

/* The policy's answer; only an order, clamped, is put in force. */
static struct aw_order answer(struct aw_conn *conn, enum aw_why why,
			      const struct aw_event *e, aw_u32 owed_bytes,
			      struct aw_order m)
{
	struct aw_account *a = &conn->account;
	struct aw_seen seen;
	struct aw_order o;

	seen.now_ns = e->now_ns;
	seen.first_ns = conn->owed_since_ns;
	seen.last_ns = a->last_ns;
	seen.owed_bytes = owed_bytes;
	seen.new_bytes = a->bytes - a->asked_bytes;
	seen.new_segments = a->segments;
	seen.new_arrivals = a->arrivals;
	seen.gap_ns = a->gap_ns;
	seen.random = e->random;
	seen.rtt_us = e->rtt_us;
	seen.rto_us = e->rto_us;
	seen.mss_bytes = e->rcv_mss_bytes;
	seen.wnd_bytes = e->wnd_bytes;
	seen.unread_bytes = e->unread_bytes;
	seen.flight_bytes = conn->flight.bytes;
	seen.most = m;
	seen.flags = (aw_u16)a->flags;
	seen.why = (aw_u8)why;
	seen.reason = conn->pending.action == AW_SEND_NOW ? conn->pending.reason
							  : AW_REASON_STACK;
	if (why == AW_WHY_SENT && e->flags & AW_FLAG_PIGGYBACK) {
		seen.flags |= AW_SEEN_ON_DATA;
		seen.reason = AW_REASON_PIGGYBACK;
	}
	a->asked_bytes = a->bytes;
	a->segments = 0;
	a->arrivals = 0;
	a->gap_ns = 0;
	a->flags &= AW_SEEN_HOLE; /* until the hole is filled */

	conn->questions++;
	o = conn->policy->order(conn->state, conn->params, &seen);
	if (!aw_is_now(o)) {
		if (!conn->host->no_duties)
			o = aw_clamp(o, seen.most);
		conn->order = o;
	}
	return o;
}

struct aw_verdict aw_ask(struct aw_conn *conn, enum aw_why why,
			 const struct aw_event *e)
{
	aw_u64 last_ns;
	struct aw_order m, o;

	if (conn->pending.action == AW_SEND_NOW)
		return conn->pending;
	measure_flight(conn, e);
	m = most(conn, e);
	o = answer(conn, why, e, e->unacked_bytes, m);
	if (aw_is_now(o)) {
		conn->account.flags |= AW_SEEN_BY_ORDER;
		return aw_send_now(o.bytes > AW_REASON_WAITING && o.bytes < AW_REASONS
					   ? (enum aw_reason)o.bytes
					   : AW_REASON_UNSTATED);
	}
	/* what waits already is too much for any order, or has almost waited too long */
	last_ns = aw_add_ns(conn->owed_since_ns, m.delay_ns);
	if (e->unacked_bytes >= m.bytes)
		return aw_by_duty(aw_send_now(AW_REASON_FLIGHT));
	if (last_ns < aw_add_ns(e->now_ns, AW_DELAY_MIN_NS))
		return aw_by_duty(aw_send_now(AW_REASON_MAX_DELAY));
	conn->due_ns = AW_NEVER_NS;
	if (o.delay_ns)
		conn->due_ns = aw_min_u64(aw_add_ns(e->now_ns, o.delay_ns), last_ns);
	return aw_nothing();
}

struct aw_verdict aw_order_time(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_verdict v;

	if (conn->due_ns == AW_NEVER_NS)
		conn->due_ns = aw_add_ns(conn->owed_since_ns, conn->order.delay_ns);
	if (conn->due_ns <= e->now_ns) {
		v = aw_ask(conn, AW_WHY_TIMEOUT, e);
		if (v.action == AW_SEND_NOW || !conn->order.delay_ns)
			return v;
	}
	return aw_wait_until(conn->due_ns);
}

struct aw_verdict aw_ask_or_wait(struct aw_conn *conn, enum aw_why why,
				 const struct aw_event *e)
{
	struct aw_verdict v = aw_ask(conn, why, e);

	return v.action == AW_SEND_NOW ? v : aw_wait(conn, e);
}

struct aw_verdict aw_time_is_up(struct aw_conn *conn, const struct aw_event *e)
{
	return conn->order.delay_ns ? aw_ask_or_wait(conn, AW_WHY_TIMEOUT, e)
				    : aw_send_now(AW_REASON_DELAY_TIMER);
}

/* What a policy may want to know about a segment later. */
static void account(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_account *a = &conn->account;
	aw_u64 gap_ns;

	if (a->last_ns && e->now_ns > a->last_ns) {
		gap_ns = e->now_ns - a->last_ns;
		if (gap_ns > a->gap_ns)
			a->gap_ns = (aw_u32)aw_min_u64(gap_ns, ~0u);
	}
	a->last_ns = aw_max_u64(e->now_ns, 1); /* 0: none yet */
	a->segments += e->segments;
	a->arrivals++;
	if (e->seq == AW_SEQ_IN || e->seq == AW_SEQ_FILLS)
		a->bytes += e->bytes;
	if (e->seq == AW_SEQ_DUPLICATE)
		a->flags |= AW_SEEN_DUPLICATE;
	if (e->flags & AW_FLAG_PSH || e->bytes < e->rcv_mss_bytes)
		a->flags |= AW_SEEN_PUSH;
	if (e->flags & AW_FLAG_CE_CHANGE)
		a->flags |= AW_SEEN_CE;
	a->flags &= ~AW_SEEN_HOLE;
	if (e->flags & AW_FLAG_HOLE_OPEN)
		a->flags |= AW_SEEN_HOLE;
}

/* AW_WHY_SENT: only an order is an answer. */
static void next_order(struct aw_conn *conn, const struct aw_event *e,
		       aw_u32 sent_bytes)
{
	measure_flight(conn, e);
	if (aw_is_now(answer(conn, AW_WHY_SENT, e, sent_bytes, most(conn, e))))
		conn->order = aw_order(0, 0);
	conn->due_ns = AW_NEVER_NS;
}

static void put_in_force(struct aw_conn *conn, const struct aw_event *e,
			 struct aw_verdict v)
{
	if (v.action == AW_WAIT && v.deadline_ns <= e->now_ns)
		v = aw_send_now(AW_REASON_DELAY_TIMER);
	conn->pending = aw_duties(conn, e, v);
}

static void on_data(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_verdict v;

	if (conn->policy) {
		if (!conn->account.last_ns)
			next_order(conn, e, 0); /* the first */
		account(conn, e);
	}
	if (!aw_owes(conn))
		conn->owed_since_ns = e->now_ns;
	v = conn->host->on_data(conn, e);
	if (conn->pending.action == AW_SEND_NOW)
		return;
	put_in_force(conn, e, v);
	aw_duties_note(conn, e);
}

static void on_deadline(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_verdict pending = conn->pending;

	if (pending.action == AW_SEND_NOW)
		return;
	/* the timer fired early, or was armed for an older verdict */
	if (pending.action != AW_WAIT || e->now_ns < pending.deadline_ns) {
		conn->pending = aw_duties(conn, e, pending);
	} else if (pending.by_duty) {
		/* the host's own deadline has not passed */
		conn->pending =
			aw_send_now(conn->compress.waiting ? AW_REASON_OUT_OF_ORDER
							   : AW_REASON_MAX_DELAY);
		conn->pending.by_duty = 1;
	} else {
		put_in_force(conn, e, conn->host->on_deadline(conn, e));
	}
}

/* May wnd_next_bytes change what the host does, given the rest of e? */
static bool wnd_next_matters(const struct aw_conn *conn, const struct aw_event *e)
{
	aw_u32 left = aw_wnd_left(e);

	return left < aw_wnd_unusable(e) || conn->host->wnd_use == AW_WND_USE_ALWAYS ||
	       (conn->host->wnd_use == AW_WND_USE_STOCK &&
		left <= e->wnd_max_bytes / 2);
}

/* False for reads that the host is not told about; sockets need not report them. */
static bool read_is_news(const struct aw_conn *conn, const struct aw_event *e)
{
	aw_u32 slide;

	if (aw_owes(conn) || e->unacked_bytes || !e->bytes || e->flags & AW_FLAG_DELACK)
		return true;
	slide = wnd_next_matters(conn, e) ? aw_wnd_slide(e) : 0;
	return aw_wnd_worth_update(aw_wnd_left(e), slide, e->wnd_max_bytes,
				   e->rcv_mss_bytes);
}

static void on_app_read(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_verdict pending = conn->pending, v = conn->host->on_app_read(conn, e);

	if (pending.action == AW_SEND_NOW)
		return;
	if (v.action == pending.action && v.deadline_ns == pending.deadline_ns)
		conn->pending = aw_duties(conn, e, pending);
	/* no ACK is owed, so there is nothing to wait for */
	else if (!aw_owes(conn) && v.action != AW_SEND_NOW)
		conn->pending = aw_duties(conn, e, aw_nothing());
	else
		put_in_force(conn, e, v);
}

void aw_conn_init(struct aw_conn *conn, const struct aw_host *host,
		  const struct aw_params *host_params, const struct aw_policy *policy,
		  const struct aw_params *params, const struct aw_event *e)
{
	*conn = (struct aw_conn){ .host = host };
	conn->policy = policy;
	conn->host_params = host_params;
	conn->params = params;
	conn->owed_since_ns = AW_NEVER_NS;
	conn->due_ns = AW_NEVER_NS;
	conn->pending = aw_nothing();
	conn->flight.start_ns = e->now_ns;
	conn->news = AW_NEWS_EVENT;
	conn->unbounded = host->unbounded;
	if (host->init)
		host->init(conn, e);
	if (policy && policy->init)
		policy->init(conn->state, params, e->random);
}

static void on_ack_sent(struct aw_conn *conn, const struct aw_event *e)
{
	conn->host->on_ack_sent(conn, e);
	if (conn->policy && aw_owes(conn))
		next_order(conn, e, conn->unacked_bytes);
	conn->news = e->flags & AW_FLAG_PIGGYBACK ? AW_NEWS_NONE : AW_NEWS_REPLY;
	conn->owed_since_ns = AW_NEVER_NS;
	conn->unacked_bytes = 0;
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
		conn->unacked_bytes = e->unacked_bytes;
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
