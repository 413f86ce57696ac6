/* SPDX-License-Identifier: MIT */
/*
 * A receiving host that obeys the interface of event.h, driven by two bytes per
 * event: its kind and its size.  The property harness and the vectors share it.
 */
#ifndef ACKWISE_TEST_MODEL_H
#define ACKWISE_TEST_MODEL_H

#include <string.h>
#include <ackwise/ackwise.h>

struct model {
	aw_u64 now_ns;
	aw_u32 random;
	aw_u32 mss_bytes, mss_max_bytes, buffer_bytes, rtt_us, rto_us, delay_max_us;
	aw_u16 sack_delay_us;
	aw_u32 unacked_bytes, unread_bytes, wnd_bytes;
	aw_u32 queued_bytes; /* above a hole */
};

enum model_op {
	MODEL_SEGMENT,
	MODEL_MERGED,
	MODEL_SMALL,
	MODEL_PUSHED,
	MODEL_HOLE,
	MODEL_FILLS,
	MODEL_DUPLICATE,
	MODEL_CE,
	MODEL_FIN,
	MODEL_QUICKACK,
	MODEL_WAITS, /* the reader waits for more: SO_RCVLOWAT */
	MODEL_READ_ALL,
	MODEL_READ_PART,
	MODEL_SENT,
	MODEL_PIGGYBACK,
	MODEL_DUE,   /* the deadline passes */
	MODEL_EARLY, /* a timer fires too early */
	MODEL_OPS
};

static inline aw_u32 model_next(aw_u32 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

/* shape: any byte. */
static inline void model_start(struct model *m, aw_u8 shape)
{
	static const aw_u32 buffer_bytes[] = { 1000, 5840, 65536, 1 << 22 };
	static const aw_u32 rtt_us[] = { 0, 200, 10000, 600000 };

	memset(m, 0, sizeof(*m));
	m->now_ns = AW_NS_PER_S;
	m->random = shape * 2654435761u | 1;
	m->mss_bytes = shape & 16 ? 9148 : 1460;
	m->buffer_bytes = buffer_bytes[shape & 3];
	m->wnd_bytes = m->buffer_bytes;
	m->rtt_us = rtt_us[shape >> 2 & 3];
	m->rto_us = shape & 32 ? 300000 : 0;
	m->delay_max_us = shape & 64 ? 30000 : 0;
	m->mss_max_bytes = shape & 128 ? 2 * m->mss_bytes : 0;
	m->sack_delay_us = shape & 32 ? 1000 : 0;
}

static inline void model_fill(struct model *m, struct aw_event *e)
{
	aw_u32 held = m->unread_bytes + m->queued_bytes;
	aw_u32 room = m->buffer_bytes > held ? m->buffer_bytes - held : 0;
	aw_u32 left;

	e->now_ns = m->now_ns;
	e->random = model_next(&m->random);
	e->unacked_bytes = m->unacked_bytes;
	e->unread_bytes = m->unread_bytes;
	e->wnd_bytes = m->wnd_bytes;
	e->wnd_max_bytes = m->buffer_bytes;
	e->rcv_mss_bytes = m->mss_bytes;
	e->mss_max_bytes = m->mss_max_bytes;
	e->rtt_us = m->rtt_us;
	e->rto_us = m->rto_us;
	e->delay_max_us = m->delay_max_us;
	/* sometimes too many wait */
	e->sack_delay_us = e->random % 16 ? m->sack_delay_us : 0;
	if (m->queued_bytes)
		e->flags |= AW_FLAG_HOLE_OPEN;
	/* SWS avoidance, and the right edge never moves back [RFC 9293, 3.8.6.2.2] */
	left = aw_wnd_left(e);
	e->wnd_next_bytes = left;
	if (room >= left + aw_min_u32(m->mss_bytes, m->buffer_bytes / 2))
		e->wnd_next_bytes = room;
}

static inline void model_data(struct model *m, struct aw_event *e, aw_u32 bytes,
			      aw_u8 order)
{
	aw_u32 left = m->wnd_bytes - m->unacked_bytes - m->queued_bytes;

	e->kind = AW_EVENT_DATA;
	e->bytes = aw_min_u32(bytes, left);
	/* until the hole is filled, segments arrive above it */
	e->seq = order == AW_SEQ_IN && m->queued_bytes ? AW_SEQ_HOLE : order;
	if (!e->bytes && !(e->flags & AW_FLAG_FIN)) {
		/* a probe of the closed window */
		e->bytes = 1;
		e->seq = AW_SEQ_DUPLICATE;
	}
	switch (e->seq) {
	case AW_SEQ_HOLE:
		m->queued_bytes += e->bytes;
		break;
	case AW_SEQ_DUPLICATE:
		break;
	default:
		m->unacked_bytes += e->bytes;
		m->unread_bytes += e->bytes;
	}
	e->segments = (aw_u16)aw_max_u32(1, e->bytes / m->mss_bytes);
}

static inline void model_event(struct model *m, aw_u8 op, aw_u8 size,
			       const struct aw_verdict *pending, struct aw_event *e)
{
	static const aw_u64 step_ns[] = { 0,        1000,     100000,    1000000,
					  10000000, 45000000, 250000000, 1200000000 };
	aw_u32 mss = m->mss_bytes, bytes;

	memset(e, 0, sizeof(*e));
	op %= MODEL_OPS;
	if (op != MODEL_DUE && op != MODEL_EARLY)
		m->now_ns += step_ns[size >> 5];
	size &= 31;
	switch (op) {
	case MODEL_SEGMENT:
		model_data(m, e, mss, AW_SEQ_IN);
		break;
	case MODEL_MERGED:
		model_data(m, e, mss * (2u + size), AW_SEQ_IN);
		break;
	case MODEL_SMALL:
		e->flags = size & 1 ? AW_FLAG_PSH : 0;
		model_data(m, e, 1 + 40u * size, AW_SEQ_IN);
		break;
	case MODEL_PUSHED:
		e->flags = AW_FLAG_PSH | (size & 1 ? AW_FLAG_WND_GREW : 0);
		model_data(m, e, mss, AW_SEQ_IN);
		break;
	case MODEL_HOLE:
		model_data(m, e, mss, AW_SEQ_HOLE);
		break;
	case MODEL_FILLS:
		if (m->queued_bytes) {
			bytes = size & 1 ? 1 : m->queued_bytes;
			m->queued_bytes -= bytes;
			model_data(m, e, bytes, AW_SEQ_FILLS);
			break;
		}
		model_data(m, e, mss, AW_SEQ_IN);
		break;
	case MODEL_DUPLICATE:
		model_data(m, e, mss, AW_SEQ_DUPLICATE);
		break;
	case MODEL_CE:
		e->flags = AW_FLAG_CE_CHANGE;
		model_data(m, e, mss, AW_SEQ_IN);
		break;
	case MODEL_FIN:
		e->flags = AW_FLAG_FIN;
		model_data(m, e, size & 1 ? mss : 0, AW_SEQ_IN);
		break;
	case MODEL_QUICKACK:
		e->flags = AW_FLAG_QUICKACK;
		model_data(m, e, mss, AW_SEQ_IN);
		break;
	case MODEL_WAITS:
		e->flags = AW_FLAG_READER_WAITS;
		model_data(m, e, mss, AW_SEQ_IN);
		break;
	case MODEL_READ_ALL:
	case MODEL_READ_PART:
		e->kind = AW_EVENT_APP_READ;
		e->bytes = op == MODEL_READ_ALL
				   ? m->unread_bytes
				   : aw_min_u32(m->unread_bytes, 1 + 200u * size);
		m->unread_bytes -= e->bytes;
		break;
	case MODEL_SENT:
	case MODEL_PIGGYBACK:
		e->kind = AW_EVENT_ACK_SENT;
		e->flags = op == MODEL_PIGGYBACK ? AW_FLAG_PIGGYBACK : 0;
		/* the ACK advertises what wnd_next_bytes says */
		model_fill(m, e);
		m->wnd_bytes = e->wnd_next_bytes;
		m->unacked_bytes = 0;
		break;
	case MODEL_DUE:
		if (pending->action == AW_WAIT && pending->deadline_ns != AW_NEVER_NS)
			m->now_ns = aw_max_u64(m->now_ns, pending->deadline_ns) +
				    size / 16 * AW_NS_PER_MS;
		e->kind = AW_EVENT_DEADLINE;
		break;
	default:
		e->kind = AW_EVENT_DEADLINE;
		break;
	}
	model_fill(m, e);
}

#endif /* ACKWISE_TEST_MODEL_H */
