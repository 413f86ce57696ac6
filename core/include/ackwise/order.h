/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The contract between a host, which keeps the rules of TCP, and a policy.
 *
 * A policy places an order: so many bytes of plain data may wait for an ACK, and so
 * long.  The host's own rules read the order's two numbers in place of their own
 * "more than one full segment" and delayed-ACK time; the order { 0, 0 } is the host
 * itself.  Data is plain if nothing else makes the host send an ACK at once: no hole,
 * FIN, change of CE, quick ACK, window update or reader that waits for more.
 *
 *	why       when the policy is asked            answer
 *	SENT      an ACK of data left; at first       the next order
 *	LIMIT     the order's bytes have arrived      now, or the next order
 *	TIMEOUT   the order's time is up              now, or the next order
 *	READ      the application read                now, or the next order
 *
 * An order stays in force until the next answer.  Its time runs from the arrival of
 * the oldest data that waits, or from the answer if data waits already.  aw_clamp()
 * bounds every order, so a policy can be slow but not wrong.
 */
#ifndef ACKWISE_ORDER_H
#define ACKWISE_ORDER_H

#include <ackwise/base.h>
#include <ackwise/reason.h>

struct aw_order {
	aw_u32 bytes;    /* that may wait; 0: the host's own rule */
	aw_u32 delay_ns; /* how long; 0: the host's own time */
};

/* delay_ns of an answer: send the ACK now; bytes is the reason. */
#define AW_NOW_NS (~0u)

static inline struct aw_order aw_order(aw_u64 bytes, aw_u64 delay_ns)
{
	struct aw_order o;

	o.bytes = (aw_u32)aw_min_u64(bytes, ~0u);
	o.delay_ns = (aw_u32)aw_min_u64(delay_ns, AW_NOW_NS - 1);
	return o;
}

static inline struct aw_order aw_now(enum aw_reason reason)
{
	struct aw_order o;

	o.bytes = (aw_u32)reason;
	o.delay_ns = AW_NOW_NS;
	return o;
}

static inline bool aw_is_now(struct aw_order o)
{
	return o.delay_ns == AW_NOW_NS;
}

/*
 * When most.delay_ns is up, a host may send without asking: AW_WHY_SENT then comes with
 * AW_REASON_MAX_DELAY.
 */
enum aw_why {
	AW_WHY_SENT,
	AW_WHY_LIMIT,
	AW_WHY_TIMEOUT,
	AW_WHY_READ, /* only if aw_policy.asked_on_read */
};

#define AW_SEEN_PUSH 0x01u      /* a segment with PSH or shorter than the MSS came */
#define AW_SEEN_HOLE 0x02u      /* data above a hole is queued */
#define AW_SEEN_DUPLICATE 0x04u /* a segment without new data came */
#define AW_SEEN_CE 0x08u        /* the CE mark changed */
#define AW_SEEN_ON_DATA 0x10u   /* sent: the ACK was piggybacked on data */
#define AW_SEEN_BY_ORDER 0x20u  /* sent: the policy's answer made it leave */

/*
 * What the policy is told with a question.  "New": since the question before.  A
 * host fills it in when it asks; between questions it keeps no more than new_*, the
 * flags and two times.
 */
struct aw_seen {
	aw_u64 now_ns;     /* monotonic */
	aw_u64 first_ns;   /* arrival of the oldest data that waits or, if an ACK
			  * left, that waited for it; AW_NEVER_NS: none */
	aw_u64 last_ns;    /* the last arrival of data; 0: none yet */
	aw_u32 owed_bytes; /* plain data that waits or, if an ACK left, waited */
	aw_u32 new_bytes;
	aw_u32 new_segments; /* on the wire, before GRO */
	aw_u32 new_arrivals; /* after GRO */
	aw_u32 gap_ns;       /* longest time between two arrivals, the later one new */
	aw_u32 random;       /* 32 uniform random bits; 0 unless uses_random */
	aw_u32 rtt_us;       /* the receiver's estimate, 0: not known */
	aw_u32 rto_us;       /* this host's RTO, 0: not known */
	aw_u32 mss_bytes;    /* the receiver's estimate of the peer's segment, > 0 */
	aw_u32 wnd_bytes;    /* the window in the last ACK, from that ACK's number on */
	aw_u32 unread_bytes;
	aw_u32 flight_bytes;  /* data that arrives in one round trip, 0: not known */
	struct aw_order most; /* the largest order that the clamp allows now */
	aw_u16 flags;         /* AW_SEEN_* */
	aw_u8 why;            /* enum aw_why */
	aw_u8 reason;         /* sent: why, enum aw_reason */
};

/* Four ACKs for each flight of the sender keep its ACK clock running [D-26]. */
#define AW_ACKS_PER_FLIGHT 4
/* Two segments may always wait [RFC 5681, 4.2 (a)]. */
#define AW_SEGMENTS_ALWAYS 2
/* A shorter timer would cost more than the ACK that it saves. */
#define AW_DELAY_MIN_NS 50000u
/* "the delay MUST be less than 0.5 seconds" [RFC 9293, 3.8.6.3] [D-17] */
#define AW_DELAY_MAX_NS 500000000u

/*
 * The largest order that a host may obey.  flight_bytes: 0, not known.
 * delay_max_us: the host's longest delay of an ACK; 0: 500 ms.
 */
static inline struct aw_order aw_most(aw_u32 mss_bytes, aw_u32 wnd_bytes,
				      aw_u32 flight_bytes, aw_u32 delay_max_us)
{
	aw_u32 share = aw_min_u32(wnd_bytes, flight_bytes) / AW_ACKS_PER_FLIGHT;
	aw_u64 delay_ns = delay_max_us * AW_NS_PER_US;

	return aw_order(aw_max_u64(share, AW_SEGMENTS_ALWAYS * (aw_u64)mss_bytes),
			delay_ns && delay_ns < AW_DELAY_MAX_NS ? delay_ns
							       : AW_DELAY_MAX_NS);
}

/* The nearest order that the host may obey.  o: not aw_now(). */
static inline struct aw_order aw_clamp(struct aw_order o, struct aw_order most)
{
	if (o.delay_ns) /* 0, the host's own, is within its limits */
		o.delay_ns = aw_min_u32(aw_max_u32(o.delay_ns, AW_DELAY_MIN_NS),
					most.delay_ns);
	o.bytes = aw_min_u32(o.bytes, most.bytes);
	return o;
}

#endif /* ACKWISE_ORDER_H */
