/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What protocol duty demands of any policy: the one file that keeps a bad
 * policy correct.  A rail turns "wait" into "now", or a late deadline into an
 * earlier one; it never does the opposite, so it cannot harm a good policy.
 *
 *	verdict ----> duty? -- yes --> send now, with the rail's reason
 *	                |
 *	                no ----------> deadline at most 500 ms after the first
 *	                               arrival that no ACK has covered
 */
#include <ackwise/rails.h>

/*
 * The peer has no usable window left and an ACK would give it some.  Where an
 * ACK would give none (the reader lags), it is not sent for that: the same
 * test on the next read sends it, once there is a usable piece to tell of
 * (RFC 9293, 3.8.6.2.2), and that also when nothing is owed.
 */
static bool window_dry(const struct aw_event *e)
{
	u32 room = aw_wnd_unusable(e);

	if (aw_wnd_left(e) >= room)
		return false;
	return aw_wnd_slide(e) >= (e->kind == AW_EVENT_APP_READ ? room : 1);
}

/* The duty that forbids to wait, or AW_REASON_NONE. */
static enum aw_reason duty(u32 rails, bool owed, u32 share_bytes,
			   const struct aw_event *e)
{
	if (e->kind == AW_EVENT_DATA) {
		if (rails & AW_RAIL_ORDER) {
			switch (e->order) {
			case AW_ORDER_HOLE:
				/* lost else: the duplicate ACK that starts fast
				 * retransmit (RFC 5681, 4.2) */
				return AW_REASON_OUT_OF_ORDER;
			case AW_ORDER_FILLS:
				/* lost else: recovery's progress; the sender may
				 * time out meanwhile (RFC 5681, 4.2) */
				return AW_REASON_HOLE_FILLED;
			case AW_ORDER_DUPLICATE:
				/* lost else: that the data had come; the sender
				 * sends it again (RFC 9293, 3.10.7.4) */
				return AW_REASON_DUPLICATE;
			default:
				break;
			}
		}
		/* lost else: which of the bytes met congestion, since one ACK
		 * would cover both kinds (RFC 3168, 6.1.3; RFC 8257, 3.2) */
		if (rails & AW_RAIL_CE && e->flags & AW_FLAG_CE_CHANGE)
			return AW_REASON_CE_CHANGE;
		/* lost else: time; nothing more will come that could fill up
		 * a count (RFC 9293, 3.10.7.4) */
		if (rails & AW_RAIL_FIN && e->flags & AW_FLAG_FIN)
			return AW_REASON_FIN;
	}
	/* lost else: the host's knowledge that this peer must not wait */
	if (rails & AW_RAIL_QUICKACK && e->flags & AW_FLAG_QUICKACK && owed)
		return AW_REASON_HOST_QUICKACK;
	/* lost else: room in the buffer that the sender does not know of; it
	 * would stand still until the deadline (RFC 9293, 3.8.6.2) */
	if (rails & AW_RAIL_WINDOW_DRY && window_dry(e))
		return AW_REASON_WINDOW_DRY;
	/* lost else: the ACK per two full segments that a sender which counts
	 * ACKs grows by (RFC 5681, 4.2) */
	if (rails & AW_RAIL_SECOND_SEGMENT &&
	    e->unacked_bytes >= 2ull * e->rcv_mss_bytes)
		return AW_REASON_SECOND_SEGMENT;
	/* lost else: the sender's clock; with all that it may send on its way it
	 * stands still, and what it is told of at once it sends in a burst.  Two
	 * segments may wait in any case (RFC 5681, 4.2) */
	if (rails & AW_RAIL_FLIGHT && e->kind == AW_EVENT_DATA &&
	    e->unacked_bytes >= aw_max_u64(share_bytes, 2ull * e->rcv_mss_bytes))
		return AW_REASON_FLIGHT;
	return AW_REASON_NONE;
}

struct aw_verdict aw_rails_apply(u32 rails, u64 owed_since_ns, u32 share_bytes,
				 const struct aw_event *e, struct aw_verdict v)
{
	u64 limit_ns = aw_add_ns(owed_since_ns, AW_MAX_DELAY_NS);
	enum aw_reason reason;

	if (v.action == AW_SEND_NOW)
		return v;

	reason = duty(rails, owed_since_ns != AW_NEVER_NS, share_bytes, e);
	/* lost else: the sender's time-out comes before the ACK (RFC 1122,
	 * 4.2.3.2; RFC 5681, 4.2) */
	if (reason == AW_REASON_NONE && rails & AW_RAIL_MAX_DELAY &&
	    v.action == AW_WAIT && v.deadline_ns > limit_ns) {
		v.deadline_ns = limit_ns;
		v.by_rail = 1;
		if (limit_ns <= e->now_ns)
			reason = AW_REASON_MAX_DELAY;
	}
	if (reason != AW_REASON_NONE) {
		v = aw_send_now(reason);
		v.by_rail = 1;
	}
	return v;
}
