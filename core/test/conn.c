/* SPDX-License-Identifier: MIT */
/* aw_decide(): events in, verdicts out; questions and answers, even nonsense. */
#include <string.h>
#include <ackwise/ackwise.h>
#include "test.h"

#define MS(n) ((n)*AW_NS_PER_MS)

/* A host that answers what the test says. */
static struct aw_verdict verdict;
static unsigned told, reported;

static struct aw_verdict obey(struct aw_conn *conn, const struct aw_event *e)
{
	(void)conn, (void)e;
	told++;
	return verdict;
}

static void on_ack_sent(struct aw_conn *conn, const struct aw_event *e)
{
	(void)conn, (void)e;
	reported++;
}

static const struct aw_host obedient = {
	.name = "test",
	.wnd_use = AW_WND_USE_ALWAYS,
	.on_data = obey,
	.on_deadline = obey,
	.on_app_read = obey,
	.on_ack_sent = on_ack_sent,
};

/* A policy that answers what the test says. */
static struct aw_order answer;
static unsigned asked;
static struct aw_seen seen;

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *s)
{
	(void)state, (void)p;
	asked++;
	seen = *s;
	return answer;
}

static const struct aw_policy willing = {
	.name = "test",
	.summary = "answers what the test says",
	.source = "none",
	.reads_arrivals = 1,
	.order = order,
};

static struct aw_conn conn;

static void open_on(const struct aw_host *host, const struct aw_policy *policy)
{
	static const struct aw_params params;
	struct aw_event e = { 0 };

	aw_conn_init(&conn, host, &params, policy, &params, &e);
	asked = told = reported = 0;
}

/* The host alone. */
static void open_conn(void)
{
	open_on(&obedient, NULL);
}

/* The policy on host rfc, with its first order. */
static void open_order(struct aw_order first)
{
	open_on(aw_host_find("rfc"), &willing);
	conn.unbounded = 1;
	answer = first;
}

static struct aw_event event(aw_u64 now_ns, aw_u8 kind)
{
	struct aw_event e = { .now_ns = now_ns,
			      .kind = kind,
			      .segments = 1,
			      .rcv_mss_bytes = 1460,
			      .wnd_bytes = 1 << 20,
			      .wnd_next_bytes = 1 << 20,
			      .wnd_max_bytes = 1 << 20 };

	return e;
}

static struct aw_verdict at(aw_u64 now_ns, aw_u8 kind)
{
	struct aw_event e = event(now_ns, kind);

	return aw_decide(&conn, &e);
}

static void sent_on_data(aw_u64 now_ns)
{
	struct aw_event e = event(now_ns, AW_EVENT_ACK_SENT);

	e.flags |= AW_FLAG_PIGGYBACK;
	aw_decide(&conn, &e);
}

static struct aw_verdict data(aw_u64 now_ns)
{
	return at(now_ns, AW_EVENT_DATA);
}

#define IS_WAIT(v, until, duty)                                 \
	((v).action == AW_WAIT && (v).deadline_ns == (until) && \
	 (v).reason == AW_REASON_WAITING && (v).by_duty == (duty))
#define IS_NOW(v, why, duty)                                   \
	((v).action == AW_SEND_NOW && (v).by_duty == (duty) && \
	 (v).reason == AW_REASON_##why && (v).deadline_ns == AW_NEVER_NS)

static struct aw_verdict bytes(aw_u64 now_ns, aw_u32 unacked_bytes)
{
	struct aw_event e = event(now_ns, AW_EVENT_DATA);

	e.bytes = 1460;
	e.unacked_bytes = unacked_bytes;
	return aw_decide(&conn, &e);
}

static struct aw_verdict timer(aw_u64 now_ns, aw_u32 unacked_bytes)
{
	struct aw_event e = event(now_ns, AW_EVENT_DEADLINE);

	e.unacked_bytes = unacked_bytes;
	return aw_decide(&conn, &e);
}

static void answers_are_understood(void)
{
	struct aw_verdict v;

	open_order(aw_order(2000, MS(40)));
	v = bytes(MS(10), 1460);
	CHECK(IS_WAIT(v, MS(50), 0) && asked == 1, "the first order");
	answer = aw_now(AW_REASON_WAITING);
	v = bytes(MS(11), 2920);
	CHECK(IS_NOW(v, UNSTATED, 0) && asked == 2, "now, for no reason");
	at(MS(11), AW_EVENT_ACK_SENT);
	CHECK(!conn.order.bytes && !conn.order.delay_ns, "SENT: now is no order");
	v = bytes(MS(12), 1460);
	CHECK(IS_WAIT(v, MS(212), 0), "so the host's own holds");
	v = bytes(MS(13), 2920);
	CHECK(IS_NOW(v, SECOND_SEGMENT, 0) && asked == 3,
	      "and the policy is not asked");

	open_order(aw_order(2000, MS(40)));
	bytes(MS(10), 1460);
	answer = aw_now(AW_REASONS);
	v = bytes(MS(11), 2920);
	CHECK(IS_NOW(v, UNSTATED, 0), "now, for an unknown reason");

	open_order(aw_order(2000, 1));
	v = bytes(MS(10), 1460);
	CHECK(IS_WAIT(v, MS(10) + 50000, 0), "50 us at least");
	v = timer(MS(10) + 50000, 1460);
	CHECK(IS_WAIT(v, MS(10) + 100000, 0) && asked == 2, "and again");

	open_order(aw_order(2000, MS(499.97)));
	bytes(MS(10), 1460);
	v = timer(MS(509.97), 1460);
	CHECK(IS_NOW(v, MAX_DELAY, 1) && asked == 2,
	      "30 us are left: not worth a timer [D-17]");

	/* an order without a time, while the time of another runs */
	open_order(aw_order(2000, MS(40)));
	bytes(MS(10), 1460);
	answer = aw_order(9000, 0);
	v = timer(MS(50), 1460);
	CHECK(IS_WAIT(v, MS(210), 0), "the host's own time, from the first");
	v = timer(MS(210), 1460);
	CHECK(IS_NOW(v, DELAY_TIMER, 0) && asked == 2,
	      "which is the host's own matter");

	/* the bytes of an order, and those of the next */
	open_order(aw_order(2000, MS(40)));
	bytes(MS(10), 1460);
	answer = aw_order(5000, MS(20));
	v = bytes(MS(11), 2920);
	CHECK(IS_WAIT(v, MS(31), 0) && asked == 2, "its time runs from the answer");
	v = bytes(MS(12), 4999);
	CHECK(IS_WAIT(v, MS(31), 0) && asked == 2, "a byte less");
	answer = aw_now(AW_REASON_AREA);
	v = bytes(MS(13), 5000);
	CHECK(IS_NOW(v, AREA, 0) && asked == 3, "reached");
	v = bytes(MS(14), 6460);
	CHECK(IS_NOW(v, AREA, 0) && asked == 3, "no question while an ACK is promised");
}

static void a_policy_sees_what_came(void)
{
	struct aw_event e;

	open_order(aw_order(5000, MS(40)));
	e = event(MS(10), AW_EVENT_DATA);
	e.bytes = 1460;
	e.segments = 1;
	e.unacked_bytes = 1460;
	e.rtt_us = 7000;
	e.rto_us = 300000;
	e.random = 99;
	aw_decide(&conn, &e);
	CHECK(seen.why == AW_WHY_SENT && seen.first_ns == AW_NEVER_NS &&
		      !seen.last_ns && !seen.owed_bytes && !seen.new_bytes &&
		      !seen.new_segments && !seen.new_arrivals && !seen.flags,
	      "at first, nothing has come");
	CHECK(seen.now_ns == MS(10) && seen.rtt_us == 7000 && seen.rto_us == 300000 &&
		      seen.mss_bytes == 1460 && seen.wnd_bytes == 1 << 20 &&
		      seen.random == 99 && seen.most.bytes == ~0u &&
		      seen.most.delay_ns == AW_DELAY_MAX_NS,
	      "but all else is known");
	e.now_ns = MS(12);
	e.bytes = 3540;
	e.segments = 3;
	e.unacked_bytes = 5000;
	e.flags = AW_FLAG_PSH;
	e.unread_bytes = 77;
	answer = aw_now(AW_REASON_AREA);
	aw_decide(&conn, &e);
	CHECK(seen.why == AW_WHY_LIMIT && seen.first_ns == MS(10) &&
		      seen.last_ns == MS(12) && seen.owed_bytes == 5000 &&
		      seen.new_bytes == 5000 && seen.new_segments == 4 &&
		      seen.new_arrivals == 2 && seen.gap_ns == MS(2) &&
		      seen.flags == AW_SEEN_PUSH && seen.unread_bytes == 77,
	      "what came since");
	/* more comes before the ACK leaves */
	e.now_ns = MS(15);
	e.bytes = 1460;
	e.segments = 1;
	e.unacked_bytes = 6460;
	e.flags = AW_FLAG_CE_CHANGE | AW_FLAG_HOLE_OPEN;
	aw_decide(&conn, &e);
	answer = aw_order(5000, MS(40));
	at(MS(16), AW_EVENT_ACK_SENT);
	CHECK(asked == 3 && seen.why == AW_WHY_SENT && seen.owed_bytes == 6460 &&
		      seen.first_ns == MS(10) && seen.new_bytes == 1460 &&
		      seen.new_segments == 1 && seen.gap_ns == MS(3) &&
		      seen.reason == AW_REASON_AREA,
	      "what the ACK covered");
	CHECK(seen.flags == (AW_SEEN_CE | AW_SEEN_HOLE | AW_SEEN_BY_ORDER), "%#x",
	      seen.flags);
	at(MS(17), AW_EVENT_ACK_SENT);
	sent_on_data(MS(17));
	CHECK(asked == 3, "an ACK of nothing is no question");

	/* the hole is there until data says that it is not */
	e.now_ns = MS(20);
	e.unacked_bytes = 1460;
	e.flags = AW_FLAG_HOLE_OPEN;
	aw_decide(&conn, &e);
	sent_on_data(MS(21));
	CHECK(seen.flags == (AW_SEEN_HOLE | AW_SEEN_ON_DATA) &&
		      seen.reason == AW_REASON_PIGGYBACK,
	      "%#x", seen.flags);
	e.now_ns = MS(22);
	e.flags = 0;
	e.seq = AW_SEQ_DUPLICATE;
	aw_decide(&conn, &e);
	at(MS(22), AW_EVENT_ACK_SENT);
	CHECK(seen.flags == AW_SEEN_DUPLICATE && seen.reason == AW_REASON_DUPLICATE &&
		      !seen.new_bytes && seen.new_segments == 1,
	      "a duplicate, and no hole: %#x", seen.flags);

	/* an ACK that the stack sent while data waited */
	bytes(MS(30), 1460);
	at(MS(31), AW_EVENT_ACK_SENT);
	CHECK(seen.reason == AW_REASON_STACK && seen.owed_bytes == 1460, "%u",
	      seen.reason);
}

static void reads_are_questions_if_asked_for(void)
{
	struct aw_policy reader = willing;
	struct aw_verdict v;

	open_order(aw_order(5000, MS(40)));
	bytes(MS(10), 1460);
	v = at(MS(11), AW_EVENT_APP_READ);
	CHECK(IS_WAIT(v, MS(50), 0) && asked == 1, "no");
	reader.asked_on_read = 1;
	open_on(aw_host_find("rfc"), &reader);
	v = at(MS(9), AW_EVENT_APP_READ);
	CHECK(v.action == AW_NOTHING && !asked, "nothing waits");
	bytes(MS(10), 1460);
	answer = aw_order(5000, MS(20));
	v = at(MS(11), AW_EVENT_APP_READ);
	CHECK(IS_WAIT(v, MS(31), 0) && seen.why == AW_WHY_READ, "yes");
	answer = aw_now(AW_REASON_PUSH);
	v = at(MS(12), AW_EVENT_APP_READ);
	CHECK(IS_NOW(v, PUSH, 0), "and it may send");
	at(MS(12), AW_EVENT_ACK_SENT);
	CHECK(seen.flags & AW_SEEN_BY_ORDER, "%#x", seen.flags);
}

static void follows_the_latest_answer(void)
{
	struct aw_verdict v;

	open_conn();
	verdict = aw_wait_until(MS(30));
	data(MS(10));
	verdict = aw_wait_until(MS(50));
	v = data(MS(11));
	CHECK(IS_WAIT(v, MS(50), 0), "a later one replaces an earlier one");
	CHECK(conn.owed_since_ns == MS(10), "owed since the first");
	verdict = aw_wait_until(MS(900));
	v = data(MS(12));
	CHECK(IS_WAIT(v, MS(510), 1), "500 ms count from the first");
	v = at(MS(20), AW_EVENT_ACK_SENT);
	CHECK(v.action == AW_NOTHING && v.reason == AW_REASON_NONE, "sent");
	CHECK(conn.owed_since_ns == AW_NEVER_NS, "nothing owed");
	v = data(MS(100));
	CHECK(IS_WAIT(v, MS(600), 1), "a new first");
}

/* "MUST NOT generate more than one ACK for every incoming segment"
 * [RFC 5681, 4.2 (c)] */
static void a_promise_is_kept(void)
{
	struct aw_verdict v;

	open_conn();
	verdict = aw_send_now(AW_REASON_AREA);
	data(MS(10));
	told = reported = 0;
	verdict = aw_wait_until(MS(30));
	v = data(MS(11));
	CHECK(IS_NOW(v, AREA, 0), "after data");
	CHECK(told == 1, "but the host saw it");
	v = at(MS(12), AW_EVENT_APP_READ);
	CHECK(IS_NOW(v, AREA, 0), "after a read");
	v = at(MS(13), AW_EVENT_DEADLINE);
	CHECK(IS_NOW(v, AREA, 0), "after a timer");
	v = at(MS(14), AW_EVENT_KINDS);
	CHECK(IS_NOW(v, AREA, 0), "after an unknown event");
	v = at(MS(15), AW_EVENT_ACK_SENT);
	CHECK(v.action == AW_NOTHING && reported == 1, "until it left");
}

/* A sender repeats the same ACK on every segment. */
static void an_ack_that_repeats_another_is_no_news(void)
{
	open_conn();
	verdict = aw_send_now(AW_REASON_AREA);
	reported = 0;
	at(MS(9), AW_EVENT_ACK_SENT);
	data(MS(10));
	at(MS(10), AW_EVENT_ACK_SENT);
	CHECK(reported == 2, "%u", reported);
	at(MS(11), AW_EVENT_ACK_SENT);
	at(MS(12), AW_EVENT_ACK_SENT);
	CHECK(reported == 2 && !aw_conn_ack_is_news(&conn, false), "%u", reported);
	sent_on_data(MS(12));
	CHECK(reported == 3, "it may be the reply, %u", reported);
	sent_on_data(MS(12));
	at(MS(12), AW_EVENT_ACK_SENT);
	CHECK(reported == 3 && !aw_conn_ack_is_news(&conn, true), "%u", reported);
	verdict = aw_nothing();
	at(MS(13), AW_EVENT_APP_READ);
	at(MS(14), AW_EVENT_ACK_SENT);
	CHECK(reported == 4, "the application has read, %u", reported);
}

static void a_timer_asks_only_when_it_is_due(void)
{
	struct aw_verdict v;

	open_conn();
	told = 0;
	v = at(MS(5), AW_EVENT_DEADLINE);
	CHECK(v.action == AW_NOTHING && !told, "no ACK is owed");
	verdict = aw_wait_until(MS(30));
	data(MS(10));
	v = at(MS(29), AW_EVENT_DEADLINE);
	CHECK(IS_WAIT(v, MS(30), 0) && told == 1, "early");
	verdict = aw_wait_until(MS(40));
	v = at(MS(30), AW_EVENT_DEADLINE);
	CHECK(IS_WAIT(v, MS(40), 0) && told == 2, "due, but waits on");
	verdict = aw_send_now(AW_REASON_QUIET);
	v = at(MS(45), AW_EVENT_DEADLINE);
	CHECK(IS_NOW(v, QUIET, 0) && told == 3, "late");

	open_conn();
	verdict = aw_wait_until(MS(900));
	data(MS(10));
	told = 0;
	v = at(MS(510), AW_EVENT_DEADLINE);
	CHECK(IS_NOW(v, MAX_DELAY, 1) && !told, "a duty's deadline is not the host's");
}

static void reads(void)
{
	struct aw_verdict v;

	open_conn();
	verdict = aw_wait_until(MS(30));
	v = at(MS(1), AW_EVENT_APP_READ);
	CHECK(v.action == AW_NOTHING, "no ACK is owed: nothing to wait for");
	verdict = aw_send_now(AW_REASON_WINDOW_UPDATE);
	v = at(MS(2), AW_EVENT_APP_READ);
	CHECK(IS_NOW(v, WINDOW_UPDATE, 0), "but a window update may leave");
	verdict = aw_wait_until(MS(30));
	v = data(MS(3));
	CHECK(IS_NOW(v, WINDOW_UPDATE, 0), "data before it left");
	at(MS(4), AW_EVENT_ACK_SENT);

	/* the host has nothing to add, after the deadline: the timer is about to fire */
	verdict = aw_wait_until(MS(30));
	data(MS(10));
	v = at(MS(31), AW_EVENT_APP_READ);
	CHECK(IS_WAIT(v, MS(30), 0), "pending is pending");
}

/* Window left and window on offer: is the host called? */
static void reads_that_may_be_worth_an_update(void)
{
	static const struct {
		aw_u32 left, next, max, bytes;
		bool owed, told;
	} rows[] = {
		{ 500000, 500000, 1000000, 1, false, true }, /* half left */
		{ 500001, 500001, 1000000, 1, false, false },
		{ 900000, 902920, 1000000, 1, false, true }, /* by two segments */
		{ 900000, 902919, 1000000, 1, false, false },
		{ 90000, 91000, 100000, 1, false, true }, /* by 1% */
		{ 90000, 90999, 100000, 1, false, false },
		{ 900000, 900000, 1000000, 0, false, true }, /* TCP_QUICKACK */
		{ 900000, 900000, 1000000, 1, true, true },
	};
	struct aw_verdict v;
	struct aw_event e;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		open_conn();
		verdict = aw_wait_until(MS(30));
		if (rows[i].owed)
			data(MS(1));
		verdict = aw_send_now(AW_REASON_WINDOW_UPDATE);
		e = event(MS(2), AW_EVENT_APP_READ);
		e.bytes = rows[i].bytes;
		e.wnd_bytes = rows[i].left;
		e.wnd_next_bytes = rows[i].next;
		e.wnd_max_bytes = rows[i].max;
		v = aw_decide(&conn, &e);
		CHECK((v.action == AW_SEND_NOW) == rows[i].told, "row %zu", i);
	}
}

/* A segment that completes the order, and its ACK. */
static void segment(aw_u64 now_ns)
{
	struct aw_event e = event(now_ns, AW_EVENT_DATA);

	e.bytes = 1460;
	e.unacked_bytes = 1460;
	e.rtt_us = 10000;
	e.rto_us = 200000;
	aw_decide(&conn, &e);
	e.kind = AW_EVENT_ACK_SENT;
	aw_decide(&conn, &e);
}

/* A segment each 0.5 ms, so 21 from first to last of a round of 10 ms. [D-26] */
static void the_flight_is_what_comes_in_a_round_trip(void)
{
	struct aw_order every = aw_order(1, 0);
	aw_u64 now;

	open_order(every);
	conn.unbounded = 0;
	segment(MS(100));
	CHECK(!seen.flight_bytes && seen.most.bytes == 2 * 1460,
	      "not known yet: two may wait");
	for (now = 1; now <= 20; now++)
		segment(MS(100) + now * MS(0.5));
	CHECK(seen.flight_bytes == 21 * 1460 && seen.most.bytes == 21 * 1460 / 4,
	      "%u bytes", seen.flight_bytes);
	/* the time that the round took longer than an RTT does not count */
	segment(MS(210));
	CHECK(seen.flight_bytes == 146, "one in 100 ms: %u", seen.flight_bytes);
	segment(MS(419.9));
	CHECK(seen.flight_bytes == 69, "short of an RTO, %u", seen.flight_bytes);
	segment(MS(630));
	CHECK(!seen.flight_bytes, "after an RTO %u", seen.flight_bytes);
}

/* An ACK that the clamp sends is no reason to count its bytes again. */
static void the_flight_counts_each_byte_once(void)
{
	struct aw_event e = event(MS(100), AW_EVENT_DATA);
	struct aw_verdict v = aw_nothing();
	unsigned i;

	open_order(aw_order(1, MS(400)));
	conn.unbounded = 0;
	e.bytes = 1460;
	e.rtt_us = 10000;
	for (i = 0; i < 200; i++) {
		e.now_ns = MS(100) + i * MS(1);
		e.unacked_bytes += e.bytes;
		v = aw_decide(&conn, &e);
		if (v.action == AW_SEND_NOW) {
			CHECK(IS_NOW(v, FLIGHT, 1) || IS_NOW(v, MAX_DELAY, 1), "%u", i);
			e.unacked_bytes = 0;
			e.kind = AW_EVENT_ACK_SENT;
			aw_decide(&conn, &e);
			e.kind = AW_EVENT_DATA;
		}
	}
	/* ten segments come in a round trip; a quarter is 2.5, so each third is it */
	CHECK(conn.flight.bytes == 14600, "%u", conn.flight.bytes);
}

static struct aw_event above(aw_u64 now_ns)
{
	struct aw_event e = event(now_ns, AW_EVENT_DATA);

	e.seq = AW_SEQ_HOLE;
	e.bytes = 1460;
	e.rtt_us = 100000;
	e.sack_delay_us = 1000;
	e.flags = AW_FLAG_HOLE_OPEN;
	return e;
}

static struct aw_verdict sent_above(struct aw_event e)
{
	struct aw_verdict v = aw_decide(&conn, &e);

	if (v.action == AW_SEND_NOW)
		at(e.now_ns, AW_EVENT_ACK_SENT);
	return v;
}

/* Three duplicate ACKs are out, at 10 to 12 ms. */
static void three_above(void)
{
	struct aw_verdict v;
	aw_u64 now;

	open_conn();
	verdict = aw_wait_until(MS(900));
	for (now = 10; now < 13; now++) {
		v = sent_above(above(MS(now)));
		CHECK(IS_NOW(v, OUT_OF_ORDER, 1), "at %u ms", (unsigned)now);
	}
}

/* [RFC 5681, 3.2] [D-31] */
static void segments_above_a_hole_share_acks_after_three(void)
{
	struct aw_event e;
	struct aw_verdict v;
	unsigned i;

	three_above();
	v = sent_above(above(MS(20)));
	CHECK(IS_WAIT(v, MS(21), 1), "the fourth waits for 1 ms");
	v = sent_above(above(MS(20.4)));
	CHECK(IS_WAIT(v, MS(21), 1), "the fifth no longer than the fourth");
	v = at(MS(20.6), AW_EVENT_APP_READ);
	CHECK(IS_WAIT(v, MS(21), 1), "whatever the host says meanwhile");
	v = at(MS(20.8), AW_EVENT_DEADLINE);
	CHECK(IS_WAIT(v, MS(21), 1), "an early timer");
	v = at(MS(21), AW_EVENT_DEADLINE);
	CHECK(IS_NOW(v, OUT_OF_ORDER, 1), "in time");
	at(MS(21), AW_EVENT_ACK_SENT);
	v = sent_above(above(MS(30)));
	CHECK(IS_WAIT(v, MS(31), 1), "the next one waits anew");
	v = sent_above(above(MS(31.1)));
	CHECK(IS_WAIT(v, MS(31.1) + 1, 1), "the timer is late, and due");
	v = at(MS(31.2), AW_EVENT_DEADLINE);
	CHECK(IS_NOW(v, OUT_OF_ORDER, 1), "it fires");
	at(MS(31.2), AW_EVENT_ACK_SENT);

	/* 5% of the RTT */
	e = above(MS(40));
	e.rtt_us = 10000;
	v = sent_above(e);
	CHECK(IS_WAIT(v, MS(40.5), 1), "a short RTT");
	e = above(MS(40.1));
	e.sack_delay_us = 0;
	v = sent_above(e);
	CHECK(IS_NOW(v, OUT_OF_ORDER, 1), "SACK has no room for more");
	v = sent_above(above(MS(41)));
	CHECK(IS_WAIT(v, MS(42), 1), "then again");
	e = above(MS(41.5));
	e.seq = AW_SEQ_FILLS;
	v = sent_above(e);
	CHECK(IS_NOW(v, HOLE_FILLED, 1), "the hole is filled in part");
	for (i = 0; i < 3; i++)
		v = sent_above(above(MS(50)));
	CHECK(IS_NOW(v, OUT_OF_ORDER, 1), "then there are three again");
	v = sent_above(above(MS(50)));
	CHECK(IS_WAIT(v, MS(51), 1), "and no more");

	/* a host with a shorter deadline is called */
	three_above();
	verdict = aw_wait_until(MS(20.3));
	v = sent_above(above(MS(20)));
	CHECK(IS_WAIT(v, MS(20.3), 0), "sooner than the duty");
	verdict = aw_wait_until(MS(300));
	v = at(MS(20.1), AW_EVENT_APP_READ);
	CHECK(IS_WAIT(v, MS(20.3), 1), "and it cannot change its mind");
	v = at(MS(20.3), AW_EVENT_DEADLINE);
	CHECK(IS_NOW(v, OUT_OF_ORDER, 1), "then");
	at(MS(20.3), AW_EVENT_ACK_SENT);
	verdict = aw_send_now(AW_REASON_EVERY_SEGMENT);
	v = sent_above(above(MS(20.4)));
	CHECK(IS_NOW(v, EVERY_SEGMENT, 0), "an ACK for each");
}

static void a_host_may_want_each_ack_above_a_hole(void)
{
	struct aw_event e = above(MS(20));
	struct aw_verdict v;
	unsigned i;

	three_above();
	e.sack_delay_us = 0;
	v = sent_above(e);
	CHECK(IS_NOW(v, OUT_OF_ORDER, 1), "the peer knows no SACK");
	e = above(MS(20));
	e.rtt_us = 0;
	v = sent_above(e);
	CHECK(IS_NOW(v, OUT_OF_ORDER, 1), "the RTT is not known");
	for (i = 0; i < 300; i++) {
		v = sent_above(above(MS(20)));
		CHECK(IS_WAIT(v, MS(21), 1), "number %u", i);
	}
	CHECK(conn.compress.waiting == 255, "%u", conn.compress.waiting);
}

static void state_starts_at_zero(void)
{
	unsigned i, sum = 0;

	memset(&conn, 0xa5, sizeof(conn));
	open_conn();
	for (i = 0; i < AW_STATE_MAX_BYTES / 8; i++)
		sum += conn.state[i] != 0;
	CHECK(!sum, "%u words", sum);
	CHECK(conn.pending.action == AW_NOTHING, "nothing pending");
}

int main(void)
{
	answers_are_understood();
	a_policy_sees_what_came();
	reads_are_questions_if_asked_for();
	follows_the_latest_answer();
	a_promise_is_kept();
	an_ack_that_repeats_another_is_no_news();
	a_timer_asks_only_when_it_is_due();
	reads();
	reads_that_may_be_worth_an_update();
	the_flight_is_what_comes_in_a_round_trip();
	the_flight_counts_each_byte_once();
	segments_above_a_hole_share_acks_after_three();
	a_host_may_want_each_ack_above_a_hole();
	state_starts_at_zero();
	return test_end();
}
