/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Safety rails: what the RFCs require of every receiver, whatever its policy.
 * The rails process every verdict after the policy; they can make an ACK leave
 * earlier, never later.
 */
#ifndef ACKWISE_RAILS_H
#define ACKWISE_RAILS_H

#include <ackwise/event.h>
#include <ackwise/verdict.h>

/* AW_RAIL_*: one bit each, so that each can be switched off for experiments. */
enum aw_rail {
#define AW_RAIL(NAME, bit, name, set, text, claims) AW_RAIL_##NAME = 1 << (bit),
#include <ackwise/rails.def>
#undef AW_RAIL
};

/* Each set includes the previous ones. */
enum aw_rail_set {
	AW_RAIL_SET_DEFAULT, /* what the RFCs require of every receiver */
	AW_RAIL_SET_NETWORK, /* for drivers that meet real senders [D-26] */
	AW_RAIL_SET_ALL,     /* SHOULDs taken as MUSTs [D-02] */
};

enum aw_rails {
#define AW_RAIL(NAME, bit, name, set, text, claims) \
	(AW_RAIL_SET_##set <= AW_RAIL_SET_DEFAULT) << (bit) |
	AW_RAILS_DEFAULT =
#include <ackwise/rails.def>
		0,
#undef AW_RAIL
#define AW_RAIL(NAME, bit, name, set, text, claims) \
	(AW_RAIL_SET_##set <= AW_RAIL_SET_NETWORK) << (bit) |
	AW_RAILS_NETWORK =
#include <ackwise/rails.def>
		0,
#undef AW_RAIL
#define AW_RAIL(NAME, bit, name, set, text, claims) AW_RAIL_##NAME |
	AW_RAILS_ALL =
#include <ackwise/rails.def>
		0,
#undef AW_RAIL
};

/* Strings for the rail with this bit number; NULL if there is none. */
const char *aw_rail_name(unsigned int bit); /* "max-delay" */
const char *aw_rail_text(unsigned int bit); /* what it ensures */
const char *aw_rail_set(unsigned int bit);  /* "default", "network" or "all" */

#define AW_ACKS_PER_ROUND 4  /* unless aw_policy.acks_per_round is set */
#define AW_INITIAL_WINDOW 10 /* segments (RFC 6928) */

/* "the delay MUST be less than 0.5 seconds" [RFC 9293, 3.8.6.3] [D-17] */
#define AW_MAX_DELAY_NS (500 * AW_NS_PER_MS)

/*
 * Returns v, the policy's verdict on e, or an earlier one.
 * owed_since_ns: arrival of the oldest unacknowledged data; AW_NEVER_NS if no ACK
 * is owed.  share_bytes: share of the sender's flight that may wait for an ACK
 * (AW_RAIL_FLIGHT).  hole_until_ns: latest ACK for segments above a hole,
 * AW_NEVER_NS if there are none (AW_RAIL_ORDER).
 */
struct aw_verdict aw_rails_apply(u32 rails, u64 owed_since_ns, u32 share_bytes,
				 u64 hole_until_ns, const struct aw_event *e,
				 struct aw_verdict v);

#endif /* ACKWISE_RAILS_H */
