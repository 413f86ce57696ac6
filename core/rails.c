/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the RFCs require of every receiver: this file keeps even a bad policy
 * correct.  A rail turns "wait" into "now", or moves a deadline earlier; never the
 * opposite, so it cannot harm a good policy.
 *
 *	verdict ----> duty? -- yes --> send now, with the rail's reason
 *	                |
 *	                no ----------> deadline at most 500 ms, or the host's
 *	                               maximum, after the oldest unacknowledged
 *	                               arrival; sooner while segments above a
 *	                               hole share an ACK (compress.h)
 */
#include <ackwise/rails.h>

/*
 * The peer has no usable window left, and an ACK would offer some.  If the
 * application has not read and there is none to offer, a later read repeats this
 * test, even when no ACK is owed.  "A TCP implementation MUST include a SWS
 * avoidance algorithm in the receiver" [RFC 9293, 3.8.6.2.2]: such an update waits
 * for room worth offering.
 */
static bool window_dry(bool owed, const struct aw_event *e)
{
	u32 room = aw_wnd_unusable(e);

	if (aw_wnd_left(e) >= room)
		return false;
	/* an owed ACK leaves anyway, so any room is worth it */
	if (owed && e->kind != AW_EVENT_APP_READ)
		room = 1;
	return aw_wnd_slide(e) >= room;
}

/* The duty that forbids waiting, or AW_REASON_NONE. */
static enum aw_reason duty(u32 rails, bool owed, u32 share_bytes,
			   const struct aw_event *e)
{
	/* one test for the uncommon cases: out of order, CE change, FIN */
	if (e->kind == AW_EVENT_DATA &&
	    (e->order > AW_ORDER_HOLE ||
	     e->flags & (AW_FLAG_CE_CHANGE | AW_FLAG_FIN))) {
		if (rails & AW_RAIL_ORDER) {
			switch (e->order) {
			case AW_ORDER_FILLS:
				/* "SHOULD send an immediate ACK when it receives
				 * a data segment that fills in all or part of a
				 * gap" [RFC 5681, 4.2 (b)]; without it, recovery
				 * stalls and the sender may time out */
				return AW_REASON_HOLE_FILLED;
			case AW_ORDER_DUPLICATE:
				/* "If an incoming segment is not acceptable, an
				 * acknowledgment should be sent in reply"
				 * [RFC 9293, 3.10.7.4 (a)]; without it, the sender
				 * retransmits again */
				return AW_REASON_DUPLICATE;
			default:
				break;
			}
		}
		/* "set DCTCP.CE to true and send an immediate ACK" [RFC 8257, 3.2]:
		 * an ACK must not cover both marked and unmarked bytes */
		if (rails & AW_RAIL_CE && e->flags & AW_FLAG_CE_CHANGE)
			return AW_REASON_CE_CHANGE;
		/* "send an acknowledgment for the FIN" [RFC 9293, 3.10.7.4 (b)];
		 * no more data will arrive to reach a threshold */
		if (rails & AW_RAIL_FIN && e->flags & AW_FLAG_FIN)
			return AW_REASON_FIN;
	}
	if (owed && e->flags & (AW_FLAG_QUICKACK | AW_FLAG_READER_WAITS)) {
		/* the host has been told that this peer must not wait [D-01] */
		if (rails & AW_RAIL_QUICKACK && e->flags & AW_FLAG_QUICKACK)
			return AW_REASON_HOST_QUICKACK;
		/* no read will send the ACK, and the sender may need it to send
		 * what the reader waits for [RFC 5681, 4.2 (a)] */
		if (rails & AW_RAIL_READER && e->flags & AW_FLAG_READER_WAITS &&
		    e->unacked_bytes > e->rcv_mss_bytes)
			return AW_REASON_READER_WAITS;
	}
	/* the sender does not know of the room in the buffer and would stall until
	 * the deadline: it waits until "a maximum-sized segment can be sent"
	 * [RFC 9293, 3.8.6.2.1] */
	if (rails & AW_RAIL_WINDOW_DRY && window_dry(owed, e))
		return AW_REASON_WINDOW_DRY;
	/* "an ACK SHOULD be generated for at least every second full-sized segment"
	 * [RFC 5681, 4.2 (a)]; a sender that counts ACKs would grow more slowly
	 * [D-02] */
	if (rails & AW_RAIL_SECOND_SEGMENT &&
	    e->unacked_bytes >= 2ull * e->rcv_mss_bytes)
		return AW_REASON_SECOND_SEGMENT;
	/* the ACK clock: without ACKs the sender stalls once its window is in
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

/* Returns v unchanged or a new verdict: if its members were changed in place,
 * compilers would not keep v in registers. */
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

	/* "A TCP receiver SHOULD send an immediate duplicate ACK when an out-of-order
	 * segment arrives" [RFC 5681, 3.2]; later ones may be compressed [D-31] */
	if (rails & AW_RAIL_ORDER && hole_until_ns < until_ns) {
		until_ns = hole_until_ns;
		if (until_ns <= e->now_ns)
			return by_rail(aw_send_now(AW_REASON_OUT_OF_ORDER));
	}
	/* "the delay MUST be less than 0.5 seconds", or the sender's RTO fires first
	 * [RFC 9293, 3.8.6.3] [S2.8] [D-17] */
	limit_ns = aw_add_ns(owed_since_ns, aw_allowed_ns(e, AW_MAX_DELAY_NS));
	if (rails & AW_RAIL_MAX_DELAY && limit_ns < until_ns) {
		until_ns = limit_ns;
		if (until_ns <= e->now_ns)
			return by_rail(aw_send_now(AW_REASON_MAX_DELAY));
	}
	return until_ns == v.deadline_ns ? v : by_rail(aw_wait_until(until_ns));
}
