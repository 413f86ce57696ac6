/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the RFCs demand of every receiver: the one file that keeps even a bad
 * policy correct.  A rail turns "wait" into "now", or a late deadline into an
 * earlier one; it never does the opposite, so it cannot harm a good policy.
 *
 *	verdict ----> duty? -- yes --> send now, with the rail's reason
 *	                |
 *	                no ----------> deadline at most 500 ms, or what the host
 *	                               allows, after the oldest unacknowledged
 *	                               arrival; sooner while segments above a
 *	                               hole share an ACK (compress.h)
 */
#include <ackwise/rails.h>

/*
 * The peer has no usable window left and an ACK would offer some.  If it would
 * offer none because the application has not read, the same test on a later
 * read sends it, even when no ACK is owed, once there is room worth offering
 * [RFC9293.4].
 */
static bool window_dry(bool owed, const struct aw_event *e)
{
	u32 room = aw_wnd_unusable(e);

	if (aw_wnd_left(e) >= room)
		return false;
	/* an ACK that is owed has to leave anyway, so any room is worth it */
	if (owed && e->kind != AW_EVENT_APP_READ)
		room = 1;
	return aw_wnd_slide(e) >= room;
}

/* The duty that forbids waiting, or AW_REASON_NONE. */
static enum aw_reason duty(u32 rails, bool owed, u32 share_bytes,
			   const struct aw_event *e)
{
	/* one test for what most segments are not: late, marked, or the last */
	if (e->kind == AW_EVENT_DATA &&
	    (e->order > AW_ORDER_HOLE ||
	     e->flags & (AW_FLAG_CE_CHANGE | AW_FLAG_FIN))) {
		if (rails & AW_RAIL_ORDER) {
			switch (e->order) {
			case AW_ORDER_FILLS:
				/* lost otherwise: the progress of recovery; the
				 * sender may time out [RFC5681.2] */
				return AW_REASON_HOLE_FILLED;
			case AW_ORDER_DUPLICATE:
				/* lost otherwise: that the data has arrived; the
				 * sender retransmits it again [RFC9293.1] */
				return AW_REASON_DUPLICATE;
			default:
				break;
			}
		}
		/* lost otherwise: which bytes were CE-marked, since one ACK would
		 * cover both kinds [RFC3168.1] */
		if (rails & AW_RAIL_CE && e->flags & AW_FLAG_CE_CHANGE)
			return AW_REASON_CE_CHANGE;
		/* lost otherwise: time; no more data will come to reach a
		 * threshold [RFC9293.2] */
		if (rails & AW_RAIL_FIN && e->flags & AW_FLAG_FIN)
			return AW_REASON_FIN;
	}
	if (owed && e->flags & (AW_FLAG_QUICKACK | AW_FLAG_READER_WAITS)) {
		/* lost otherwise: the host's knowledge that this peer must not wait
		 * [D-01] */
		if (rails & AW_RAIL_QUICKACK && e->flags & AW_FLAG_QUICKACK)
			return AW_REASON_HOST_QUICKACK;
		/* lost otherwise: time; the sender may need the ACK to send what the
		 * reader waits for, so no read will bring it [RFC1122.3] */
		if (rails & AW_RAIL_READER && e->flags & AW_FLAG_READER_WAITS &&
		    e->unacked_bytes > e->rcv_mss_bytes)
			return AW_REASON_READER_WAITS;
	}
	/* lost otherwise: room in the buffer that the sender does not know of; it
	 * would stall until the deadline [RFC9293.5] */
	if (rails & AW_RAIL_WINDOW_DRY && window_dry(owed, e))
		return AW_REASON_WINDOW_DRY;
	/* lost otherwise: growth of a sender that counts ACKs, one per two full
	 * segments [RFC1122.3] [D-02] */
	if (rails & AW_RAIL_SECOND_SEGMENT &&
	    e->unacked_bytes >= 2ull * e->rcv_mss_bytes)
		return AW_REASON_SECOND_SEGMENT;
	/* lost otherwise: the ACK clock; the sender stalls once its window is in
	 * flight, then sends a burst.  Two segments may always wait (RFC 5681,
	 * 4.2) [D-26] */
	if (rails & AW_RAIL_FLIGHT && e->kind == AW_EVENT_DATA &&
	    e->unacked_bytes >= aw_max_u64(share_bytes, 2ull * e->rcv_mss_bytes))
		return AW_REASON_FLIGHT;
	return AW_REASON_NONE;
}

static struct aw_verdict by_rail(struct aw_verdict v)
{
	v.by_rail = 1;
	return v;
}

/* v is returned as it came or not at all: to change members of it would take it
 * apart and put it together again on every path. */
struct aw_verdict aw_rails_apply(u32 rails, u64 owed_since_ns, u32 share_bytes,
				 u64 hole_until_ns, const struct aw_event *e,
				 struct aw_verdict v)
{
	u64 until_ns = v.deadline_ns, limit_ns;
	enum aw_reason reason;

	if (v.action == AW_SEND_NOW)
		return v;

	reason = duty(rails, owed_since_ns != AW_NEVER_NS, share_bytes, e);
	if (reason != AW_REASON_NONE)
		return by_rail(aw_send_now(reason));
	if (v.action != AW_WAIT)
		return v;

	/* lost otherwise: the duplicate ACKs that start fast retransmit, then what
	 * the sender in recovery has to know [RFC5681.1] [D-31] */
	if (rails & AW_RAIL_ORDER && hole_until_ns < until_ns) {
		until_ns = hole_until_ns;
		if (until_ns <= e->now_ns)
			return by_rail(aw_send_now(AW_REASON_OUT_OF_ORDER));
	}
	/* lost otherwise: the race against the sender's RTO [RFC1122.2]
	 * [S2.8] [D-17] */
	limit_ns = aw_add_ns(owed_since_ns, aw_allowed_ns(e, AW_MAX_DELAY_NS));
	if (rails & AW_RAIL_MAX_DELAY && limit_ns < until_ns) {
		until_ns = limit_ns;
		if (until_ns <= e->now_ns)
			return by_rail(aw_send_now(AW_REASON_MAX_DELAY));
	}
	return until_ns == v.deadline_ns ? v : by_rail(aw_wait_until(until_ns));
}
