/* SPDX-License-Identifier: MIT */
/* Each duty alone, on a host that waits as long as it can. */
#include <string.h>
#include <ackwise/ackwise.h>
#include "test.h"

#define MSS 1460u
#define NEVER AW_NEVER_NS
#define NONE AW_REASON_NONE

/* clang-format off */
static const struct {
	const char *claim;
	struct aw_event e;
	aw_u64 owed_since_ns;
	aw_u8 reason; /* NONE: the verdict does not change */
} rows[] = {
	{ "in order: wait", { .bytes = MSS, .unacked_bytes = MSS }, 0, NONE },
	{ "above a hole [RFC 5681, 3.2]",
	  { .seq = AW_SEQ_HOLE }, 0, AW_REASON_OUT_OF_ORDER },
	{ "segments above a hole have waited [D-31]",
	  { .kind = AW_EVENT_APP_READ }, 0, AW_REASON_OUT_OF_ORDER },
	{ "fills part of a hole [RFC 5681, 4.2 (b)]",
	  { .seq = AW_SEQ_FILLS, .flags = AW_FLAG_HOLE_OPEN }, 0,
	  AW_REASON_HOLE_FILLED },
	{ "no new data [RFC 9293, 3.10.7.4 (a)]",
	  { .seq = AW_SEQ_DUPLICATE }, 0, AW_REASON_DUPLICATE },
	{ "an in-order segment with a hole above it may wait",
	  { .flags = AW_FLAG_HOLE_OPEN }, 0, NONE },
	{ "CE changed [RFC 8257, 3.2]",
	  { .flags = AW_FLAG_CE_CHANGE }, 0, AW_REASON_CE_CHANGE },
	{ "FIN [RFC 9293, 3.10.7.4 (b)]", { .flags = AW_FLAG_FIN }, 0,
	  AW_REASON_FIN },
	{ "PSH alone does not force an ACK", { .flags = AW_FLAG_PSH | AW_FLAG_WND_GREW }, 0,
	  NONE },
	{ "the host asks for ACKs [D-01]", { .flags = AW_FLAG_QUICKACK },
	  0, AW_REASON_HOST_QUICKACK },
	{ "the host asks for ACKs, on a read",
	  { .kind = AW_EVENT_APP_READ, .flags = AW_FLAG_QUICKACK }, 0,
	  AW_REASON_HOST_QUICKACK },
	{ "the host asks for ACKs, with none owed",
	  { .kind = AW_EVENT_APP_READ, .flags = AW_FLAG_QUICKACK }, NEVER, NONE },
	{ "the reader waits for more than came [RFC 5681, 4.2 (a)]",
	  { .flags = AW_FLAG_READER_WAITS, .unacked_bytes = MSS + 1,
	    .unread_bytes = MSS + 1 }, 0, AW_REASON_READER_WAITS },
	{ "it has read a part, and waits again",
	  { .kind = AW_EVENT_APP_READ, .flags = AW_FLAG_READER_WAITS,
	    .unacked_bytes = 2 * MSS, .unread_bytes = MSS }, 0,
	  AW_REASON_READER_WAITS },
	{ "it waits, but no more than a segment came",
	  { .flags = AW_FLAG_READER_WAITS, .unacked_bytes = MSS,
	    .unread_bytes = MSS }, 0, NONE },
	{ "it waits, and has an ACK for what came",
	  { .kind = AW_EVENT_APP_READ, .flags = AW_FLAG_READER_WAITS,
	    .unread_bytes = MSS }, NEVER, NONE },
	{ "order, CE and FIN count on data only",
	  { .kind = AW_EVENT_APP_READ, .seq = AW_SEQ_HOLE,
	    .flags = AW_FLAG_CE_CHANGE | AW_FLAG_FIN }, 0, NONE },
	{ "room for one segment is left",
	  { .wnd_bytes = 4 * MSS, .unacked_bytes = 3 * MSS,
	    .wnd_next_bytes = 4 * MSS, .wnd_max_bytes = 4 * MSS }, 0, NONE },
	{ "room for a byte less [RFC 9293, 3.8.6.2.1]",
	  { .wnd_bytes = 4 * MSS, .unacked_bytes = 3 * MSS + 1,
	    .wnd_next_bytes = 4 * MSS, .wnd_max_bytes = 4 * MSS }, 0,
	  AW_REASON_WINDOW_DRY },
	{ "dry, but an ACK would offer no room",
	  { .wnd_bytes = 4 * MSS, .unacked_bytes = 4 * MSS,
	    .wnd_max_bytes = 4 * MSS }, 0, NONE },
	{ "half of a small window is enough room",
	  { .wnd_bytes = 1000, .unacked_bytes = 500, .wnd_next_bytes = 1000,
	    .wnd_max_bytes = 1000 }, 0, NONE },
	{ "less than half of it is not",
	  { .wnd_bytes = 1000, .unacked_bytes = 501, .wnd_next_bytes = 1000,
	    .wnd_max_bytes = 1000 }, 0, AW_REASON_WINDOW_DRY },
	{ "a read reopens a closed window, with no ACK owed",
	  { .kind = AW_EVENT_APP_READ, .wnd_next_bytes = MSS,
	    .wnd_max_bytes = 4 * MSS }, NEVER, AW_REASON_WINDOW_DRY },
	{ "but not by less than a segment [RFC 9293, 3.8.6.2.2]",
	  { .kind = AW_EVENT_APP_READ, .wnd_next_bytes = MSS - 1,
	    .wnd_max_bytes = 4 * MSS }, NEVER, NONE },
	{ "a timer with no ACK owed does not offer a byte [RFC 9293, 3.8.6.2.2]",
	  { .kind = AW_EVENT_DEADLINE, .wnd_next_bytes = 1,
	    .wnd_max_bytes = 4 * MSS }, NEVER, NONE },
	{ "the peer's segments may be as large as the MSS announced [RFC 9293, 3.8.6.2.1]",
	  { .kind = AW_EVENT_APP_READ, .wnd_bytes = 2 * MSS,
	    .wnd_next_bytes = 20 * MSS, .wnd_max_bytes = 20 * MSS,
	    .mss_max_bytes = 3 * MSS }, NEVER, AW_REASON_WINDOW_DRY },
	{ "a window that was exceeded is dry",
	  { .wnd_bytes = MSS, .unacked_bytes = 2 * MSS,
	    .wnd_next_bytes = MSS, .wnd_max_bytes = 4 * MSS }, 0,
	  AW_REASON_WINDOW_DRY },
	{ "500 ms are over [RFC 9293, 3.8.6.3]",
	  { .now_ns = 600 * AW_NS_PER_MS }, 100 * AW_NS_PER_MS,
	  AW_REASON_MAX_DELAY },
};
/* clang-format on */

static bool same(struct aw_verdict a, struct aw_verdict b)
{
	return a.deadline_ns == b.deadline_ns && a.action == b.action &&
	       a.reason == b.reason && a.by_duty == b.by_duty;
}

/* A connection that owes an ACK since owed_ns; segments above a hole wait until
 * hole_ns. */
static struct aw_conn waiting(aw_u64 owed_ns, aw_u64 hole_ns)
{
	struct aw_conn conn = { .host = aw_host_find("rfc"),
				.owed_since_ns = owed_ns,
				.due_ns = NEVER,
				.pending = aw_wait_until(hole_ns) };

	conn.compress.duplicate_acks = 3;
	conn.compress.waiting = hole_ns != NEVER;
	return conn;
}

static void each_row(void)
{
	struct aw_verdict wait = aw_wait_until(601 * AW_NS_PER_MS), v;
	unsigned i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct aw_event e = rows[i].e;
		struct aw_verdict own =
			rows[i].owed_since_ns == NEVER ? aw_nothing() : wait;
		/* 101 ms if the row says 0, so the limit is at 601 ms */
		aw_u64 owed_ns = rows[i].owed_since_ns ? rows[i].owed_since_ns
						       : 101 * AW_NS_PER_MS;
		struct aw_conn conn =
			waiting(owed_ns, rows[i].reason == AW_REASON_OUT_OF_ORDER
						 ? 150 * AW_NS_PER_MS
						 : NEVER);

		e.rcv_mss_bytes = MSS;
		e.segments = 1;
		if (!e.wnd_max_bytes)
			e.wnd_bytes = e.wnd_next_bytes = e.wnd_max_bytes = 1 << 20;
		if (!e.now_ns)
			e.now_ns = 150 * AW_NS_PER_MS;
		v = aw_duties(&conn, &e, own);
		if (rows[i].reason == NONE) {
			CHECK(same(v, own), "%s: %s", rows[i].claim,
			      aw_reason_label(v.reason));
			continue;
		}
		CHECK(v.action == AW_SEND_NOW && v.by_duty == 1 &&
			      v.reason == rows[i].reason &&
			      v.deadline_ns == AW_NEVER_NS,
		      "%s: %s", rows[i].claim, aw_reason_label(v.reason));
		/* it does not change an ACK that leaves anyway */
		v = aw_duties(&conn, &e, aw_send_now(AW_REASON_AREA));
		CHECK(same(v, aw_send_now(AW_REASON_AREA)), "%s, sent: %s",
		      rows[i].claim, aw_reason_label(v.reason));
		/* a host of papers knows none */
		conn.host = aw_host_find("model");
		v = aw_duties(&conn, &e, own);
		CHECK(same(v, own), "%s, model: %s", rows[i].claim,
		      aw_reason_label(v.reason));
	}
}

/* [RFC 9293, 3.8.6.3] */
static void longest_delay(void)
{
	static const struct {
		const char *claim;
		aw_u32 owed_ms, delay_max_us, wait_ms, until_ms; /* 0: now */
		bool by_duty;
	} limits[] = {
		{ "500 ms after the first", 100, 0, 900, 600, true },
		{ "exactly 500 ms is allowed [D-17]", 100, 0, 600, 600, false },
		{ "what the host allows", 100, 150000, 300, 250, true },
		{ "what the host allows is over", 100, 100000, 300, 0, true },
		{ "a host cannot allow more", 100, ~0u, 900, 600, true },
	};
	struct aw_event e = { .rcv_mss_bytes = MSS,
			      .wnd_bytes = 1 << 20,
			      .wnd_next_bytes = 1 << 20,
			      .wnd_max_bytes = 1 << 20,
			      .now_ns = 200 * AW_NS_PER_MS };
	struct aw_conn conn;
	struct aw_verdict v;
	unsigned i;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		conn = waiting(limits[i].owed_ms * AW_NS_PER_MS, NEVER);
		e.delay_max_us = limits[i].delay_max_us;
		v = aw_duties(&conn, &e,
			      aw_wait_until(limits[i].wait_ms * AW_NS_PER_MS));
		CHECK(v.by_duty == limits[i].by_duty &&
			      (limits[i].until_ms
				       ? v.action == AW_WAIT &&
						 v.deadline_ns == limits[i].until_ms *
									  AW_NS_PER_MS
				       : v.reason == AW_REASON_MAX_DELAY),
		      "%s: %s", limits[i].claim, aw_reason_label(v.reason));
	}
	/* the limit does not wrap around */
	conn = waiting(AW_NEVER_NS - 5, NEVER);
	e.delay_max_us = 0;
	v = aw_duties(&conn, &e, aw_wait_until(AW_NEVER_NS - 1));
	CHECK(v.action == AW_WAIT && v.deadline_ns == AW_NEVER_NS - 1, "wrap");
}

int main(void)
{
	each_row();
	longest_delay();
	return test_end();
}
