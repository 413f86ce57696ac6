/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Duties: what the RFCs require of every host, whatever its own rule and its policy.
 * A duty turns "wait" into "now", or moves a deadline earlier; never the opposite.
 *
 *	verdict ----> duty? -- yes --> send now, with the duty's reason
 *	                |
 *	                no ----------> deadline at most 500 ms, or the host's
 *	                               maximum, after the oldest unacknowledged
 *	                               arrival; sooner while segments above a
 *	                               hole share an ACK
 */
#include <ackwise/host.h>

/* Sent immediately, or recovery would start later: "A TCP receiver SHOULD send an
 * immediate duplicate ACK when an out-of-order segment arrives" [RFC 5681, 3.2] */
#define DUPLICATE_ACKS 3
/* At most RTT / 20, so that the sender's scoreboard is never much older. */
#define COMPRESS_RTT_SHARE 20

/*
 * How long segments above a hole, including e's, may wait for an ACK: now or earlier,
 * the ACK is due; AW_NEVER_NS, there are none.  Segments that wait already do not
 * outlast the verdict in force.  [D-31]
 */
static aw_u64 compress_until_ns(const struct aw_conn *conn, const struct aw_event *e)
{
	const struct aw_compress *c = &conn->compress;
	bool above = e->kind == AW_EVENT_DATA && e->seq == AW_SEQ_HOLE;
	aw_u64 delay_ns = e->sack_delay_us * AW_NS_PER_US;

	if (above && (c->duplicate_acks < DUPLICATE_ACKS || !delay_ns))
		return e->now_ns;
	/* a late timer will still fire: not a reason to send an ACK per segment */
	if (c->waiting && above)
		return aw_max_u64(conn->pending.deadline_ns, e->now_ns + 1);
	if (c->waiting)
		return conn->pending.deadline_ns;
	if (!above)
		return AW_NEVER_NS;
	return aw_add_ns(e->now_ns,
			 aw_min_u64(delay_ns, aw_div64(e->rtt_us * AW_NS_PER_US,
						       COMPRESS_RTT_SHARE)));
}

void aw_duties_note(struct aw_conn *conn, const struct aw_event *e)
{
	struct aw_compress *c = &conn->compress;
	struct aw_verdict v = conn->pending;

	if (e->seq == AW_SEQ_IN || e->seq == AW_SEQ_FILLS)
		c->duplicate_acks = 0;
	if (e->seq != AW_SEQ_HOLE)
		return;
	if (v.action == AW_WAIT && c->waiting < 255)
		c->waiting++;
	if (v.action == AW_SEND_NOW && v.reason == AW_REASON_OUT_OF_ORDER &&
	    c->duplicate_acks < DUPLICATE_ACKS)
		c->duplicate_acks++;
}

/*
 * The peer has no usable window left, and an ACK would offer some.  If the
 * application has not read and there is none to offer, a later read repeats this
 * test, even when no ACK is owed.  "A TCP implementation MUST include a SWS
 * avoidance algorithm in the receiver" [RFC 9293, 3.8.6.2.2]: such an update waits
 * for room worth offering.
 */
static bool window_dry(bool owed, const struct aw_event *e)
{
	aw_u32 room = aw_wnd_unusable(e);

	if (aw_wnd_left(e) >= room)
		return false;
	/* an owed ACK leaves anyway, so any room is worth it */
	if (owed && e->kind != AW_EVENT_APP_READ)
		room = 1;
	return aw_wnd_slide(e) >= room;
}

/* The duty that forbids waiting, or AW_REASON_NONE. */
static enum aw_reason duty(bool owed, const struct aw_event *e)
{
	if (e->kind == AW_EVENT_DATA) {
		switch (e->seq) {
		case AW_SEQ_FILLS:
			/* "SHOULD send an immediate ACK when it receives a data
			 * segment that fills in all or part of a gap"
			 * [RFC 5681, 4.2 (b)]; without it, recovery stalls and the
			 * sender may time out */
			return AW_REASON_HOLE_FILLED;
		case AW_SEQ_DUPLICATE:
			/* "If an incoming segment is not acceptable, an
			 * acknowledgment should be sent in reply"
			 * [RFC 9293, 3.10.7.4 (a)]; without it, the sender
			 * retransmits again */
			return AW_REASON_DUPLICATE;
		default:
			break;
		}
		/* "set DCTCP.CE to true and send an immediate ACK" [RFC 8257, 3.2]:
		 * an ACK must not cover both marked and unmarked bytes */
		if (e->flags & AW_FLAG_CE_CHANGE)
			return AW_REASON_CE_CHANGE;
		/* "send an acknowledgment for the FIN" [RFC 9293, 3.10.7.4 (b)];
		 * no more data will arrive to reach a threshold */
		if (e->flags & AW_FLAG_FIN)
			return AW_REASON_FIN;
	}
	if (owed && e->flags & (AW_FLAG_QUICKACK | AW_FLAG_READER_WAITS)) {
		/* the host has been told that this peer must not wait [D-01] */
		if (e->flags & AW_FLAG_QUICKACK)
			return AW_REASON_HOST_QUICKACK;
		/* no read will send the ACK, and the sender may need it to send
		 * what the reader waits for [RFC 5681, 4.2 (a)] */
		if (e->unacked_bytes > e->rcv_mss_bytes)
			return AW_REASON_READER_WAITS;
	}
	/* the sender does not know of the room in the buffer and would stall until
	 * the deadline: it waits until "a maximum-sized segment can be sent"
	 * [RFC 9293, 3.8.6.2.1] */
	return window_dry(owed, e) ? AW_REASON_WINDOW_DRY : AW_REASON_NONE;
}

/* Returns v unchanged or a new verdict: if its members were changed in place,
 * compilers would not keep v in registers. */
struct aw_verdict aw_duties(struct aw_conn *conn, const struct aw_event *e,
			    struct aw_verdict v)
{
	aw_u64 until_ns = v.deadline_ns, hole_ns, limit_ns;
	enum aw_reason reason;

	if (v.action == AW_SEND_NOW || conn->host->no_duties)
		return v;

	reason = duty(aw_owes(conn), e);
	if (reason != AW_REASON_NONE)
		return aw_by_duty(aw_send_now(reason));
	if (v.action != AW_WAIT)
		return v;

	hole_ns = compress_until_ns(conn, e);
	if (hole_ns < until_ns) {
		until_ns = hole_ns;
		if (until_ns <= e->now_ns)
			return aw_by_duty(aw_send_now(AW_REASON_OUT_OF_ORDER));
	}
	/* "the delay MUST be less than 0.5 seconds", or the sender's RTO fires first
	 * [RFC 9293, 3.8.6.3] [S2.8] [D-17] */
	limit_ns = aw_add_ns(conn->owed_since_ns,
			     aw_most(0, 0, 0, e->delay_max_us).delay_ns);
	if (limit_ns < until_ns) {
		until_ns = limit_ns;
		if (until_ns <= e->now_ns)
			return aw_by_duty(aw_send_now(AW_REASON_MAX_DELAY));
	}
	return until_ns == v.deadline_ns ? v : aw_by_duty(aw_wait_until(until_ns));
}
