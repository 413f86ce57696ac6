/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include "script.h"

static struct aw_verdict arrive(struct sock *h, aw_u64 at_ns, aw_u32 unread_bytes)
{
	struct step s = { IN(at_ns), .unread_bytes = unread_bytes };

	return sock_step(h, &s);
}

static struct aw_verdict read_all(struct sock *h, aw_u64 at_ns)
{
	struct step s = { READ(at_ns, MSS) };

	return sock_step(h, &s);
}

/* The first 16 ACKs are forced: one for each segment. [S6.2] */
static void start(struct sock *h)
{
	struct aw_verdict v;
	aw_u32 i;

	sock_open(h);
	for (i = 0; i < 16; i++) {
		v = arrive(h, i * MS(1), MSS);
		CHECK(v.reason == AW_REASON_QUICKACK, "%u: %s", i,
		      aw_reason_label(v.reason));
		read_all(h, i * MS(1));
	}
	CHECK(h->acks == 16 && sock_observe(h, "forced_acks") == 0, "%u", h->acks);
}

/*
 * 64 KiB and 190 000 bytes are less than 192 KiB: the second segment that is owed is acknowledged, on
 * arrival, so while the first of them is unread.  Two segments have then been read
 * when the next one is, which sends the next ACK. [S6.1] [S6.3]
 */
static void a_small_window_read_at_once(aw_u32 wnd_bytes)
{
	static const char *const acks[] = { "read", "none", "arrival" };
	struct sock h = { .policy = "xnu", .wnd_max_bytes = wnd_bytes };
	aw_u32 i, before;
	const char *came;

	start(&h);
	for (i = 0; i < 300; i++) {
		before = h.acks;
		came = "none";
		arrive(&h, MS(20) + i * MS(1), MSS);
		if (h.acks != before)
			came = "arrival";
		read_all(&h, MS(20) + i * MS(1));
		if (h.acks != before && !strcmp(came, "none"))
			came = "read";
		CHECK(h.acks - before <= 1 && !strcmp(came, acks[i % 3]), "%u: %s", i, came);
	}
}

/* With a large window, the read of every second segment sends the ACK. [S6.3] */
static void a_large_window_read_at_once(void)
{
	struct sock h = { .policy = "xnu", .wnd_max_bytes = 4000000 };
	struct aw_verdict v;
	aw_u32 i;

	start(&h);
	for (i = 0; i < 300; i++) {
		v = arrive(&h, MS(20) + i * MS(1), MSS);
		CHECK(v.action == AW_WAIT, "%u: %s", i, aw_reason_label(v.reason));
		v = read_all(&h, MS(20) + i * MS(1));
		CHECK((v.action == AW_SEND_NOW) == (i % 2 == 0), "%u", i);
		CHECK(v.action == AW_WAIT || v.reason == AW_REASON_SEGMENT_COUNT, "%s",
		      aw_reason_label(v.reason));
	}
}

/*
 * Of 1 000 000 bytes, k unread segments leave a window of 1 000 000 - 1460 k.  An
 * ACK leaves once 1460 k reaches a quarter of that: 7300 k >= 1 000 000, k = 137.
 * [S6.1]
 */
static void an_unread_buffer_waits_for_a_quarter_of_the_window(void)
{
	struct sock h = { .policy = "xnu" };
	struct aw_verdict v;
	aw_u32 k;

	start(&h);
	for (k = 1; k <= 137; k++) {
		v = arrive(&h, MS(20) + k * US(100), k * MSS);
		CHECK((v.action == AW_SEND_NOW) == (k == 137), "%u: %s", k,
		      aw_reason_label(v.reason));
	}
	CHECK(v.reason == AW_REASON_SEGMENT_COUNT, "%s", aw_reason_label(v.reason));
}

/* A sender's range of 256 segments is the most, however large the window. [S6.1] */
static void no_more_than_256_segments(void)
{
	struct sock h = { .policy = "xnu", .wnd_max_bytes = 16000000 };
	struct aw_verdict v;
	aw_u32 k;

	start(&h);
	for (k = 1; k <= 256; k++) {
		v = arrive(&h, MS(20) + k * US(100), k * MSS);
		CHECK((v.action == AW_SEND_NOW) == (k == 256), "%u", k);
	}
}

static void after_a_hole_16_acks_are_forced(void)
{
	struct sock h = { .policy = "xnu", .wnd_max_bytes = 4000000 };
	struct step hole = { IN(MS(20)), .seq = AW_SEQ_HOLE, .flags = AW_FLAG_HOLE_OPEN };
	struct step fills = { IN(MS(30)), .seq = AW_SEQ_FILLS };
	struct aw_verdict v;
	aw_u32 i;

	start(&h);
	v = sock_step(&h, &hole);
	CHECK(v.reason == AW_REASON_OUT_OF_ORDER, "%s", aw_reason_label(v.reason));
	v = sock_step(&h, &fills);
	CHECK(v.action == AW_SEND_NOW, "the first");
	for (i = 2; i <= 16; i++) {
		v = arrive(&h, MS(31) + i * MS(1), MSS);
		CHECK(v.reason == AW_REASON_QUICKACK, "%u: %s", i,
		      aw_reason_label(v.reason));
	}
	v = arrive(&h, MS(60), MSS);
	CHECK(v.action == AW_WAIT, "%s", aw_reason_label(v.reason));
}

static void an_expired_timer_forces_acks(void)
{
	struct sock h = { .policy = "xnu", .wnd_max_bytes = 4000000 };
	struct step timer = { TIMER(MS(120)) };
	struct aw_verdict v;

	start(&h);
	v = arrive(&h, MS(20), MSS);
	CHECK(v.action == AW_WAIT && v.deadline_ns == MS(120), "100 ms");
	v = arrive(&h, MS(50), 2 * MSS);
	CHECK(v.action == AW_WAIT && v.deadline_ns == MS(120), "from the first");
	v = sock_step(&h, &timer);
	CHECK(v.reason == AW_REASON_DELAY_TIMER, "%s", aw_reason_label(v.reason));
	CHECK(sock_observe(&h, "forced_acks") == 15, "%u",
	      sock_observe(&h, "forced_acks"));
}

static void an_rto_of_silence_forces_acks(void)
{
	struct sock h = { .policy = "xnu", .wnd_max_bytes = 4000000, .rto_us = 300000 };
	struct aw_verdict v;

	start(&h);
	v = arrive(&h, MS(314), MSS);
	CHECK(v.action == AW_WAIT, "299 ms: %s", aw_reason_label(v.reason));
	h.acks = 0;
	read_all(&h, MS(314));
	v = arrive(&h, MS(614), MSS);
	CHECK(v.reason == AW_REASON_QUICKACK, "300 ms: %s", aw_reason_label(v.reason));
}

int main(void)
{
	a_small_window_read_at_once(65536);
	a_small_window_read_at_once(190000);
	a_large_window_read_at_once();
	an_unread_buffer_waits_for_a_quarter_of_the_window();
	no_more_than_256_segments();
	after_a_hole_16_acks_are_forced();
	an_expired_timer_forces_acks();
	an_rto_of_silence_forces_acks();
	ASK("reads, of a buffer of 1 300 000 bytes [S6.3]", (.policy = "xnu"), (.rtt_us = 10000),
	    { QUESTION(SENT, MS(0)), .times = 16, ORDER(1, MS(100)) },
	    /* 300 000 were unread when the last ACK left */
	    { QUESTION(SENT, MS(1)), .seen.unread_bytes = 300000, ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(2)), .seen.unread_bytes = 300000 + MSS,
	      .seen.owed_bytes = MSS, .seen.new_bytes = MSS, ORDER(MSS + 1, MS(100)) },
	    /* the right edge could move by as much as was read: 324 999 are too few */
	    { QUESTION(READ, MS(3)), .seen.first_ns = MS(2), .seen.owed_bytes = 26460,
	      .seen.unread_bytes = 1461, ORDER(26461, MS(99)) },
	    { QUESTION(READ, MS(3)), .seen.first_ns = MS(2), .seen.owed_bytes = 26460,
	      .seen.unread_bytes = 1460, ANSWER_NOW(WINDOW_UPDATE) },
	    { QUESTION(SENT, MS(3)), .seen.unread_bytes = 0, ORDER(1, MS(100)) },
	    /* a pushed segment, read completely */
	    { QUESTION(LIMIT, MS(4)), .seen.owed_bytes = 100, .seen.unread_bytes = 100,
	      .seen.new_bytes = 100, .seen.flags = AW_SEEN_PUSH, ORDER(101, MS(100)) },
	    { QUESTION(READ, MS(5)), .seen.first_ns = MS(4), .seen.owed_bytes = 100,
	      .seen.unread_bytes = 1, ORDER(101, MS(99)) },
	    { QUESTION(READ, MS(6)), .seen.owed_bytes = 100, ANSWER_NOW(PUSH) },
	    /* an ACK of a read takes none of those that are forced after a CE mark */
	    { QUESTION(SENT, MS(6)), .seen.flags = AW_SEEN_CE, ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(7)), .seen.owed_bytes = MSS, .seen.unread_bytes = MSS,
	      .seen.new_bytes = MSS, ANSWER_NOW(QUICKACK) },
	    { QUESTION(SENT, MS(7)), .times = 15, ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(7)), .seen.owed_bytes = MSS, .seen.unread_bytes = MSS,
	      .seen.new_bytes = MSS, ANSWER_NOW(QUICKACK) },
	    /* nor does one on data */
	    { QUESTION(SENT, MS(7)), .seen.flags = AW_SEEN_ON_DATA, ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(7)), .seen.owed_bytes = MSS, .seen.unread_bytes = MSS,
	      .seen.new_bytes = MSS, ANSWER_NOW(QUICKACK) },
	    { QUESTION(SENT, MS(7)), ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(8)), .seen.owed_bytes = MSS, .seen.unread_bytes = MSS,
	      .seen.new_bytes = MSS, ORDER(MSS + 1, MS(100)) });
	ASK("exactly a quarter: 200 000 owed leave a window of 800 000 [S6.1]", (.policy = "xnu"),
	    (.rtt_us = 10000),
	    { QUESTION(SENT, MS(0)), .times = 16, ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(1)), .seen.owed_bytes = 199999, .seen.new_bytes = 199999,
	      .seen.unread_bytes = 199999, ORDER(200000, MS(100)) },
	    { QUESTION(LIMIT, MS(1)), .seen.owed_bytes = 200000, .seen.new_bytes = 1,
	      .seen.unread_bytes = 200000, ANSWER_NOW(SEGMENT_COUNT) });
	ASK("an arrival that finds a larger window is acknowledged [S6.1]", (.policy = "xnu"),
	    (.rtt_us = 10000),
	    { QUESTION(SENT, MS(0)), .times = 16, .seen.unread_bytes = 9000, ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(1)), .seen.owed_bytes = MSS, .seen.new_bytes = MSS,
	      .seen.unread_bytes = 9000, ORDER(MSS + 1, MS(100)) },
	    { QUESTION(LIMIT, MS(1)), .seen.owed_bytes = MSS, .seen.new_bytes = MSS,
	      .seen.unread_bytes = 8999, ANSWER_NOW(SEGMENT_COUNT) });
	return test_end();
}
