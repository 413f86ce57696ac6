/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * SACK compression: once the duplicate ACKs that start fast retransmit have been
 * sent, several segments above a hole may share one ACK, whose SACK blocks report
 * them all.
 */
#ifndef ACKWISE_COMPRESS_H
#define ACKWISE_COMPRESS_H

#include <ackwise/event.h>
#include <ackwise/verdict.h>

/* Sent immediately, or recovery would start later: "A TCP receiver SHOULD send an
 * immediate duplicate ACK when an out-of-order segment arrives" [RFC 5681, 3.2] */
#define AW_DUPLICATE_ACKS 3
/* At most RTT / 20, so that the sender's scoreboard is never much older. */
#define AW_COMPRESS_RTT_SHARE 20
/* Defaults of drivers (Linux: tcp_comp_sack_delay_ns, tcp_comp_sack_nr). */
#define AW_COMPRESS_DELAY_US 1000
#define AW_COMPRESS_SEGMENTS 44

struct aw_compress {
	u8 duplicate_acks; /* since the last in-order data, at most AW_DUPLICATE_ACKS */
	u8 waiting;        /* segments above a hole that no ACK has reported */
};

/*
 * How long segments above a hole, including e's, may wait for an ACK: now or
 * earlier, the ACK is due; AW_NEVER_NS, there are none.  pending: the verdict in
 * force, which segments that wait already do not outlast.  [D-31]
 */
static inline u64 aw_compress_until_ns(const struct aw_compress *c,
				       struct aw_verdict pending,
				       const struct aw_event *e)
{
	bool above = e->kind == AW_EVENT_DATA && e->order == AW_ORDER_HOLE;
	u64 delay_ns = e->sack_delay_us * AW_NS_PER_US;

	if (above && (c->duplicate_acks < AW_DUPLICATE_ACKS || !delay_ns))
		return e->now_ns;
	/* a late timer will still fire: not a reason to send an ACK per segment */
	if (c->waiting && above)
		return aw_max_u64(pending.deadline_ns, e->now_ns + 1);
	if (c->waiting)
		return pending.deadline_ns;
	if (!above)
		return AW_NEVER_NS;
	return aw_add_ns(e->now_ns,
			 aw_min_u64(delay_ns, aw_div64(e->rtt_us * AW_NS_PER_US,
						       AW_COMPRESS_RTT_SHARE)));
}

/* Call with v, the verdict on e after the rails. */
static inline void aw_compress_note(struct aw_compress *c, const struct aw_event *e,
				    struct aw_verdict v)
{
	if (e->kind != AW_EVENT_DATA)
		return;
	if (e->order == AW_ORDER_IN || e->order == AW_ORDER_FILLS)
		c->duplicate_acks = 0;
	if (e->order != AW_ORDER_HOLE)
		return;
	if (v.action == AW_WAIT && c->waiting < 255)
		c->waiting++;
	if (v.action == AW_SEND_NOW && v.reason == AW_REASON_OUT_OF_ORDER &&
	    c->duplicate_acks < AW_DUPLICATE_ACKS)
		c->duplicate_acks++;
}

#endif /* ACKWISE_COMPRESS_H */
