/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What happened at a socket: the only input of a host.
 *
 * A socket (of the simulator, a replay, a small stack) fills every field of every
 * event except where noted.  Quantities are those after the event: on AW_EVENT_DATA,
 * unacked_bytes includes the bytes of the segment.
 */
#ifndef ACKWISE_EVENT_H
#define ACKWISE_EVENT_H

#include <ackwise/base.h>

enum aw_event_kind {
	AW_EVENT_DATA, /* a segment with payload, or a FIN, arrived */
	/* an ACK left, pure or piggybacked on data; optional if
	 * aw_conn_ack_is_news() is false */
	AW_EVENT_ACK_SENT,
	AW_EVENT_DEADLINE, /* the deadline of the pending verdict passed */
	AW_EVENT_APP_READ, /* the application read from the receive buffer */
	AW_EVENT_KINDS
};

/* Where a segment falls in sequence space (RFC 9293, 3.10.7.4). */
enum aw_seq {
	AW_SEQ_IN,        /* advances rcv_nxt, and there was no hole */
	AW_SEQ_HOLE,      /* above rcv_nxt: data before it is missing */
	AW_SEQ_FILLS,     /* advances rcv_nxt, and there was a hole */
	AW_SEQ_DUPLICATE, /* below rcv_nxt: no new data */
	AW_SEQS
};

#define AW_FLAG_PSH 0x0001u       /* data: the segment carried PSH */
#define AW_FLAG_FIN 0x0002u       /* data: a FIN that our own FIN will not ACK */
#define AW_FLAG_CE_CHANGE 0x0004u /* data: CE mark differs from the last one */
/* all but ack_sent: the socket or route asks for immediate ACKs */
#define AW_FLAG_QUICKACK 0x0008u
#define AW_FLAG_WND_GREW 0x0010u  /* data: the upper limit of the window was raised */
#define AW_FLAG_PIGGYBACK 0x0020u /* ack_sent: piggybacked on a data segment */
#define AW_FLAG_HOLE_OPEN 0x0040u /* all but ack_sent: out-of-order data is queued */
/* all but ack_sent: data is unread and the reader waits for more (SO_RCVLOWAT) */
#define AW_FLAG_READER_WAITS 0x0080u
/* data, app_read: the ACK can be piggybacked on our own data: the peer sent FIN and
 * the application has yet to close, or it set TCP_QUICKACK to 0 */
#define AW_FLAG_DELACK 0x0100u

struct aw_event {
	aw_u64 now_ns; /* monotonic, never less than in the previous event */
	/* 32 uniform random bits; 0 unless the host or the policy uses_random */
	aw_u32 random;

	/* data: payload of the segment; app_read: bytes copied; else 0 */
	aw_u32 bytes;
	/* received in order, not yet covered by an ACK: rcv_nxt - rcv_wup */
	aw_u32 unacked_bytes;
	/* in the receive buffer, not yet read by the application */
	aw_u32 unread_bytes;
	/* the window in the last ACK, from that ACK's number on: rcv_wnd */
	aw_u32 wnd_bytes;
	/* the window that an ACK would advertise now, after SWS avoidance
	 * [RFC 9293, 3.8.6.2.2] */
	aw_u32 wnd_next_bytes;
	/* the largest window that the buffer allows now: window clamp */
	aw_u32 wnd_max_bytes;
	aw_u32 rcv_mss_bytes; /* receiver's estimate of the peer's segment, > 0 */
	aw_u32 mss_max_bytes; /* the MSS that this host advertised, 0: not known */
	aw_u32 rtt_us;        /* receiver's RTT estimate, 0: not known yet */
	aw_u32 rto_us;        /* this host's RTO, 0: not known */
	/* this host's maximum delay, 0: no limit; may be 0 on ack_sent */
	aw_u32 delay_max_us;
	/* data: wire segments in this event (GRO), minimum 1.  "if the TCP endpoint
	 * is processing a series of queued segments, it MUST process them all before
	 * sending any ACK segments" [S4.3] [RFC 9293, 3.10.7.4 (c)] */
	aw_u16 segments;
	aw_u16 flags; /* AW_FLAG_* */
	aw_u8 kind;   /* enum aw_event_kind */
	aw_u8 seq;    /* data: enum aw_seq */
	/* data above a hole: how long it may wait for an ACK; 0: not at all, because
	 * SACK was not negotiated or the option has no room for more blocks */
	aw_u16 sack_delay_us;
};

/* Bytes the peer may still send before the advertised window is used up. */
static inline aw_u32 aw_wnd_left(const struct aw_event *e)
{
	return e->wnd_bytes > e->unacked_bytes ? e->wnd_bytes - e->unacked_bytes : 0;
}

/* How far an ACK now would move the window's right edge. */
static inline aw_u32 aw_wnd_slide(const struct aw_event *e)
{
	aw_u32 left = aw_wnd_left(e);

	return e->wnd_next_bytes > left ? e->wnd_next_bytes - left : 0;
}

/*
 * The room below which a sender with SWS avoidance may send nothing: it waits
 * until "a maximum-sized segment can be sent" or until it can send half of the
 * largest window it has seen [RFC 9293, 3.8.6.2.1].  The segment size is the larger
 * of the estimate, which starts too low, and the MSS that was advertised.
 */
static inline aw_u32 aw_wnd_unusable(const struct aw_event *e)
{
	aw_u32 mss = aw_max_u32(e->rcv_mss_bytes, e->mss_max_bytes);

	return aw_max_u32(1, aw_min_u32(mss, e->wnd_max_bytes / 2));
}

/*
 * May a read cause a window update while no ACK is owed?  left_bytes:
 * aw_wnd_left(); slide_bytes: aw_wnd_slide() or more.  True if the peer has at most
 * half of the window left, or if the window slides by two segments or by 1%,
 * whichever is less: no policy asks for smaller updates. [S4.2] [S5.5]
 */
static inline bool aw_wnd_worth_update(aw_u32 left_bytes, aw_u32 slide_bytes,
				       aw_u32 max_bytes, aw_u32 mss_bytes)
{
	return left_bytes <= max_bytes / 2 || slide_bytes >= 2ull * mss_bytes ||
	       slide_bytes * 100ull >= max_bytes;
}

#endif /* ACKWISE_EVENT_H */
