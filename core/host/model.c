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

static struct aw_verdict delay(struct aw_conn *conn, const struct aw_event *e)
{
	(void)conn;
	(void)e;
	return aw_wait_until(AW_NEVER_NS);
}

static struct aw_verdict on_data(struct aw_conn *conn, const struct aw_event *e)
{
	if (!conn->order.bytes && !conn->order.delay_ns)
		return aw_send_now(AW_REASON_EVERY_SEGMENT);
	/* a model has no holes: what is out of order in a capture is an arrival, too */
	if (conn->order.bytes &&
	    (e->unacked_bytes >= conn->order.bytes || e->seq != AW_SEQ_IN))
		return aw_ask_or_wait(conn, AW_WHY_LIMIT, e);
	return aw_wait(conn, e);
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
	.delay = delay,
	.on_data = on_data,
	.on_deadline = aw_time_is_up,
	.on_app_read = on_app_read,
	.on_ack_sent = on_ack_sent,
};
