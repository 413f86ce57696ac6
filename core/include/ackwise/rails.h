/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Safety rails: what the RFCs demand of every receiver, whatever its policy.
 * Rails see every verdict after the policy; they may make an ACK leave earlier,
 * never later.
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

/* Each set holds the ones before it. */
enum aw_rail_set {
	AW_RAIL_SET_DEFAULT, /* what the RFCs ask of every receiver */
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

/* Words for the rail with this bit number, from 0; NULL when there is no such rail. */
const char *aw_rail_name(unsigned int bit); /* "max-delay" */
const char *aw_rail_text(unsigned int bit); /* what it ensures */
const char *aw_rail_set(unsigned int bit);  /* "default", "network" or "all" */

#define AW_ACKS_PER_ROUND 4  /* unless aw_policy.acks_per_round is set */
#define AW_INITIAL_WINDOW 10 /* segments (RFC 6928) */

#define AW_MAX_DELAY_NS (500 * AW_NS_PER_MS) /* [RFC1122.2] [D-17] */

/*
 * v: the policy's verdict on e.  owed_since_ns: arrival time of the oldest
 * unacknowledged data, AW_NEVER_NS when no ACK is owed.  share_bytes: the share
 * of the sender's flight that may wait for an ACK, for AW_RAIL_FLIGHT.
 * hole_until_ns: until when segments above a hole may wait for an ACK,
 * AW_NEVER_NS when there are none, for AW_RAIL_ORDER.  Returns v or an earlier
 * verdict.
 */
struct aw_verdict aw_rails_apply(u32 rails, u64 owed_since_ns, u32 share_bytes,
				 u64 hole_until_ns, const struct aw_event *e,
				 struct aw_verdict v);

#endif /* ACKWISE_RAILS_H */
