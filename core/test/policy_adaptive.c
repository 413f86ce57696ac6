/* SPDX-License-Identifier: MIT */
/* clang-format off */
/* docs/inside/adaptive.md, and the head of policy/adaptive.c */
#include "script.h"

/* RTT / 64 and the usual timer are a millisecond; 100 segments are 0.64 ms apart. */
#define USUAL(flight) .mss_bytes = 1000, .rtt_us = 64000, .flight_bytes = flight
#define FLIGHT(n) .seen.flight_bytes = n
#define FLAG(name) .seen.flags = AW_SEEN_##name
#define STOCK ORDER(0, 0)
/* The first flight could be slow start: a second one shows that it is not. */
#define KNOWN(n) { QUESTION(SENT, 0), FLIGHT((n) - 1), STOCK }

static void stock_while_the_flight_grows(void)
{
	ASK("unknown, then growing by more than a quarter", (.policy = "adaptive"),
	    (USUAL(0)),
	    { QUESTION(SENT, 0), STOCK },
	    { QUESTION(SENT, MS(64)), FLIGHT(40000), STOCK },
	    { QUESTION(SENT, MS(65)), FLIGHT(40000), STOCK },
	    { QUESTION(SENT, MS(128)), FLIGHT(80000), STOCK },
	    /* a quarter; four spacings of 0.64 ms */
	    { QUESTION(SENT, MS(192)), FLIGHT(100000), ORDER(25000, MS(2.56)) },
	    { QUESTION(SENT, MS(256)), FLIGHT(128000), STOCK },
	    { QUESTION(SENT, MS(320)), FLIGHT(160000), ORDER(40000, MS(1.6)) },
	    { QUESTION(SENT, MS(384)), FLIGHT(20000), ORDER(5000, MS(12.8)) });
	ASK("no RTT", (.policy = "adaptive"), (.flight_bytes = 100000),
	    KNOWN(100000), { QUESTION(SENT, 1), STOCK });
}

static void stock_below_three_segments_for_each_ack(void)
{
	ASK("12 segments for each round trip, then less", (.policy = "adaptive"), (USUAL(12000)),
	    KNOWN(12000),
	    { QUESTION(SENT, 1), ORDER(3000, MS(16)) },
	    { QUESTION(SENT, 2), FLIGHT(11999), STOCK });
}

static void waits_for_a_quarter_of_the_rtt_without_loss(void)
{
	ASK("the RTT now", (.policy = "adaptive"), (USUAL(16000)), KNOWN(16000),
	    { QUESTION(SENT, 1), .seen.rtt_us = 80000, ORDER(4000, MS(20)) });
	ASK("half the price", (.policy = "adaptive", .set = { { "price_permille", 500 } }),
	    (USUAL(32000)), KNOWN(32000),
	    { QUESTION(SENT, 1), ORDER(8000, MS(8)) });
	ASK("the price after a loss: 4 ms, which are four spacings",
	    (.policy = "adaptive", .set = { { "price_permille", 4000 } }), (USUAL(64000)),
	    KNOWN(64000),
	    { QUESTION(SENT, 1), FLAG(HOLE), ORDER(16000, MS(4)) },
	    { QUESTION(SENT, 2), FLIGHT(47000), STOCK });
	ASK("any price, and a quarter at most",
	    (.policy = "adaptive", .set = { { "price_permille", 64000 } }), (USUAL(16000)),
	    KNOWN(16000),
	    { QUESTION(SENT, 1), FLAG(HOLE), ORDER(4000, MS(16)) });
}

/* 0.25 ms apart: a pause is a millisecond. */
static void after_a_loss_for_a_part_of_the_queue(void)
{
	ASK("3/8 of what the RTT is above the least one and a tick", (.policy = "adaptive"),
	    (USUAL(256000)), KNOWN(256000),
	    { QUESTION(SENT, MS(1)), FLAG(HOLE), ORDER(64000, MS(1)) },
	    { QUESTION(SENT, MS(2)), .seen.rtt_us = 80000, ORDER(64000, MS(1.25)) },
	    { QUESTION(TIMEOUT, MS(15)), .seen.rtt_us = 80000, .seen.first_ns = MS(10),
	      .seen.owed_bytes = 4000, ORDER(64000, MS(0.625)) },
	    { QUESTION(TIMEOUT, MS(15.625)), .seen.rtt_us = 80000, .seen.first_ns = MS(10),
	      .seen.owed_bytes = 4000, ANSWER_NOW(QUIET) },
	    /* 3/8 of 191 ms is more than RTT / 4 */
	    { QUESTION(TIMEOUT, MS(73)), .seen.rtt_us = 256000, .seen.first_ns = MS(10),
	      .seen.owed_bytes = 4000, ORDER(64000, MS(1)) });
	ASK("a millisecond is too short for three segments", (.policy = "adaptive"),
	    (USUAL(191000)), KNOWN(191000),
	    { QUESTION(SENT, MS(1)), FLAG(HOLE), STOCK });
	ASK("RTT / 16 where that is less than a millisecond", (.policy = "adaptive"),
	    (.mss_bytes = 1000, .rtt_us = 8000, .flight_bytes = 256000), KNOWN(256000),
	    { QUESTION(SENT, MS(1)), FLAG(HOLE), ORDER(64000, MS(0.5)) });
	ASK("a least RTT that a timeout sees", (.policy = "adaptive"), (USUAL(256000)),
	    KNOWN(256000),
	    { QUESTION(SENT, MS(1)), FLAG(HOLE), ORDER(64000, MS(1)) },
	    { QUESTION(TIMEOUT, MS(3)), .seen.first_ns = MS(1.5), .seen.rtt_us = 32000,
	      .seen.owed_bytes = 1000, ANSWER_NOW(QUIET) },
	    /* 64 ms is a queue now: 3/8 of 31 ms */
	    { QUESTION(TIMEOUT, MS(21)), .seen.first_ns = MS(10), .seen.owed_bytes = 4000,
	      ORDER(64000, MS(0.625)) });
}

/* A third of a millisecond apart. */
static void hurries_while_the_sender_pauses(void)
{
	ASK("a gap of more than four spacings: 16 round trips, then 32", (.policy = "adaptive"),
	    (USUAL(192000)), KNOWN(192000),
	    { QUESTION(SENT, MS(64)), .seen.gap_ns = 1300000, ORDER(48000, 1333332) },
	    { QUESTION(SENT, MS(100)), .seen.gap_ns = 1400000, ORDER(48000, MS(1)) },
	    { QUESTION(SENT, MS(1123)), .seen.gap_ns = 1400000, ORDER(48000, MS(1)) },
	    { QUESTION(SENT, MS(1124)), ORDER(48000, 1333332) },
	    { QUESTION(SENT, MS(2000)), .seen.gap_ns = 1400000, ORDER(48000, MS(1)) },
	    { QUESTION(SENT, MS(4047)), ORDER(48000, MS(1)) },
	    { QUESTION(SENT, MS(4048)), ORDER(48000, 1333332) });
}

static void stock_while_acks_are_lost(void)
{
	ASK("1000 ACKs after a segment that had been acknowledged", (.policy = "adaptive"),
	    (USUAL(100000)), KNOWN(100000),
	    { QUESTION(SENT, 1), ORDER(25000, MS(2.56)) },
	    { QUESTION(SENT, 2), FLAG(DUPLICATE), STOCK },
	    { QUESTION(SENT, 3), STOCK, .times = 500 },
	    { QUESTION(SENT, 4), FLAG(DUPLICATE), STOCK },
	    { QUESTION(SENT, 5), STOCK, .times = 1000 },
	    { QUESTION(SENT, 6), ORDER(25000, MS(2.56)) });
}

/* Nagle holds a small segment until the ACK. */
static void a_sender_that_waits_for_delayed_acks_waits_less(void)
{
	ASK("two delayed ACKs, each of which data followed", (.policy = "adaptive"),
	    (USUAL(2000)),
	    { QUESTION(SENT, 0), STOCK },
	    { QUESTION(TIMEOUT, MS(200)), .seen.last_ns = MS(10), ANSWER_NOW(DELAY_TIMER) },
	    { QUESTION(SENT, MS(264)), STOCK },
	    { QUESTION(TIMEOUT, MS(504)), .seen.last_ns = MS(264), ANSWER_NOW(DELAY_TIMER) },
	    { QUESTION(SENT, MS(568)), ORDER(0, MS(1)) },
	    /* a host that answers has its own data to put the ACK on */
	    { QUESTION(SENT, MS(569)), FLAG(ON_DATA), STOCK },
	    { QUESTION(SENT, MS(570)), ORDER(0, MS(1)) });
	ASK("data that came on its own", (.policy = "adaptive"), (USUAL(2000)),
	    { QUESTION(SENT, 0), STOCK },
	    { QUESTION(TIMEOUT, MS(200)), .seen.last_ns = MS(10), ANSWER_NOW(DELAY_TIMER) },
	    { QUESTION(SENT, MS(328)), STOCK },
	    { QUESTION(TIMEOUT, MS(600)), .seen.last_ns = MS(328), ANSWER_NOW(DELAY_TIMER) },
	    { QUESTION(SENT, MS(664)), STOCK });
}

static void the_end_of_a_burst_is_seen(void)
{
	ASK("no arrival for four spacings", (.policy = "adaptive"), (USUAL(100000)),
	    KNOWN(100000), { QUESTION(SENT, MS(1)), ORDER(25000, MS(2.56)) },
	    { QUESTION(LIMIT, MS(2)), ANSWER_NOW(SEGMENT_COUNT) },
	    /* the last arrival was at 12, and 16 ms have not passed */
	    { QUESTION(TIMEOUT, MS(12.56)), .seen.first_ns = MS(10), .seen.last_ns = MS(12),
	      .seen.owed_bytes = 4000, ORDER(25000, MS(2)) },
	    { QUESTION(TIMEOUT, MS(14.56)), .seen.first_ns = MS(10), .seen.last_ns = MS(12),
	      .seen.owed_bytes = 4000, ANSWER_NOW(QUIET) },
	    { QUESTION(TIMEOUT, MS(25.9)), .seen.first_ns = MS(10), .seen.last_ns = MS(25.8),
	      .seen.owed_bytes = 4000, ORDER(25000, US(100)) },
	    { QUESTION(TIMEOUT, MS(26)), .seen.first_ns = MS(10), .seen.last_ns = MS(25.9),
	      .seen.owed_bytes = 4000, ANSWER_NOW(QUIET) });
}

/* An ACK would open no window. */
static void waits_for_a_reader(void)
{
	ASK("nothing of what waits is read: RTT / 4", (.policy = "adaptive"), (USUAL(100000)),
	    KNOWN(100000), { QUESTION(SENT, MS(1)), ORDER(25000, MS(2.56)) },
	    { QUESTION(TIMEOUT, MS(14.56)), .seen.first_ns = MS(10), .seen.last_ns = MS(12),
	      .seen.owed_bytes = 4000, .seen.unread_bytes = 4000, ORDER(25000, MS(11.44)) },
	    { QUESTION(TIMEOUT, MS(26)), .seen.first_ns = MS(10), .seen.last_ns = MS(12),
	      .seen.owed_bytes = 4000, .seen.unread_bytes = 4000, ANSWER_NOW(QUIET) });
	ASK("10 ms at least", (.policy = "adaptive"),
	    (.mss_bytes = 1000, .rtt_us = 8000, .flight_bytes = 100000), KNOWN(100000),
	    { QUESTION(SENT, MS(1)), ORDER(25000, MS(1)) },
	    { QUESTION(TIMEOUT, MS(12)), .seen.first_ns = MS(10), .seen.last_ns = MS(10),
	      .seen.owed_bytes = 4000, .seen.unread_bytes = 4000, ORDER(25000, MS(8)) });
}

int main(void)
{
	stock_while_the_flight_grows();
	stock_below_three_segments_for_each_ack();
	waits_for_a_quarter_of_the_rtt_without_loss();
	after_a_loss_for_a_part_of_the_queue();
	hurries_while_the_sender_pauses();
	stock_while_acks_are_lost();
	a_sender_that_waits_for_delayed_acks_waits_less();
	the_end_of_a_burst_is_seen();
	waits_for_a_reader();
	return test_end();
}
