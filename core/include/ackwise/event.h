/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What arrived: the one shape in which anything reaches a policy.
 *
 * A driver (simulator, kernel, replay) fills every field on every event; a
 * policy reads and never writes.  Quantities are taken after the event took
 * effect: on AW_EVENT_DATA, unacked_bytes already holds the segment's bytes.
 */
#ifndef ACKWISE_EVENT_H
#define ACKWISE_EVENT_H

#include <ackwise/base.h>

enum aw_event_kind {
	AW_EVENT_DATA,     /* a segment with payload, or a FIN, arrived */
	AW_EVENT_ACK_SENT, /* an ACK left, pure or piggybacked on data */
	AW_EVENT_DEADLINE, /* the deadline of the pending verdict passed */
	AW_EVENT_APP_READ, /* the application took bytes out of the buffer */
	AW_EVENT_KINDS
};

/* Where a segment falls in sequence space (RFC 9293, 3.10.7.4). */
enum aw_order {
	AW_ORDER_IN,        /* advances rcv_nxt, nothing is queued behind it */
	AW_ORDER_HOLE,      /* above rcv_nxt: something before it is missing */
	AW_ORDER_FILLS,     /* advances rcv_nxt while a hole was open */
	AW_ORDER_DUPLICATE, /* below rcv_nxt: nothing new in it */
	AW_ORDERS
};

#define AW_FLAG_PSH 0x0001u       /* data: the segment carried PSH */
#define AW_FLAG_FIN 0x0002u       /* data: the segment carried FIN */
#define AW_FLAG_CE_CHANGE 0x0004u /* data: CE mark differs from the last one */
#define AW_FLAG_QUICKACK 0x0008u  /* any: the host demands immediate ACKs */
#define AW_FLAG_WND_GREW 0x0010u  /* data: the window's ceiling was raised */
#define AW_FLAG_PIGGYBACK 0x0020u /* ack_sent: it rode on a data segment */
#define AW_FLAG_HOLE_OPEN 0x0040u /* any: out-of-order data is queued */

struct aw_event {
	u64 now_ns; /* monotonic, never smaller than in the event before */
	u32 random; /* 32 uniform random bits, fresh for every event */

	/* data: payload of the segment; app_read: bytes copied; else 0 */
	u32 bytes;
	/* received in order, not yet covered by an ACK: rcv_nxt - rcv_wup */
	u32 unacked_bytes;
	/* in the receive buffer, not yet read by the application */
	u32 unread_bytes;
	/* what the last ACK advertised, counted from its own number: rcv_wnd */
	u32 wnd_bytes;
	/* what an ACK leaving now would advertise (silly-window rule applied) */
	u32 wnd_next_bytes;
	/* the largest window the buffer can ever offer now: window clamp */
	u32 wnd_max_bytes;
	u32 rcv_mss_bytes; /* receiver's estimate of the peer's segment, > 0 */
	u32 rtt_us;        /* receiver's RTT estimate, 0: not known yet */
	u32 rto_us;        /* own retransmission timeout, 0: not known */

	u16 segments; /* data: wire segments it stands for (GRO), at least 1 */
	u16 flags;    /* AW_FLAG_* */
	u8 kind;      /* enum aw_event_kind */
	u8 order;     /* data: enum aw_order */
	u8 reserved[2];
};

/* Bytes the peer may still send before the advertised window is used up. */
static inline u32 aw_wnd_left(const struct aw_event *e)
{
	return e->wnd_bytes > e->unacked_bytes ? e->wnd_bytes - e->unacked_bytes : 0;
}

/* How far the window's right edge would move if an ACK left now. */
static inline u32 aw_wnd_slide(const struct aw_event *e)
{
	u32 left = aw_wnd_left(e);

	return e->wnd_next_bytes > left ? e->wnd_next_bytes - left : 0;
}

/*
 * Room that a sender which avoids silly windows may leave unused: it sends a
 * full segment, or half of the largest window it ever saw (RFC 9293,
 * 3.8.6.2.1).  With less room it may send nothing.
 */
static inline u32 aw_wnd_unusable(const struct aw_event *e)
{
	return aw_max_u32(1, aw_min_u32(e->rcv_mss_bytes, e->wnd_max_bytes / 2));
}

#endif /* ACKWISE_EVENT_H */
