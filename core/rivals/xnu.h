/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What both strategies of XNU share. */
#ifndef ACKWISE_RIVALS_XNU_H
#define ACKWISE_RIVALS_XNU_H

#include <ackwise/policy.h>

#define AW_XNU_DELAY_NS (100 * AW_NS_PER_MS)

/*
 * How far an ACK now would move the window's right edge: what the application has
 * read since the last ACK left.  before_bytes: unread when it left.
 */
static inline aw_u64 aw_xnu_window_gain(aw_u32 before_bytes, const struct aw_seen *seen)
{
	aw_u64 held_bytes = (aw_u64)before_bytes + seen->owed_bytes;

	return held_bytes > seen->unread_bytes ? held_bytes - seen->unread_bytes : 0;
}

/* Waits on, and is asked at the next arrival; the timer runs from the first. */
static inline struct aw_order aw_xnu_wait(const struct aw_seen *seen)
{
	aw_u64 end_ns = aw_add_ns(seen->first_ns, AW_XNU_DELAY_NS);

	return aw_order(seen->owed_bytes + 1ull,
			end_ns > seen->now_ns ? end_ns - seen->now_ns : 1);
}

/* After an ACK: asked at the first arrival. */
static inline struct aw_order aw_xnu_anew(void)
{
	return aw_order(1, AW_XNU_DELAY_NS);
}

/* Was there a hole, also one that has just been filled?  in_hole: the state of it. */
static inline bool aw_xnu_met_a_hole(aw_u8 *in_hole, const struct aw_seen *seen)
{
	bool met = *in_hole ||
		   (seen->why == AW_WHY_SENT && seen->reason == AW_REASON_HOLE_FILLED);

	*in_hole = (seen->flags & AW_SEEN_HOLE) != 0;
	return met || *in_hole;
}

#endif /* ACKWISE_RIVALS_XNU_H */
