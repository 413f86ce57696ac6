/* SPDX-License-Identifier: MIT */
/* clang-format off */
/* spec/1-ack-rate-limiting.md */
#include "script.h"

/* 100 segments per round trip, so that four ACKs are one in 25. */
#define GAP US(100)
#define RTT .rtt_us = 10000

static struct sock flow(aw_u32 settle)
{
	struct sock h = { .policy = "ratelimit", .host = "linux",
			  .wnd_max_bytes = 4000000, RTT,
			  .set = { { "settle_segments", settle } } };

	return h;
}

struct run {
	struct sock h;
	struct step s;
	unsigned reasons[AW_REASONS];
};

/* n segments, gap_ns apart; returns the number of ACKs. */
static unsigned receive(struct run *r, aw_u32 n, aw_u64 gap_ns)
{
	unsigned before = r->h.acks;

	while (n--) {
		r->s = (struct step){ IN(r->s.at_ns + gap_ns) };
		r->reasons[sock_step(&r->h, &r->s).reason]++;
	}
	return r->h.acks - before;
}

/* The algorithm of the paper. [S1.2] [S1.4] [S1.6] */
static void rises_by_one_each_interval(void)
{
	struct run r = { .h = flow(1000) };
	aw_u32 rate, acks;

	r.h.set[1] = (struct setting){ "guard", 0 };
	sock_open(&r.h);
	/* stock until more than 1000 segments have arrived */
	acks = receive(&r, 1001, GAP);
	CHECK(acks == 16 + 985 / 2, "stock: %u ACKs", acks);
	/* the first interval only records, and the rate stays 1 */
	acks = receive(&r, 1000, GAP);
	CHECK(acks == 500, "first interval: %u ACKs", acks);
	for (rate = 1; rate < 16; rate++) {
		acks = receive(&r, 999, GAP);
		CHECK(sock_observe(&r.h, "rate_segments") == rate, "rate %u", rate);
		acks += receive(&r, 1, GAP);
		CHECK(acks >= 1000 / (rate + 1) - 1 &&
			      acks <= 1000 / (rate + 1) + 1,
		      "rate %u: %u ACKs", rate, acks);
	}
}

/* Segments until the rate changes.  It changes with an ACK, so an interval has up to
 * one ACK's segments more than asked for. */
static aw_u32 until_rate_changes(struct run *r, aw_u64 gap_ns)
{
	aw_u32 rate = sock_observe(&r->h, "rate_segments"), n;

	for (n = 1; n < 100000; n++) {
		receive(r, 1, gap_ns);
		if (sock_observe(&r->h, "rate_segments") != rate)
			return n;
	}
	return n;
}

/* [D-25] */
static void doubles_each_interval_until_slower(void)
{
	struct run r = { .h = flow(1000) };
	aw_u32 rate, n;

	sock_open(&r.h);
	/* settled, recorded, and as fast as before */
	n = until_rate_changes(&r, GAP);
	CHECK(n >= 3001 && n <= 3006, "%u", n);
	for (rate = 2; rate <= 32; rate *= 2) {
		CHECK(sock_observe(&r.h, "rate_segments") == rate, "%u", rate);
		n = until_rate_changes(&r, rate < 32 ? GAP : GAP + US(10));
		CHECK(n >= 1000 && n <= 1000 + rate, "rate %u: %u", rate, n);
	}
	/* half of it, and n = 2000 that only check whether that helped, then 2000 more */
	CHECK(sock_observe(&r.h, "rate_segments") == 16, "fell back");
	n = until_rate_changes(&r, GAP);
	CHECK(n >= 4000 && n <= 4000 + 2 * 16, "held: %u", n);
	CHECK(sock_observe(&r.h, "rate_segments") == 17, "by one after that");
}

/* The paper tested with intervals shorter than the start. [D-22] */
static void intervals_may_be_shorter_than_the_start(void)
{
	struct run r = { .h = flow(1000) };
	aw_u32 rate, n;

	r.h.set[1] = (struct setting){ "interval_segments", 100 };
	r.h.set[2] = (struct setting){ "guard", 0 };
	sock_open(&r.h);
	n = until_rate_changes(&r, GAP);
	CHECK(n >= 1201 && n <= 1206, "settled, recorded, as fast: %u", n);
	for (rate = 2; rate < 12; rate++) {
		CHECK(sock_observe(&r.h, "rate_segments") == rate, "%u", rate);
		n = until_rate_changes(&r, GAP);
		CHECK(n >= 100 && n <= 100 + rate, "rate %u: %u", rate, n);
	}
}

/* The clamp of the host, not a limit of the policy. [D-03] [D-26] */
static void four_acks_per_round_trip_are_left(void)
{
	struct run r = { .h = flow(1000) };
	aw_u32 acks;

	r.h.set[1] = (struct setting){ "most_segments", 64 };
	r.h.clamp = 1;
	sock_open(&r.h);
	receive(&r, 60000, GAP);
	acks = receive(&r, 10000, GAP); /* 100 round trips */
	CHECK(acks >= 400 && acks <= 405, "%u ACKs", acks);
	CHECK(sock_observe(&r.h, "rate_segments") == 64, "it would go further");
}

static void without_guard_the_rate_is_all(void)
{
	struct run r = { .h = flow(1000) };
	aw_u32 acks;

	r.h.set[1] = (struct setting){ "guard", 0 };
	sock_open(&r.h);
	receive(&r, 80000, GAP);
	acks = receive(&r, 33 * 100, GAP);
	CHECK(acks == 100, "%u ACKs at the maximum rate, 32 [D-19]", acks);
}

/* [S1.3] */
static void window_bounds_the_rate(void)
{
	struct run r = { .h = flow(100) };
	aw_u32 acks;

	/* a third of 48 segments is 16, a quarter 12 */
	r.h.wnd_max_bytes = 48 * MSS;
	r.h.clamp = 1;
	sock_open(&r.h);
	receive(&r, 10000, GAP);
	acks = receive(&r, 1200, GAP);
	CHECK(acks >= 99 && acks <= 101, "%u ACKs: one in 12", acks);
	CHECK(sock_observe(&r.h, "rate_max_segments") == 16, "a third");
	CHECK(sock_observe(&r.h, "rate_segments") == 16, "reached");

	r = (struct run){ .h = flow(100) };
	r.h.wnd_max_bytes = 48 * MSS;
	r.h.set[1] = (struct setting){ "guard", 0 };
	sock_open(&r.h);
	receive(&r, 10000, GAP);
	acks = receive(&r, 1700, GAP);
	CHECK(acks == 100, "%u ACKs: one in 16 + 1", acks);
}

/* [S1.5] */
static void falls_back_when_slower(void)
{
	struct run r = { .h = flow(100) };
	aw_u32 acks;

	sock_open(&r.h);
	/* settled, recorded, three rises: rate 8 */
	receive(&r, 101 + 400, GAP);
	acks = receive(&r, 100, GAP + US(2)); /* slower: 4, n = 200 */
	CHECK(acks >= 10 && acks <= 12, "rate 8: %u ACKs", acks);
	acks = receive(&r, 200, GAP);
	CHECK(acks >= 39 && acks <= 41, "rate 4, held: %u ACKs", acks);
	acks = receive(&r, 200, GAP);
	CHECK(acks >= 39 && acks <= 41, "still 4: %u ACKs", acks);
	acks = receive(&r, 200, GAP);
	CHECK(acks >= 32 && acks <= 34, "5 now: %u ACKs", acks);
}

/* Each step costs 1%: too little to notice alone, but the sum is not. [D-18] */
static void small_losses_do_not_add_up(void)
{
	struct run r = { .h = flow(1000) };
	aw_u32 i, rate, highest = 1;

	sock_open(&r.h);
	receive(&r, 2001, GAP);
	for (i = 0; i < 300000; i++) {
		rate = sock_observe(&r.h, "rate_segments");
		receive(&r, 1, GAP + GAP * (rate - 1) / 100);
		highest = aw_max_u32(highest, rate);
	}
	/* rate 2 is 1% slower than stock, less than 1/64; rate 3 is not */
	CHECK(highest >= 2 && highest <= 4, "rate %u", highest);
}

/* Each rate is 5% faster than the one below, as if ACKs cost processor time;
 * one interval at rate 4 is disturbed.  The rate goes down one step; although
 * rate 2 is slower still, it does not go down further. [D-21] */
static void a_disturbance_costs_one_step(void)
{
	struct run r = { .h = flow(100) };
	static const aw_u64 gap[] = { 0, US(115), US(110), US(105), US(100) };
	aw_u32 i, rate;

	r.h.set[1] = (struct setting){ "most_segments", 4 };
	sock_open(&r.h);
	for (i = 0; i < 1000; i++)
		receive(&r, 1, gap[sock_observe(&r.h, "rate_segments") % 5]);
	CHECK(sock_observe(&r.h, "rate_segments") == 4, "climbed");
	until_rate_changes(&r, gap[4] * 3 / 2);
	CHECK(sock_observe(&r.h, "rate_segments") == 2, "fell by half");
	/* n = 200: rate 2 did not help, so 4 again */
	i = until_rate_changes(&r, gap[2]);
	CHECK(i >= 200 && i <= 202, "tried again after %u", i);
	for (i = 0; i < 1000; i++) {
		rate = sock_observe(&r.h, "rate_segments");
		CHECK(rate == 4, "back: %u", rate);
		receive(&r, 1, gap[4]);
	}
}

/* Each rate in turn becomes slower than the one below: down to stock. */
static void what_becomes_harmful_later_is_left_as_well(void)
{
	struct run r = { .h = flow(100) };
	aw_u32 i, rate, sum = 0;

	sock_open(&r.h);
	receive(&r, 1101, GAP);
	CHECK(sock_observe(&r.h, "rate_segments") == 32, "climbed");
	for (i = 0; i < 30000; i++) {
		rate = sock_observe(&r.h, "rate_segments");
		receive(&r, 1, GAP + GAP * (rate - 1) / 5);
		sum += i < 20000 ? 0 : rate;
	}
	CHECK(sum < 15000, "stock, with few attempts: rate %u on average", sum / 10000);
}

/* A sender that was cut to a few segments needs ACKs to grow; without them the
 * interval would last very long. [D-28] */
static void half_as_fast_is_stock_again_at_once(void)
{
	struct run r = { .h = flow(1000) };
	aw_u32 acks;

	sock_open(&r.h);
	receive(&r, 8001, GAP);
	CHECK(receive(&r, 500, GAP) < 30, "stretched");
	receive(&r, 300, 10 * GAP); /* the time of 2 intervals */
	acks = receive(&r, 100, 10 * GAP);
	CHECK(acks >= 49, "%u ACKs", acks);
	CHECK(sock_observe(&r.h, "rate_segments") == 1, "anew");

	r = (struct run){ .h = flow(1000) };
	r.h.set[1] = (struct setting){ "guard", 0 };
	sock_open(&r.h);
	receive(&r, 8501, GAP);
	receive(&r, 400, 10 * GAP);
	CHECK(sock_observe(&r.h, "rate_segments") > 1, "not in the algorithm of the paper");
}

static void a_slower_path_sets_a_new_best(void)
{
	struct run r = { .h = flow(100) };

	sock_open(&r.h);
	receive(&r, 201, GAP);
	/* twice as slow from now on: stock sets the new best, then the rate rises */
	receive(&r, 100, 2 * GAP);
	CHECK(receive(&r, 100, 2 * GAP) >= 49, "stock");
	receive(&r, 500, 2 * GAP);
	CHECK(receive(&r, 100, 2 * GAP) <= 20, "stretched");
}

/* [S1.1] */
static void loss_brings_stock_back(aw_u8 seq, aw_u16 flags)
{
	struct run r = { .h = flow(100) };
	aw_u32 acks;

	sock_open(&r.h);
	receive(&r, 1101, GAP);
	CHECK(receive(&r, 100, GAP) < 15, "stretched before");
	r.s = (struct step){ IN(r.s.at_ns + GAP), .seq = seq,
			     .flags = flags };
	sock_step(&r.h, &r.s);
	/* 101 to settle, 100 to record; a duplicate gives 16 quick ACKs */
	acks = receive(&r, 200, GAP);
	CHECK(acks >= 100 && acks <= 108, "seq %u: %u ACKs", seq, acks);
	acks = receive(&r, 100, GAP);
	CHECK(acks >= 49 && acks <= 51, "seq %u: %u ACKs", seq, acks);
}

static void no_rtt_no_stretching(void)
{
	struct run r = { .h = flow(100) };
	aw_u32 acks;

	r.h.rtt_us = 0;
	sock_open(&r.h);
	receive(&r, 5000, GAP);
	acks = receive(&r, 1000, GAP);
	CHECK(acks == 500, "%u ACKs", acks);
}

/* Two segments per round trip: the clamp allows what stock does anyway, and stock also
 * acknowledges pushed data that was read. [D-03] */
static void a_clamp_of_two_segments_leaves_it_to_stock(void)
{
	struct run r = { .h = flow(100) };
	struct aw_verdict v = { 0 };

	r.h.clamp = 1;
	sock_open(&r.h);
	receive(&r, 20000, US(5000));
	CHECK(sock_observe(&r.h, "rate_segments") > 2, "it would stretch");
	while (v.action != AW_WAIT) {
		r.s = (struct step){ IN(r.s.at_ns + US(5000)) };
		v = sock_step(&r.h, &r.s);
	}
	CHECK(v.deadline_ns == r.s.at_ns + MS(40), "stock's time, not %llu ns",
	      (unsigned long long)(v.deadline_ns - r.s.at_ns));
}

/* A sender with a window below the rate must not wait for a 40 ms timer. [S1.7]
 * [D-03] */
static void a_pausing_sender_waits_a_quarter_round_trip(void)
{
	struct run r = { .h = flow(100) };
	struct aw_verdict v = { 0 };
	aw_u64 last_ns;

	sock_open(&r.h);
	receive(&r, 1500, GAP);
	while (!r.h.unacked_bytes || v.action != AW_WAIT) {
		r.s = (struct step){ IN(r.s.at_ns + GAP) };
		v = sock_step(&r.h, &r.s);
	}
	/* the order's time runs from the first that waits; then the policy is asked */
	last_ns = r.s.at_ns;
	CHECK(v.deadline_ns <= last_ns + US(2500), "%llu ns later",
	      (unsigned long long)(v.deadline_ns - last_ns));
	while (v.action == AW_WAIT && v.deadline_ns <= last_ns + US(2500)) {
		r.s = (struct step){ TIMER(v.deadline_ns) };
		v = sock_step(&r.h, &r.s);
	}
	CHECK(v.reason == AW_REASON_QUIET && r.s.at_ns == last_ns + US(2500),
	      "%s, %llu ns later", aw_reason_label(v.reason),
	      (unsigned long long)(r.s.at_ns - last_ns));
}

/* Only 44 segments are in flight, in one burst per round trip, as with a fixed
 * N = 64 in the lab.  No round may have to wait for a timer. */
static void no_collapse_below_the_rate(void)
{
	struct run r = { .h = flow(100) };
	aw_u32 i, quiet, burst;

	sock_open(&r.h);
	receive(&r, 20000, GAP);
	quiet = r.reasons[AW_REASON_QUIET];
	for (i = 0; i < 50; i++) {
		burst = r.h.acks;
		receive(&r, 44, US(10));
		burst = r.h.acks - burst;
		CHECK(i < 2 || burst >= 2, "round %u: %u ACKs", i, burst);
		r.s.at_ns += MS(10) - 44 * US(10);
	}
	CHECK(r.reasons[AW_REASON_QUIET] == quiet, "no timer");
}

/* Stretching, with nothing unacknowledged. */
static void stretch(struct run *r)
{
	unsigned acks;

	*r = (struct run){ .h = flow(100) };
	sock_open(&r->h);
	receive(r, 1500, GAP);
	for (acks = r->h.acks; r->h.acks == acks;)
		receive(r, 1, GAP);
	CHECK(!r->h.unacked_bytes, "%u", r->h.unacked_bytes);
}

static struct aw_verdict next(struct run *r, struct step s)
{
	s.at_ns = r->s.at_ns += GAP;
	return sock_step(&r->h, &s);
}

/* Each of them would undo the stretching. [D-20] */
static void no_ack_by_push_or_read(void)
{
	struct aw_verdict v;
	struct run r;

	stretch(&r);
	v = next(&r, (struct step){ IN(0), .flags = AW_FLAG_PSH });
	CHECK(v.action == AW_WAIT, "PSH: %s", aw_reason_label(v.reason));
	v = next(&r, (struct step){ READ(0, MSS) });
	CHECK(v.action == AW_WAIT, "read: %s", aw_reason_label(v.reason));
	/* the window is the host's, and so is the ACK that makes it known */
	v = next(&r, (struct step){ IN(0), .flags = AW_FLAG_WND_GREW });
	CHECK(v.reason == AW_REASON_QUICKACK, "growth: %s", aw_reason_label(v.reason));
}

static void reads_obey_the_rate(void)
{
	struct aw_verdict v;
	struct run r;
	aw_u32 i;

	stretch(&r);
	/* the window cannot move, so no amount of data brings an ACK [S1.6] */
	for (i = 1; i <= 60; i++) {
		v = next(&r, (struct step){ IN(0), .unread_bytes = i * MSS });
		CHECK(v.action == AW_WAIT, "segment %u: %s", i,
		      aw_reason_label(v.reason));
	}
	v = next(&r, (struct step){ READ(0, MSS), .unread_bytes = 59 * MSS });
	CHECK(v.reason == AW_REASON_SEGMENT_COUNT, "%s",
	      aw_reason_label(v.reason));
	v = next(&r, (struct step){ READ(0, MSS), .unread_bytes = 58 * MSS });
	CHECK(v.action == AW_NOTHING, "%s", aw_reason_label(v.reason));
	/* a window that doubled is advertised */
	r.h.wnd_bytes = 1000000;
	v = next(&r, (struct step){ READ(0, 3000000) });
	CHECK(v.reason == AW_REASON_WINDOW_UPDATE, "%s",
	      aw_reason_label(v.reason));
}

static void a_long_pause_is_stock_again_for_16_acks(void)
{
	struct run r;
	aw_u32 acks;

	stretch(&r);
	r.s.at_ns += MS(1500);
	acks = receive(&r, 16, GAP);
	CHECK(acks >= 15, "%u ACKs", acks);
	/* then it settles again */
	receive(&r, 700, GAP);
	CHECK(receive(&r, 100, GAP) < 20, "stretched");
}

int main(void)
{
	PLAY("stock while settling [S1.2]", (.policy = "ratelimit", .host = "linux", RTT),
	     { IN(MS(0)), .times = 16, .every_ns = MS(1), NOW(QUICKACK) },
	     { IN(MS(16)), WAIT(MS(56)) },
	     { IN(MS(17)), NOW(SEGMENT_COUNT) },
	     { PART(MS(18), 100), .unread_bytes = 100, WAIT(MS(58)) },
	     { READ(MS(19), 100), NOW(PUSH) });
	ASK("settles after 2 segments, then intervals of 3 [S1.2] [S1.4] [S1.6] [S1.7]",
	    (.policy = "ratelimit", .set = { { "settle_segments", 2 },
	      { "interval_segments", 3 }, { "guard", 0 } }), (RTT),
	    { QUESTION(SENT, MS(1)), ORDER(0, 0) },
	    { QUESTION(SENT, MS(2)), .seen.new_segments = 2, ORDER(0, 0) },
	    { QUESTION(SENT, MS(3)), .seen.new_segments = 1, ORDER(0, 0) },
	    /* the first interval only records: 3 ms */
	    { QUESTION(SENT, MS(6)), .seen.new_segments = 3, ORDER(0, 0) },
	    { QUESTION(LIMIT, MS(9)), .seen.new_segments = 3, ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(SENT, MS(9)), ORDER(2 * MSS + 1, US(2500)) },
	    { QUESTION(TIMEOUT, MS(11)), .seen.new_segments = 1,
	      .seen.last_ns = US(9500), ORDER(2 * MSS + 1, US(1000)) },
	    { QUESTION(TIMEOUT, MS(12)), .seen.last_ns = US(9500), ANSWER_NOW(QUIET) },
	    { QUESTION(SENT, MS(12)), .seen.last_ns = US(9500),
	      ORDER(2 * MSS + 1, US(2500)) },
	    /* six segments in the time of twice three: as fast, so three may wait */
	    { QUESTION(LIMIT, MS(15)), .seen.new_segments = 5, ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(SENT, MS(15)), ORDER(3 * MSS + 1, US(2500)) },
	    /* a third of the window: 7 of 21 segments */
	    { QUESTION(SENT, MS(18)), .seen.new_segments = 3, .seen.wnd_bytes = 21 * MSS,
	      ORDER(4 * MSS + 1, US(2500)) },
	    { QUESTION(TIMEOUT, MS(19)), .seen.flags = AW_SEEN_HOLE,
	      ANSWER_NOW(DELAY_TIMER) },
	    { QUESTION(SENT, MS(19)), ORDER(0, 0) });
	rises_by_one_each_interval();
	doubles_each_interval_until_slower();
	intervals_may_be_shorter_than_the_start();
	four_acks_per_round_trip_are_left();
	without_guard_the_rate_is_all();
	window_bounds_the_rate();
	falls_back_when_slower();
	small_losses_do_not_add_up();
	a_disturbance_costs_one_step();
	what_becomes_harmful_later_is_left_as_well();
	half_as_fast_is_stock_again_at_once();
	a_slower_path_sets_a_new_best();
	loss_brings_stock_back(AW_SEQ_HOLE, AW_FLAG_HOLE_OPEN);
	loss_brings_stock_back(AW_SEQ_FILLS, 0);
	loss_brings_stock_back(AW_SEQ_DUPLICATE, 0);
	no_rtt_no_stretching();
	a_pausing_sender_waits_a_quarter_round_trip();
	no_collapse_below_the_rate();
	a_clamp_of_two_segments_leaves_it_to_stock();
	no_ack_by_push_or_read();
	reads_obey_the_rate();
	a_long_pause_is_stock_again_for_16_acks();
	return test_end();
}
