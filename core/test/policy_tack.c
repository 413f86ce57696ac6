/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include "script.h"

/* One segment each interval for a second, with an RTT of 20 ms: how many ACKs? */
static aw_u32 acks_in_a_second(aw_u64 every_ns)
{
	struct sock h = { .policy = "tack", .wnd_max_bytes = 16000000, .rtt_us = 20000 };
	struct step s = { IN(0) };
	struct aw_verdict v = { 0 };
	aw_u64 at_ns, first_ns = AW_NS_PER_S;

	sock_open(&h);
	for (at_ns = 0; at_ns < 2 * AW_NS_PER_S; at_ns += every_ns) {
		while (v.action == AW_WAIT && v.deadline_ns <= at_ns) {
			struct step timer = { TIMER(v.deadline_ns) };

			v = sock_step(&h, &timer);
		}
		if (first_ns && at_ns >= first_ns) {
			h.acks = 0;
			first_ns = 0;
		}
		s.at_ns = at_ns;
		v = sock_step(&h, &s);
	}
	return h.acks;
}

int main(void)
{
	aw_u32 acks;

	/* 10 ms: 2 segments in a round trip, less than 8: an ACK for each 2 [S6.5] */
	acks = acks_in_a_second(MS(10));
	CHECK(acks == 50, "%u", acks);
	/* 4 ms: 5 segments */
	acks = acks_in_a_second(MS(4));
	CHECK(acks == 125, "%u", acks);
	/* 20 and 200 segments, at least 8: 4 ACKs for each 20 ms [S6.5] */
	acks = acks_in_a_second(MS(1));
	CHECK(acks >= 195 && acks <= 201, "%u", acks);
	acks = acks_in_a_second(US(100));
	CHECK(acks >= 195 && acks <= 201, "%u", acks);
	ASK("bytes below 8 segments, a period from there", (.policy = "tack"),
	    (.rtt_us = 40000),
	    { QUESTION(SENT, MS(0)), ORDER(2 * MSS, 0) },
	    { QUESTION(SENT, MS(1)), .seen.flight_bytes = 8 * MSS - 1, ORDER(2 * MSS, 0) },
	    { QUESTION(LIMIT, MS(2)), .seen.owed_bytes = 2 * MSS, ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(SENT, MS(2)), .seen.flight_bytes = 8 * MSS, ORDER(1, MS(10)) },
	    { QUESTION(LIMIT, MS(5)), .seen.owed_bytes = MSS, ORDER(~0u, MS(7)) },
	    { QUESTION(TIMEOUT, MS(12)), .seen.owed_bytes = 9 * MSS, ANSWER_NOW(DELAY_TIMER) },
	    /* the period has passed before data comes */
	    { QUESTION(SENT, MS(12)), .seen.flight_bytes = 8 * MSS, ORDER(1, MS(10)) },
	    { QUESTION(LIMIT, MS(22)), .seen.owed_bytes = MSS, ANSWER_NOW(DELAY_TIMER) },
	    /* a queue of 40 ms: 20 segments in an RTT of 80 ms are 10 in RTT_min */
	    { QUESTION(SENT, MS(30)), .seen.rtt_us = 80000, .seen.flight_bytes = 20 * MSS,
	      ORDER(1, MS(10)) },
	    { QUESTION(SENT, MS(40)), .seen.rtt_us = 80000, .seen.flight_bytes = 15 * MSS,
	      ORDER(2 * MSS, 0) },
	    /* and a shorter round trip a shorter period */
	    { QUESTION(SENT, MS(50)), .seen.rtt_us = 8000, .seen.flight_bytes = 8 * MSS,
	      ORDER(1, MS(2)) });
	ASK("L and beta are parameters",
	    (.policy = "tack", .set = { { "l_segments", 3 }, { "beta", 2 } }), (.rtt_us = 40000),
	    { QUESTION(SENT, MS(0)), .seen.flight_bytes = 6 * MSS - 1, ORDER(3 * MSS, 0) },
	    { QUESTION(SENT, MS(0)), .seen.flight_bytes = 6 * MSS, ORDER(1, MS(20)) });
	return test_end();
}
