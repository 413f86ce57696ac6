/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include "script.h"

static aw_u32 receive(struct sock *h, aw_u64 *at_ns, aw_u32 segments, aw_u64 every_ns)
{
	aw_u32 before = h->acks, i;
	struct step s;

	for (i = 0; i < segments; i++) {
		s = (struct step){ IN(*at_ns) };
		sock_step(h, &s);
		*at_ns += every_ns;
	}
	return h->acks - before;
}

/*
 * A segment each millisecond, so 100 in a window of 100 ms.  Slow start takes 512
 * segments, each second of which is acknowledged.  In a window, the first 8 make a
 * stream; after that, every 8th is acknowledged. [S6.4]
 */
static aw_u64 stretch(struct sock *h)
{
	aw_u64 at_ns = 0;
	aw_u32 acks;

	sock_open(h);
	acks = receive(h, &at_ns, 511, MS(1));
	CHECK(acks == 255, "%u", acks);
	return at_ns;
}

static void every_eighth_while_data_streams(void)
{
	struct sock h = { .policy = "xnustretch" };
	aw_u64 at_ns = stretch(&h);
	aw_u32 acks;

	/* a window begins at 500 ms: 512 and later stretch; the one owed is the first of 8 */
	acks = receive(&h, &at_ns, 88, MS(1));
	CHECK(at_ns == MS(599) && acks == 11, "%u", acks);
	/* the next window begins at 600 ms, and stretches again from the ninth: ACKs at
	 * 601, 603, 605 and 607 ms */
	acks = receive(&h, &at_ns, 10, MS(1));
	CHECK(acks == 4, "%u", acks);
}

/* The 511th is the second of a pair, and not yet one of eight. */
static void slow_start_takes_512_segments(void)
{
	struct sock h = { .policy = "xnustretch" };
	struct step timer = { TIMER(MS(100)) };
	aw_u64 at_ns = 0;
	aw_u32 acks;

	sock_open(&h);
	receive(&h, &at_ns, 1, 0);
	sock_step(&h, &timer);
	at_ns = MS(101);
	acks = receive(&h, &at_ns, 510, MS(1));
	CHECK(acks == 255 && !h.unacked_bytes, "%u", acks);
	acks = receive(&h, &at_ns, 8, MS(1));
	CHECK(acks == 1 && !h.unacked_bytes, "%u", acks);
}

static void a_hole_is_slow_start_again(void)
{
	struct sock h = { .policy = "xnustretch" };
	struct step hole = { .seq = AW_SEQ_HOLE, .flags = AW_FLAG_HOLE_OPEN };
	struct step fills = { .seq = AW_SEQ_FILLS };
	aw_u64 at_ns = stretch(&h);
	aw_u32 acks;

	receive(&h, &at_ns, 41, MS(1));
	hole = (struct step){ IN(at_ns), .seq = AW_SEQ_HOLE, .flags = AW_FLAG_HOLE_OPEN };
	sock_step(&h, &hole);
	fills = (struct step){ IN(at_ns), .seq = AW_SEQ_FILLS };
	sock_step(&h, &fills);
	/* 510 in pairs */
	acks = receive(&h, &at_ns, 510, MS(1));
	CHECK(acks == 255, "%u", acks);
	acks = receive(&h, &at_ns, 80, MS(1));
	CHECK(acks < 20, "%u", acks);
}

static void a_pushed_segment_is_acknowledged(void)
{
	struct sock h = { .policy = "xnustretch" };
	aw_u64 at_ns = stretch(&h);
	struct step pushed;
	struct aw_verdict v;

	receive(&h, &at_ns, 8, MS(1)); /* 519: an ACK left with the eighth */
	pushed = (struct step){ IN(at_ns), .flags = AW_FLAG_PSH };
	v = sock_step(&h, &pushed);
	CHECK(v.reason == AW_REASON_PUSH, "%s", aw_reason_label(v.reason));
}

/* Four segments, then silence: the sixth time is once too often. */
static void six_wrong_timers_disable_it_for_2000_segments(void)
{
	struct sock h = { .policy = "xnustretch" };
	aw_u32 acks, i, more = 0;
	struct step timer;
	aw_u64 at_ns;

	sock_open(&h);
	at_ns = 0;
	for (i = 0; i < 6; i++) {
		/* 512 segments, and up to 7 that wait */
		receive(&h, &at_ns, 520, MS(1));
		for (more = 0; h.unacked_bytes != 4 * MSS; more++)
			receive(&h, &at_ns, 1, MS(1));
		timer = (struct step){ TIMER(at_ns + MS(100)) };
		acks = h.acks;
		sock_step(&h, &timer);
		CHECK(h.acks == acks + 1, "timer %u", i);
		at_ns += MS(200);
	}
	acks = receive(&h, &at_ns, 2000, MS(1));
	CHECK(acks == 1000, "%u", acks);
	acks = receive(&h, &at_ns, 88, MS(1));
	CHECK(acks < 20, "%u", acks);
}

int main(void)
{
	every_eighth_while_data_streams();
	slow_start_takes_512_segments();
	a_hole_is_slow_start_again();
	a_pushed_segment_is_acknowledged();
	six_wrong_timers_disable_it_for_2000_segments();
	ASK("a read of two segments sends an ACK, unless stretching",
	    (.policy = "xnustretch"), (.rtt_us = 10000),
	    { QUESTION(SENT, MS(1)), .seen.unread_bytes = MSS, ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(2)), .seen.owed_bytes = MSS, .seen.new_bytes = MSS,
	      .seen.new_segments = 1, .seen.unread_bytes = 2 * MSS, ORDER(MSS + 1, MS(100)) },
	    { QUESTION(READ, MS(3)), .seen.first_ns = MS(2), .seen.owed_bytes = MSS,
	      .seen.unread_bytes = 1, ORDER(MSS + 1, MS(99)) },
	    { QUESTION(READ, MS(3)), .seen.owed_bytes = MSS, ANSWER_NOW(WINDOW_UPDATE) },
	    { QUESTION(SENT, MS(3)), .seen.unread_bytes = 20 * MSS, ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(4)), .seen.owed_bytes = MSS, .seen.new_bytes = 511 * MSS,
	      .seen.new_segments = 511, .seen.unread_bytes = 21 * MSS,
	      ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(SENT, MS(4)), .seen.unread_bytes = 20 * MSS, ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(5)), .seen.owed_bytes = MSS, .seen.new_bytes = MSS,
	      .seen.new_segments = 1, .seen.unread_bytes = 21 * MSS, ORDER(MSS + 1, MS(100)) },
	    { QUESTION(READ, MS(5)), .seen.owed_bytes = MSS, .seen.unread_bytes = 0,
	      ORDER(MSS + 1, MS(100)) },
	    /* stretching, but for a quarter of the buffer: 1 029 200 / 4 = 257 300 */
	    { QUESTION(READ, MS(6)), .seen.owed_bytes = 228099, ORDER(228100, MS(100)) },
	    { QUESTION(READ, MS(6)), .seen.owed_bytes = 228100, ANSWER_NOW(WINDOW_UPDATE) },
	    /* slow start again after a CE mark */
	    { QUESTION(SENT, MS(7)), .seen.flags = AW_SEEN_CE, ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(8)), .seen.owed_bytes = 400 * MSS, .seen.new_bytes = 400 * MSS,
	      .seen.new_segments = 400, .seen.unread_bytes = MSS, ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(SENT, MS(9)), ORDER(1, MS(100)) },
	    { QUESTION(LIMIT, MS(9)), .seen.owed_bytes = MSS, .seen.new_bytes = MSS,
	      .seen.new_segments = 1, .seen.unread_bytes = MSS, ORDER(MSS + 1, MS(100)) },
	    { QUESTION(LIMIT, MS(9)), .seen.owed_bytes = 2 * MSS, .seen.new_bytes = MSS,
	      .seen.new_segments = 1, .seen.unread_bytes = MSS, ANSWER_NOW(SEGMENT_COUNT) });
	return test_end();
}
