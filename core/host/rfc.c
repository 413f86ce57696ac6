/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * rfc: what the RFCs ask for, and nothing else.
 *
 * Purpose: the host for stacks that have no ACK rules of their own.
 * Formula: now, once two full segments are unacknowledged; else 200 ms after the
 *	first unacknowledged arrival.  An order takes the place of both numbers.
 * States:
 *
 *	            data                    enough
 *	(idle) -------------> waiting -----------------> send now
 *	                         |       time up            ^
 *	                         +--------------------------+
 *
 * Source: RFC 1122, 4.2.3.2; RFC 5681, 4.2; duties: RFC 9293.
 * Constants: 200 ms is the classic BSD value, well within the 500 ms allowed.
 * Deviations: none.
 */
#include <ackwise/host.h>

#define DELAY_NS (200 * AW_NS_PER_MS)

/* "A TCP SHOULD implement a delayed ACK" [RFC 1122, 4.2.3.2] */
static struct aw_verdict delay(struct aw_conn *conn, const struct aw_event *e)
{
	(void)e;
	return aw_wait_until(aw_add_ns(conn->owed_since_ns, DELAY_NS));
}

static struct aw_verdict on_data(struct aw_conn *conn, const struct aw_event *e)
{
	if (!conn->order.bytes) {
		/* "an ACK SHOULD be generated for at least every second full-sized
		 * segment" [RFC 5681, 4.2 (a)] */
		if (e->unacked_bytes >= 2ull * e->rcv_mss_bytes)
			return aw_send_now(AW_REASON_SECOND_SEGMENT);
	} else if (e->unacked_bytes >= conn->order.bytes) {
		return aw_ask_or_wait(conn, AW_WHY_LIMIT, e);
	}
	return aw_wait(conn, e);
}

static struct aw_verdict on_app_read(struct aw_conn *conn, const struct aw_event *e)
{
	return aw_asks_on_read(conn) ? aw_ask_or_wait(conn, AW_WHY_READ, e)
				     : conn->pending;
}

static void on_ack_sent(struct aw_conn *conn, const struct aw_event *e)
{
	(void)conn;
	(void)e;
}

const struct aw_host aw_host_rfc = {
	.name = "rfc",
	.summary = "what the RFCs ask for: two full segments or 200 ms",
	.source = "RFC 9293, 3.8.6.3; RFC 5681, 4.2",
	.wnd_use = AW_WND_USE_NEVER,
	.delay = delay,
	.on_data = on_data,
	.on_deadline = aw_time_is_up,
	.on_app_read = on_app_read,
	.on_ack_sent = on_ack_sent,
};
