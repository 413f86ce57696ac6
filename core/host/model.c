/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * model: arrivals and a policy, without a protocol.
 *
 * Purpose: the model of papers that reason about arrivals alone; not for TCP.
 * Formula: an order as it was given, without clamp and duties.  Without a policy,
 *	each arrival is acknowledged.
 * States:
 *
 *	            data                   as ordered
 *	(idle) -------------> waiting -----------------> send now
 *
 * Source: spec/2-dynamic-acknowledgement.md, "model".
 * Constants: none.
 * Deviations: none.
 */
#include <ackwise/host.h>

static struct aw_verdict wait(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_verdict v = aw_order_wait(conn, e);

	return v.action == AW_NOTHING ? aw_wait_until(AW_NEVER_NS) : v;
}

static struct aw_verdict on_data(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_verdict v;

	if (!conn->order.bytes && !conn->order.delay_ns)
		return aw_send_now(AW_REASON_EVERY_SEGMENT);
	/* a model has no holes: what is out of order in a capture is an arrival, too */
	if (conn->order.bytes &&
	    (e->unacked_bytes >= conn->order.bytes || e->seq != AW_SEQ_IN)) {
		v = aw_ask(conn, AW_WHY_LIMIT, e);
		if (v.action == AW_SEND_NOW)
			return v;
	}
	return wait(conn, e);
}

static struct aw_verdict on_deadline(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_verdict v = aw_send_now(AW_REASON_DELAY_TIMER);

	if (conn->order.delay_ns)
		v = aw_ask(conn, AW_WHY_TIMEOUT, e);
	return v.action == AW_SEND_NOW ? v : wait(conn, e);
}

static struct aw_verdict on_app_read(struct aw_conn *conn, const struct aw_event *e)
{
	(void)e;
	return conn->pending;
}

static void on_ack_sent(struct aw_conn *conn, const struct aw_event *e)
{
	(void)conn;
	(void)e;
}

const struct aw_host aw_host_model = {
	.name = "model",
	.summary = "arrivals and a policy, without a protocol, as in papers",
	.source = "spec/2-dynamic-acknowledgement.md",
	.wnd_use = AW_WND_USE_NEVER,
	.unbounded = 1,
	.no_duties = 1,
	.on_data = on_data,
	.on_deadline = on_deadline,
	.on_app_read = on_app_read,
	.on_ack_sent = on_ack_sent,
};
