/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What protocol duty demands of any policy.  Rails see every verdict after
 * the policy and may only bring an ACK forward, never put it off.
 */
#ifndef ACKWISE_RAILS_H
#define ACKWISE_RAILS_H

#include <ackwise/event.h>
#include <ackwise/verdict.h>

/* Each rail can be switched off for experiments. */
#define AW_RAIL_ORDER 0x01u          /* hole, filled hole, duplicate (RFC 5681, 4.2) */
#define AW_RAIL_CE 0x02u             /* CE change (RFC 3168, 6.1.3; RFC 8257, 3.2) */
#define AW_RAIL_FIN 0x04u            /* FIN (RFC 9293, 3.10.7.4) */
#define AW_RAIL_QUICKACK 0x08u       /* the host's own demand */
#define AW_RAIL_MAX_DELAY 0x10u      /* 500 ms (RFC 1122, 4.2.3.2; RFC 5681, 4.2) */
#define AW_RAIL_WINDOW_DRY 0x20u     /* peer's usable window is used up */
#define AW_RAIL_SECOND_SEGMENT 0x40u /* SHOULD of RFC 5681, 4.2 taken as MUST */
#define AW_RAIL_FLIGHT 0x80u         /* several ACKs in a round trip */

#define AW_RAILS_DEFAULT                                               \
	(AW_RAIL_ORDER | AW_RAIL_CE | AW_RAIL_FIN | AW_RAIL_QUICKACK | \
	 AW_RAIL_MAX_DELAY | AW_RAIL_WINDOW_DRY)
#define AW_RAILS_ALL 0xffu

/* Drivers that meet real senders add a bound that no source has: each source
 * has one of its own or none, and is run as it is by default. */
#define AW_RAILS_NETWORK (AW_RAILS_DEFAULT | AW_RAIL_FLIGHT)
#define AW_ACKS_PER_ROUND 4  /* where a policy does not say otherwise */
#define AW_INITIAL_WINDOW 10 /* segments (RFC 6928) */

#define AW_MAX_DELAY_NS (500 * AW_NS_PER_MS)

/*
 * v: the policy's verdict on e.  owed_since_ns: arrival time of the oldest
 * unacknowledged data, AW_NEVER_NS when nothing is owed.  share_bytes: what of
 * the sender's flight may wait without an ACK, for AW_RAIL_FLIGHT.  Returns v
 * or an earlier one.
 */
struct aw_verdict aw_rails_apply(u32 rails, u64 owed_since_ns, u32 share_bytes,
				 const struct aw_event *e, struct aw_verdict v);

#endif /* ACKWISE_RAILS_H */
