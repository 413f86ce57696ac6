/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Segments above a hole may share an ACK once the sender has had the duplicate
 * ACKs that start fast retransmit: SACK reports all of them at once.
 */
#ifndef ACKWISE_COMPRESS_H
#define ACKWISE_COMPRESS_H

#include <ackwise/event.h>
#include <ackwise/verdict.h>

/* Each leaves at once: with fewer, recovery would begin later. [RFC5681.1] */
#define AW_DUPLICATE_ACKS 3
/* A share of the RTT, so that the sender's picture is never much older. */
#define AW_COMPRESS_RTT_SHARE 20
/* What drivers allow unless told otherwise (Linux, tcp_comp_sack_delay_ns, _nr). */
#define AW_COMPRESS_DELAY_US 1000
#define AW_COMPRESS_SEGMENTS 44

struct aw_compress {
	u8 duplicate_acks; /* since data in order came, at most AW_DUPLICATE_ACKS */
	u8 waiting;        /* segments above a hole that no ACK has reported */
};

/*
 * Until when segments above a hole may wait for an ACK, e's among them: not
 * after now, it is due; AW_NEVER_NS: there are none.  pending: the verdict in
 * force, which those that wait already do not outlast.  [D-31]
 */
static inline u64 aw_compress_until_ns(const struct aw_compress *c,
				       struct aw_verdict pending,
				       const struct aw_event *e)
{
	bool above = e->kind == AW_EVENT_DATA && e->order == AW_ORDER_HOLE;
	u64 delay_ns = e->sack_delay_us * AW_NS_PER_US;

	if (above && (c->duplicate_acks < AW_DUPLICATE_ACKS || !delay_ns))
		return e->now_ns;
	/* a timer that is late will fire: no reason to send for each segment */
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

/* The rails made v the verdict on e. */
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
