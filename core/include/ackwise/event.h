/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What happened: the only input of a policy.
 *
 * A driver (simulator, kernel, replay) fills every field on every event, but for
 * those that say otherwise; a policy only reads them.  Quantities are those after
 * the event took effect: on AW_EVENT_DATA, unacked_bytes includes the bytes of the
 * segment.
 */
#ifndef ACKWISE_EVENT_H
#define ACKWISE_EVENT_H

#include <ackwise/base.h>

enum aw_event_kind {
	AW_EVENT_DATA, /* a segment with payload, or a FIN, arrived */
	/* an ACK left, pure or piggybacked on data; a driver need not report one that
	 * is no news (aw_conn_ack_is_news) */
	AW_EVENT_ACK_SENT,
	AW_EVENT_DEADLINE, /* the deadline of the pending verdict passed */
	AW_EVENT_APP_READ, /* the application read from the receive buffer */
	AW_EVENT_KINDS
};

/* Where a segment falls in sequence space (RFC 9293, 3.10.7.4). */
enum aw_order {
	AW_ORDER_IN,        /* advances rcv_nxt, and there was no hole */
	AW_ORDER_HOLE,      /* above rcv_nxt: data before it is missing */
	AW_ORDER_FILLS,     /* advances rcv_nxt, and there was a hole */
	AW_ORDER_DUPLICATE, /* below rcv_nxt: no new data */
	AW_ORDERS
};

#define AW_FLAG_PSH 0x0001u       /* data: the segment carried PSH */
#define AW_FLAG_FIN 0x0002u       /* data: a FIN that only an ACK answers */
#define AW_FLAG_CE_CHANGE 0x0004u /* data: CE mark differs from the last one */
/* any but ack_sent: socket or route asks for immediate ACKs */
#define AW_FLAG_QUICKACK 0x0008u
#define AW_FLAG_WND_GREW 0x0010u  /* data: the upper limit of the window was raised */
#define AW_FLAG_PIGGYBACK 0x0020u /* ack_sent: piggybacked on a data segment */
#define AW_FLAG_HOLE_OPEN 0x0040u /* any but ack_sent: out-of-order data is queued */
/* any but ack_sent: some is unread, and the application waits for more: SO_RCVLOWAT */
#define AW_FLAG_READER_WAITS 0x0080u
/* data, app_read: answers of this host will carry its ACKs: the peer sent FIN and
 * the application has yet to close, or the application says so (TCP_QUICKACK 0) */
#define AW_FLAG_DELACK 0x0100u

struct aw_event {
	u64 now_ns; /* monotonic, never less than in the previous event */
	/* 32 uniform random bits, fresh for every event; 0 if the policy does not use
	 * them */
	u32 random;

	/* data: payload of the segment; app_read: bytes copied; else 0 */
	u32 bytes;
	/* received in order, not yet covered by an ACK: rcv_nxt - rcv_wup */
	u32 unacked_bytes;
	/* in the receive buffer, not yet read by the application */
	u32 unread_bytes;
	/* the window in the last ACK, from that ACK's number on: rcv_wnd */
	u32 wnd_bytes;
	/* the window an ACK would advertise now, with SWS avoidance [RFC9293.4]; what
	 * is left of the last one, if nobody reads it: aw_wnd_next_matters() */
	u32 wnd_next_bytes;
	/* the largest window that the buffer allows at present: window clamp */
	u32 wnd_max_bytes;
	u32 rcv_mss_bytes; /* receiver's estimate of the peer's segment, > 0 */
	u32 mss_max_bytes; /* the MSS that this host announced, 0: not known */
	u32 rtt_us;        /* receiver's RTT estimate, 0: not known yet */
	u32 rto_us;        /* this host's RTO, 0: not known */
	/* the longest delay this host allows, 0: no limit; on ack_sent it may be 0 */
	u32 delay_max_us;
	/* data: segments on the wire that were merged into it (GRO), at least 1
	 * [S4.3] [RFC9293.3] */
	u16 segments;
	u16 flags; /* AW_FLAG_* */
	u8 kind;   /* enum aw_event_kind */
	u8 order;  /* data: enum aw_order */
	/* data above a hole: the longest that it may wait for an ACK, 0: not at
	 * all, because SACK was not agreed on, or has no room for more */
	u16 sack_delay_us;
};

/*
 * A delay, shortened to what this host allows.  A policy with a longer timer is
 * not told that the rail ended its wait. [RFC1122.2]
 */
static inline u64 aw_allowed_ns(const struct aw_event *e, u64 delay_ns)
{
	/* 0, no limit, becomes the largest number */
	u64 last_us = (u32)(e->delay_max_us - 1u);

	return aw_min_u64(delay_ns, (last_us + 1) * AW_NS_PER_US);
}

/* Bytes the peer may still send before the advertised window is used up. */
static inline u32 aw_wnd_left(const struct aw_event *e)
{
	return e->wnd_bytes > e->unacked_bytes ? e->wnd_bytes - e->unacked_bytes : 0;
}

/* How far an ACK now would move the window's right edge. */
static inline u32 aw_wnd_slide(const struct aw_event *e)
{
	u32 left = aw_wnd_left(e);

	return e->wnd_next_bytes > left ? e->wnd_next_bytes - left : 0;
}

/*
 * A sender with SWS avoidance may send nothing into less room than this: it
 * sends a full segment, or half of the largest window that it ever saw.  The
 * estimate of its segment begins below the truth, the MSS announced is the most
 * that it can be. [RFC9293.5]
 */
static inline u32 aw_wnd_unusable(const struct aw_event *e)
{
	u32 mss = aw_max_u32(e->rcv_mss_bytes, e->mss_max_bytes);

	return aw_max_u32(1, aw_min_u32(mss, e->wnd_max_bytes / 2));
}

/*
 * May a read be answered by a window update, while no ACK is owed?  left_bytes:
 * aw_wnd_left(); slide_bytes: aw_wnd_slide(), or more.  Not while the peer has more
 * than half of the window, unless it slides by two segments, or by 1% of the window
 * if that is less: no policy asks for updates that are smaller. [S4.2] [S5.5]
 */
static inline bool aw_wnd_worth_update(u32 left_bytes, u32 slide_bytes, u32 max_bytes,
				       u32 mss_bytes)
{
	return left_bytes <= max_bytes / 2 || slide_bytes >= 2ull * mss_bytes ||
	       slide_bytes * 100ull >= max_bytes;
}

#endif /* ACKWISE_EVENT_H */
