/* SPDX-License-Identifier: MIT */
/* Each rail alone, with a policy that waits as long as it can. */
#include <string.h>
#include <ackwise/rails.h>
#include "test.h"

#define MSS 1460u
#define SHARE (10 * MSS)
#define NEVER AW_NEVER_NS
#define NONE AW_REASON_NONE

/* clang-format off */
static const struct {
	const char *claim;
	u32 rail; /* the one that acts; the default rails are on too */
	struct aw_event e;
	u64 owed_since_ns;
	u8 reason; /* NONE: the verdict does not change */
} rows[] = {
	{ "in order: wait", 0, { .bytes = MSS, .unacked_bytes = MSS }, 0, NONE },
	{ "above a hole [RFC 5681, 3.2]", AW_RAIL_ORDER,
	  { .order = AW_ORDER_HOLE }, 0, AW_REASON_OUT_OF_ORDER },
	{ "segments above a hole have waited [D-31]", AW_RAIL_ORDER,
	  { .kind = AW_EVENT_APP_READ }, 0, AW_REASON_OUT_OF_ORDER },
	{ "fills part of a hole [RFC 5681, 4.2 (b)]", AW_RAIL_ORDER,
	  { .order = AW_ORDER_FILLS, .flags = AW_FLAG_HOLE_OPEN }, 0,
	  AW_REASON_HOLE_FILLED },
	{ "no new data [RFC 9293, 3.10.7.4 (a)]", AW_RAIL_ORDER,
	  { .order = AW_ORDER_DUPLICATE }, 0, AW_REASON_DUPLICATE },
	{ "an in-order segment with a hole above it may wait", 0,
	  { .flags = AW_FLAG_HOLE_OPEN }, 0, NONE },
	{ "CE changed [RFC 8257, 3.2]", AW_RAIL_CE,
	  { .flags = AW_FLAG_CE_CHANGE }, 0, AW_REASON_CE_CHANGE },
	{ "FIN [RFC 9293, 3.10.7.4 (b)]", AW_RAIL_FIN, { .flags = AW_FLAG_FIN }, 0,
	  AW_REASON_FIN },
	{ "PSH alone does not force an ACK", 0, { .flags = AW_FLAG_PSH | AW_FLAG_WND_GREW }, 0,
	  NONE },
	{ "the host asks for ACKs [D-01]", AW_RAIL_QUICKACK, { .flags = AW_FLAG_QUICKACK },
	  0, AW_REASON_HOST_QUICKACK },
	{ "the host asks for ACKs, on a read", AW_RAIL_QUICKACK,
	  { .kind = AW_EVENT_APP_READ, .flags = AW_FLAG_QUICKACK }, 0,
	  AW_REASON_HOST_QUICKACK },
	{ "the host asks for ACKs, with none owed", 0,
	  { .kind = AW_EVENT_APP_READ, .flags = AW_FLAG_QUICKACK }, NEVER, NONE },
	{ "the reader waits for more than came [RFC 5681, 4.2 (a)]", AW_RAIL_READER,
	  { .flags = AW_FLAG_READER_WAITS, .unacked_bytes = MSS + 1,
	    .unread_bytes = MSS + 1 }, 0, AW_REASON_READER_WAITS },
	{ "it has read a part, and waits again", AW_RAIL_READER,
	  { .kind = AW_EVENT_APP_READ, .flags = AW_FLAG_READER_WAITS,
	    .unacked_bytes = 2 * MSS, .unread_bytes = MSS }, 0,
	  AW_REASON_READER_WAITS },
	{ "it waits, but no more than a segment came", 0,
	  { .flags = AW_FLAG_READER_WAITS, .unacked_bytes = MSS,
	    .unread_bytes = MSS }, 0, NONE },
	{ "it waits, and has an ACK for what came", 0,
	  { .kind = AW_EVENT_APP_READ, .flags = AW_FLAG_READER_WAITS,
	    .unread_bytes = MSS }, NEVER, NONE },
	{ "order, CE and FIN count on data only", 0,
	  { .kind = AW_EVENT_APP_READ, .order = AW_ORDER_HOLE,
	    .flags = AW_FLAG_CE_CHANGE | AW_FLAG_FIN }, 0, NONE },
	{ "room for one segment is left", 0,
	  { .wnd_bytes = 4 * MSS, .unacked_bytes = 3 * MSS,
	    .wnd_next_bytes = 4 * MSS, .wnd_max_bytes = 4 * MSS }, 0, NONE },
	{ "room for a byte less [RFC 9293, 3.8.6.2.1]", AW_RAIL_WINDOW_DRY,
	  { .wnd_bytes = 4 * MSS, .unacked_bytes = 3 * MSS + 1,
	    .wnd_next_bytes = 4 * MSS, .wnd_max_bytes = 4 * MSS }, 0,
	  AW_REASON_WINDOW_DRY },
	{ "dry, but an ACK would offer no room", 0,
	  { .wnd_bytes = 4 * MSS, .unacked_bytes = 4 * MSS,
	    .wnd_max_bytes = 4 * MSS }, 0, NONE },
	{ "half of a small window is enough room", 0,
	  { .wnd_bytes = 1000, .unacked_bytes = 500, .wnd_next_bytes = 1000,
	    .wnd_max_bytes = 1000 }, 0, NONE },
	{ "less than half of it is not", AW_RAIL_WINDOW_DRY,
	  { .wnd_bytes = 1000, .unacked_bytes = 501, .wnd_next_bytes = 1000,
	    .wnd_max_bytes = 1000 }, 0, AW_REASON_WINDOW_DRY },
	{ "a read reopens a closed window, with no ACK owed",
	  AW_RAIL_WINDOW_DRY,
	  { .kind = AW_EVENT_APP_READ, .wnd_next_bytes = MSS,
	    .wnd_max_bytes = 4 * MSS }, NEVER, AW_REASON_WINDOW_DRY },
	{ "but not by less than a segment [RFC 9293, 3.8.6.2.2]", 0,
	  { .kind = AW_EVENT_APP_READ, .wnd_next_bytes = MSS - 1,
	    .wnd_max_bytes = 4 * MSS }, NEVER, NONE },
	{ "a timer with no ACK owed does not offer a byte [RFC 9293, 3.8.6.2.2]", 0,
	  { .kind = AW_EVENT_DEADLINE, .wnd_next_bytes = 1,
	    .wnd_max_bytes = 4 * MSS }, NEVER, NONE },
	{ "the peer's segments may be as large as the MSS announced [RFC 9293, 3.8.6.2.1]",
	  AW_RAIL_WINDOW_DRY,
	  { .kind = AW_EVENT_APP_READ, .wnd_bytes = 2 * MSS,
	    .wnd_next_bytes = 20 * MSS, .wnd_max_bytes = 20 * MSS,
	    .mss_max_bytes = 3 * MSS }, NEVER, AW_REASON_WINDOW_DRY },
	{ "a window that was exceeded is dry", AW_RAIL_WINDOW_DRY,
	  { .wnd_bytes = MSS, .unacked_bytes = 2 * MSS,
	    .wnd_next_bytes = MSS, .wnd_max_bytes = 4 * MSS }, 0,
	  AW_REASON_WINDOW_DRY },
	{ "second segment [RFC 5681, 4.2 (a)] [D-02]", AW_RAIL_SECOND_SEGMENT,
	  { .unacked_bytes = 2 * MSS, .wnd_bytes = 9 * MSS }, 0,
	  AW_REASON_SECOND_SEGMENT },
	{ "a byte less than two segments", 0,
	  { .unacked_bytes = 2 * MSS - 1, .wnd_bytes = 9 * MSS }, 0, NONE },
	{ "the share of the flight [D-26]", AW_RAIL_FLIGHT,
	  { .unacked_bytes = SHARE }, 0, AW_REASON_FLIGHT },
	{ "a byte less than the share", 0, { .unacked_bytes = SHARE - 1 }, 0, NONE },
	{ "a read does not trigger it", 0,
	  { .kind = AW_EVENT_APP_READ, .unacked_bytes = SHARE }, 0, NONE },
	{ "500 ms are over [RFC 9293, 3.8.6.3]", AW_RAIL_MAX_DELAY,
	  { .now_ns = 600 * AW_NS_PER_MS }, 100 * AW_NS_PER_MS,
	  AW_REASON_MAX_DELAY },
};
/* clang-format on */

static bool same(struct aw_verdict a, struct aw_verdict b)
{
	return a.deadline_ns == b.deadline_ns && a.action == b.action &&
	       a.reason == b.reason && a.by_rail == b.by_rail;
}

static void each_row(void)
{
	struct aw_verdict wait = aw_wait_until(601 * AW_NS_PER_MS), v;
	unsigned i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct aw_event e = rows[i].e;
		struct aw_verdict policy =
			rows[i].owed_since_ns == NEVER ? aw_nothing() : wait;
		u32 rail = rows[i].rail;
		u32 rails = AW_RAILS_NETWORK | rail;
		/* 101 ms if the row says 0, so the limit is at 601 ms */
		u64 owed_ns = rows[i].owed_since_ns ? rows[i].owed_since_ns
						    : 101 * AW_NS_PER_MS;
		u64 hole_ns = rows[i].reason == AW_REASON_OUT_OF_ORDER
				      ? 150 * AW_NS_PER_MS
				      : NEVER;

		e.rcv_mss_bytes = MSS;
		e.segments = 1;
		if (!e.wnd_max_bytes)
			e.wnd_bytes = e.wnd_next_bytes = e.wnd_max_bytes = 1 << 20;
		if (rail != AW_RAIL_MAX_DELAY)
			e.now_ns = 150 * AW_NS_PER_MS;
		v = aw_rails_apply(rails, owed_ns, SHARE, hole_ns, &e, policy);
		if (rows[i].reason == NONE) {
			CHECK(same(v, policy), "%s: %s", rows[i].claim,
			      aw_reason_label(v.reason));
			continue;
		}
		CHECK(v.action == AW_SEND_NOW && v.by_rail == 1 &&
			      v.reason == rows[i].reason &&
			      v.deadline_ns == AW_NEVER_NS,
		      "%s: %s", rows[i].claim, aw_reason_label(v.reason));
		/* without this rail, nothing acts */
		v = aw_rails_apply(rails & ~rail, owed_ns, SHARE, hole_ns, &e, policy);
		CHECK(same(v, policy), "%s, off: %s", rows[i].claim,
		      aw_reason_label(v.reason));
		/* and it does not change an ACK that leaves anyway */
		v = aw_rails_apply(rails, owed_ns, SHARE, hole_ns, &e,
				   aw_send_now(AW_REASON_AREA));
		CHECK(same(v, aw_send_now(AW_REASON_AREA)), "%s, sent: %s",
		      rows[i].claim, aw_reason_label(v.reason));
	}
}

/* [RFC 9293, 3.8.6.3] */
static void longest_delay(void)
{
	struct aw_event e = { .rcv_mss_bytes = MSS,
			      .wnd_bytes = 1 << 20,
			      .wnd_next_bytes = 1 << 20,
			      .wnd_max_bytes = 1 << 20,
			      .now_ns = 200 * AW_NS_PER_MS };
	struct aw_verdict v;

	v = aw_rails_apply(AW_RAILS_DEFAULT, 100 * AW_NS_PER_MS, 0, NEVER, &e,
			   aw_wait_until(AW_NEVER_NS));
	CHECK(v.action == AW_WAIT && v.by_rail && v.deadline_ns == 600 * AW_NS_PER_MS,
	      "clipped");
	v = aw_rails_apply(AW_RAILS_DEFAULT, 100 * AW_NS_PER_MS, 0, NEVER, &e,
			   aw_wait_until(600 * AW_NS_PER_MS));
	CHECK(v.action == AW_WAIT && !v.by_rail, "exactly 500 ms is allowed [D-17]");
	v = aw_rails_apply(AW_RAILS_DEFAULT & ~AW_RAIL_MAX_DELAY, 100 * AW_NS_PER_MS, 0,
			   NEVER, &e, aw_wait_until(AW_NEVER_NS));
	CHECK(v.action == AW_WAIT && !v.by_rail && v.deadline_ns == AW_NEVER_NS,
	      "off: forever");
	/* the host allows less, or more than the rail does */
	e.delay_max_us = 150000;
	v = aw_rails_apply(AW_RAILS_DEFAULT, 100 * AW_NS_PER_MS, 0, NEVER, &e,
			   aw_wait_until(300 * AW_NS_PER_MS));
	CHECK(v.action == AW_WAIT && v.by_rail && v.deadline_ns == 250 * AW_NS_PER_MS,
	      "clipped to what the host allows");
	e.delay_max_us = 100000;
	v = aw_rails_apply(AW_RAILS_DEFAULT, 100 * AW_NS_PER_MS, 0, NEVER, &e,
			   aw_wait_until(300 * AW_NS_PER_MS));
	CHECK(v.action == AW_SEND_NOW && v.reason == AW_REASON_MAX_DELAY,
	      "what the host allows is over");
	e.delay_max_us = ~0u;
	v = aw_rails_apply(AW_RAILS_DEFAULT, 100 * AW_NS_PER_MS, 0, NEVER, &e,
			   aw_wait_until(AW_NEVER_NS));
	CHECK(v.action == AW_WAIT && v.deadline_ns == 600 * AW_NS_PER_MS,
	      "a host cannot allow more");
	e.delay_max_us = 0;
	/* the limit does not wrap around */
	v = aw_rails_apply(AW_RAILS_DEFAULT, AW_NEVER_NS - 5, 0, NEVER, &e,
			   aw_wait_until(AW_NEVER_NS - 1));
	CHECK(v.action == AW_WAIT && v.deadline_ns == AW_NEVER_NS - 1, "wrap");
}

/* With little in flight, two segments may wait. [D-26] */
static void share_of_the_flight(void)
{
	struct aw_event e = { .rcv_mss_bytes = MSS,
			      .unacked_bytes = 2 * MSS - 1,
			      .wnd_bytes = 1 << 20,
			      .wnd_next_bytes = 1 << 20,
			      .wnd_max_bytes = 1 << 20 };
	struct aw_verdict wait = aw_wait_until(AW_NS_PER_MS), v;

	v = aw_rails_apply(AW_RAILS_NETWORK, 0, 0, NEVER, &e, wait);
	CHECK(same(v, wait), "not yet two: %s", aw_reason_label(v.reason));
	e.unacked_bytes++;
	v = aw_rails_apply(AW_RAILS_NETWORK, 0, 2 * MSS + 1, NEVER, &e, wait);
	CHECK(same(v, wait), "two, of a larger share: %s", aw_reason_label(v.reason));
	v = aw_rails_apply(AW_RAILS_NETWORK, 0, 0, NEVER, &e, wait);
	CHECK(v.reason == AW_REASON_FLIGHT && v.by_rail, "two");
}

/* The names that scenarios, results and the CLI use, in the order of the bits. */
static void each_rail_has_words(void)
{
	static const struct {
		const char *name, *set;
		u32 bit;
	} known[] = {
		{ "order", "default", AW_RAIL_ORDER },
		{ "ce", "default", AW_RAIL_CE },
		{ "fin", "default", AW_RAIL_FIN },
		{ "quickack", "default", AW_RAIL_QUICKACK },
		{ "max-delay", "default", AW_RAIL_MAX_DELAY },
		{ "window-dry", "default", AW_RAIL_WINDOW_DRY },
		{ "second-segment", "all", AW_RAIL_SECOND_SEGMENT },
		{ "flight", "network", AW_RAIL_FLIGHT },
		{ "reader", "default", AW_RAIL_READER },
	};
	const u32 count = sizeof(known) / sizeof(known[0]);
	u32 bit, sets[3] = { 0 };

	for (bit = 0; bit < count; bit++) {
		const char *name = aw_rail_name(bit), *set = aw_rail_set(bit);

		CHECK(name && !strcmp(name, known[bit].name), "bit %u: %s", bit, name);
		CHECK(set && !strcmp(set, known[bit].set), "%s: %s", name, set);
		CHECK(known[bit].bit == 1u << bit, "%s: %#x", name, known[bit].bit);
		CHECK(aw_rail_text(bit) && aw_rail_text(bit)[0], "%s", name);
		sets[0] |= strcmp(known[bit].set, "default") ? 0 : 1u << bit;
		sets[1] |= strcmp(known[bit].set, "all") ? 1u << bit : 0;
		sets[2] |= 1u << bit;
	}
	CHECK(AW_RAILS_DEFAULT == sets[0], "%#x", AW_RAILS_DEFAULT);
	CHECK(AW_RAILS_NETWORK == sets[1], "%#x", AW_RAILS_NETWORK);
	CHECK(AW_RAILS_ALL == sets[2], "%#x", AW_RAILS_ALL);
	for (; bit < 40; bit++)
		CHECK(!aw_rail_name(bit) && !aw_rail_text(bit) && !aw_rail_set(bit),
		      "bit %u", bit);
	CHECK(!aw_rail_name(~0u), "no such bit");
}

int main(void)
{
	each_rail_has_words();
	each_row();
	share_of_the_flight();
	longest_delay();
	return test_end();
}
