/* SPDX-License-Identifier: MIT */
/* aw_decide(): events in, verdicts out, even with a policy that answers nonsense. */
#include <string.h>
#include <ackwise/ackwise.h>
#include "test.h"

#define MS(n) ((n)*AW_NS_PER_MS)

static struct aw_verdict answer;
static unsigned asked, reported;

static struct aw_verdict on_data(void *state, const struct aw_params *p,
				 const struct aw_event *e)
{
	(void)state, (void)p, (void)e;
	asked++;
	return answer;
}

static struct aw_verdict on_app_read(void *state, const struct aw_params *p,
				     const struct aw_event *e,
				     struct aw_verdict pending)
{
	(void)pending;
	return on_data(state, p, e);
}

static void on_ack_sent(void *state, const struct aw_params *p,
			const struct aw_event *e)
{
	(void)state, (void)p, (void)e;
	reported++;
}

static const struct aw_policy obedient = {
	.name = "test",
	.summary = "answers what the test says",
	.source = "none",
	.on_data = on_data,
	.on_deadline = on_data,
	.on_app_read = on_app_read,
	.on_ack_sent = on_ack_sent,
};

static const struct aw_policy smallest = {
	.name = "test",
	.summary = "the required members",
	.source = "none",
	.on_data = on_data,
};

static struct aw_conn conn;

static void open_conn(const struct aw_policy *policy, u32 rails)
{
	static const struct aw_params params;
	struct aw_event e = { 0 };

	aw_conn_init(&conn, policy, &params, rails, &e);
}

static struct aw_event event(u64 now_ns, u8 kind)
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

static struct aw_verdict at(u64 now_ns, u8 kind)
{
	struct aw_event e = event(now_ns, kind);

	return aw_decide(&conn, &e);
}

static void sent_on_data(u64 now_ns)
{
	struct aw_event e = event(now_ns, AW_EVENT_ACK_SENT);

	e.flags |= AW_FLAG_PIGGYBACK;
	aw_decide(&conn, &e);
}

static struct aw_verdict data(u64 now_ns)
{
	return at(now_ns, AW_EVENT_DATA);
}

#define IS_WAIT(v, until, rail)                                 \
	((v).action == AW_WAIT && (v).deadline_ns == (until) && \
	 (v).reason == AW_REASON_WAITING && (v).by_rail == (rail))
#define IS_NOW(v, why, rail)                                   \
	((v).action == AW_SEND_NOW && (v).by_rail == (rail) && \
	 (v).reason == AW_REASON_##why && (v).deadline_ns == AW_NEVER_NS)

/* [RFC 9293, 3.8.6.3] */
static void repairs_what_a_policy_may_not_say(void)
{
	struct aw_verdict v;

	open_conn(&obedient, AW_RAILS_DEFAULT);
	answer = aw_nothing();
	v = data(MS(10));
	CHECK(IS_WAIT(v, MS(510), 1), "nothing, while an ACK is owed");
	v = at(MS(510), AW_EVENT_DEADLINE);
	CHECK(IS_NOW(v, MAX_DELAY, 1), "and its deadline");

	open_conn(&obedient, 0);
	answer.action = 77;
	v = data(MS(10));
	CHECK(IS_WAIT(v, MS(510), 1), "an unknown action, without any rail");
	v = data(MS(600));
	CHECK(IS_NOW(v, MAX_DELAY, 1), "and after 500 ms");

	open_conn(&obedient, AW_RAILS_DEFAULT);
	answer = aw_wait_until(MS(9));
	v = data(MS(10));
	CHECK(IS_NOW(v, DELAY_TIMER, 0), "a deadline in the past");

	open_conn(&obedient, AW_RAILS_DEFAULT);
	answer = aw_wait_until(MS(10));
	v = data(MS(10));
	CHECK(IS_NOW(v, DELAY_TIMER, 0), "a deadline now");

	open_conn(&obedient, AW_RAILS_DEFAULT);
	answer = aw_wait_until(MS(20));
	answer.reason = 200;
	answer.by_rail = 9;
	v = data(MS(10));
	CHECK(IS_WAIT(v, MS(20), 0), "a wait with a reason");

	open_conn(&obedient, AW_RAILS_DEFAULT);
	answer = aw_send_now(AW_REASON_WAITING);
	answer.deadline_ns = 5;
	answer.by_rail = 1;
	v = data(MS(10));
	CHECK(IS_NOW(v, UNSTATED, 0), "now, for no reason");
	answer.reason = AW_REASONS;
	open_conn(&obedient, AW_RAILS_DEFAULT);
	v = data(MS(10));
	CHECK(IS_NOW(v, UNSTATED, 0), "now, for an unknown reason");

	open_conn(&obedient, 0);
	answer = aw_wait_until(AW_NEVER_NS);
	v = data(MS(10));
	CHECK(IS_WAIT(v, AW_NEVER_NS, 0), "forever, with MAX_DELAY off");
}

static void follows_the_latest_answer(void)
{
	struct aw_verdict v;

	open_conn(&obedient, AW_RAILS_DEFAULT);
	answer = aw_wait_until(MS(30));
	data(MS(10));
	answer = aw_wait_until(MS(50));
	v = data(MS(11));
	CHECK(IS_WAIT(v, MS(50), 0), "a later one replaces an earlier one");
	CHECK(conn.owed_since_ns == MS(10), "owed since the first");
	answer = aw_wait_until(MS(900));
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

	open_conn(&obedient, AW_RAILS_DEFAULT);
	answer = aw_send_now(AW_REASON_AREA);
	data(MS(10));
	asked = reported = 0;
	answer = aw_wait_until(MS(30));
	v = data(MS(11));
	CHECK(IS_NOW(v, AREA, 0), "after data");
	CHECK(asked == 1, "but the policy saw it");
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
	open_conn(&obedient, AW_RAILS_DEFAULT);
	answer = aw_send_now(AW_REASON_AREA);
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
	answer = aw_nothing();
	at(MS(13), AW_EVENT_APP_READ);
	at(MS(14), AW_EVENT_ACK_SENT);
	CHECK(reported == 4, "the application has read, %u", reported);
}

static void a_timer_asks_only_when_it_is_due(void)
{
	struct aw_verdict v;

	open_conn(&obedient, AW_RAILS_DEFAULT);
	asked = 0;
	v = at(MS(5), AW_EVENT_DEADLINE);
	CHECK(v.action == AW_NOTHING && !asked, "no ACK is owed");
	answer = aw_wait_until(MS(30));
	data(MS(10));
	v = at(MS(29), AW_EVENT_DEADLINE);
	CHECK(IS_WAIT(v, MS(30), 0) && asked == 1, "early");
	answer = aw_wait_until(MS(40));
	v = at(MS(30), AW_EVENT_DEADLINE);
	CHECK(IS_WAIT(v, MS(40), 0) && asked == 2, "due, but waits on");
	answer = aw_send_now(AW_REASON_QUIET);
	v = at(MS(45), AW_EVENT_DEADLINE);
	CHECK(IS_NOW(v, QUIET, 0) && asked == 3, "late");

	open_conn(&obedient, AW_RAILS_DEFAULT);
	answer = aw_wait_until(MS(900));
	data(MS(10));
	asked = 0;
	v = at(MS(510), AW_EVENT_DEADLINE);
	CHECK(IS_NOW(v, MAX_DELAY, 1) && !asked,
	      "a rail's deadline is not the policy's");
}

static void reads(void)
{
	struct aw_verdict v;

	open_conn(&obedient, AW_RAILS_DEFAULT);
	answer = aw_wait_until(MS(30));
	v = at(MS(1), AW_EVENT_APP_READ);
	CHECK(v.action == AW_NOTHING, "no ACK is owed: nothing to wait for");
	answer = aw_send_now(AW_REASON_WINDOW_UPDATE);
	v = at(MS(2), AW_EVENT_APP_READ);
	CHECK(IS_NOW(v, WINDOW_UPDATE, 0), "but a window update may leave");
	answer = aw_wait_until(MS(30));
	v = data(MS(3));
	CHECK(IS_NOW(v, WINDOW_UPDATE, 0), "data before it left");
	at(MS(4), AW_EVENT_ACK_SENT);

	data(MS(10));
	answer = aw_nothing();
	v = at(MS(12), AW_EVENT_APP_READ);
	CHECK(IS_WAIT(v, MS(510), 1), "a read does not cancel a wait");

	/* pending, after its deadline: the timer is about to fire */
	open_conn(&smallest, AW_RAILS_DEFAULT);
	answer = aw_wait_until(MS(30));
	data(MS(10));
	v = at(MS(31), AW_EVENT_APP_READ);
	CHECK(IS_WAIT(v, MS(30), 0), "pending is pending");
}

/* Window left and window on offer: is the policy called? */
static void reads_that_may_be_worth_an_update(void)
{
	static const struct {
		u32 left, next, max, bytes;
		bool owed, asked;
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
	struct aw_policy curious = obedient;
	struct aw_verdict v;
	struct aw_event e;
	size_t i;

	curious.wnd_use = AW_WND_USE_ALWAYS;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		open_conn(&curious, AW_RAILS_DEFAULT);
		answer = aw_wait_until(MS(30));
		if (rows[i].owed)
			data(MS(1));
		answer = aw_send_now(AW_REASON_WINDOW_UPDATE);
		e = event(MS(2), AW_EVENT_APP_READ);
		e.bytes = rows[i].bytes;
		e.wnd_bytes = rows[i].left;
		e.wnd_next_bytes = rows[i].next;
		e.wnd_max_bytes = rows[i].max;
		v = aw_decide(&conn, &e);
		CHECK((v.action == AW_SEND_NOW) == rows[i].asked, "row %zu", i);
	}
}

static void optional_members_have_defaults(void)
{
	struct aw_verdict v;

	open_conn(&smallest, AW_RAILS_DEFAULT);
	answer = aw_wait_until(MS(30));
	data(MS(10));
	v = at(MS(11), AW_EVENT_APP_READ);
	CHECK(IS_WAIT(v, MS(30), 0), "on_app_read");
	v = at(MS(30), AW_EVENT_DEADLINE);
	CHECK(IS_NOW(v, DELAY_TIMER, 0), "on_deadline");
	v = at(MS(31), AW_EVENT_ACK_SENT);
	CHECK(v.action == AW_NOTHING, "on_ack_sent");
}

static struct aw_verdict of(u64 now_ns, u32 unacked_bytes)
{
	struct aw_event e = event(now_ns, AW_EVENT_DATA);

	e.bytes = 1460;
	e.unacked_bytes = unacked_bytes;
	e.rtt_us = 10000;
	e.rto_us = 200000;
	return aw_decide(&conn, &e);
}

static struct aw_verdict segment(u64 now_ns)
{
	return of(now_ns, 2920);
}

/* 22 segments per 10 ms: a quarter is more than the two that wait. [D-26] */
static void the_flight_is_what_comes_in_a_round_trip(void)
{
	struct aw_verdict v;
	u64 now;

	open_conn(&obedient, AW_RAILS_NETWORK);
	answer = aw_wait_until(MS(5000));
	v = segment(MS(100));
	CHECK(v.action == AW_WAIT, "not known yet: two wait");
	v = of(MS(100), 10 * 1460 - 1);
	CHECK(v.action == AW_WAIT, "a byte less than an initial window");
	v = of(MS(100), 10 * 1460);
	CHECK(IS_NOW(v, FLIGHT, 1), "an initial window [RFC 6928, 2]");
	for (now = 0; now <= 20; now++) {
		at(MS(100), AW_EVENT_ACK_SENT);
		v = segment(MS(100.5) + now * MS(0.5));
	}
	CHECK(conn.flight.bytes == 22 * 1460, "%u bytes", conn.flight.bytes);
	CHECK(v.action == AW_WAIT, "two of 22 wait");
	segment(MS(319));
	CHECK(conn.flight.bytes == 2920, "short of an RTO, %u", conn.flight.bytes);
	segment(MS(529));
	CHECK(!conn.flight.bytes, "after an RTO %u", conn.flight.bytes);
}

static struct aw_event above(u64 now_ns)
{
	struct aw_event e = event(now_ns, AW_EVENT_DATA);

	e.order = AW_ORDER_HOLE;
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
	u64 now;

	open_conn(&obedient, AW_RAILS_DEFAULT);
	answer = aw_wait_until(MS(900));
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
	CHECK(IS_WAIT(v, MS(21), 1), "whatever the policy says meanwhile");
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
	e.order = AW_ORDER_FILLS;
	v = sent_above(e);
	CHECK(IS_NOW(v, HOLE_FILLED, 1), "the hole is filled in part");
	for (i = 0; i < 3; i++)
		v = sent_above(above(MS(50)));
	CHECK(IS_NOW(v, OUT_OF_ORDER, 1), "then there are three again");
	v = sent_above(above(MS(50)));
	CHECK(IS_WAIT(v, MS(51), 1), "and no more");

	/* a policy with a shorter deadline is called */
	three_above();
	answer = aw_wait_until(MS(20.3));
	v = sent_above(above(MS(20)));
	CHECK(IS_WAIT(v, MS(20.3), 0), "sooner than the rail");
	answer = aw_wait_until(MS(300));
	v = at(MS(20.1), AW_EVENT_APP_READ);
	CHECK(IS_WAIT(v, MS(20.3), 1), "and it cannot change its mind");
	v = at(MS(20.3), AW_EVENT_DEADLINE);
	CHECK(IS_NOW(v, OUT_OF_ORDER, 1), "then");
	at(MS(20.3), AW_EVENT_ACK_SENT);
	answer = aw_send_now(AW_REASON_EVERY_SEGMENT);
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
	open_conn(&obedient, AW_RAILS_DEFAULT);
	for (i = 0; i < AW_STATE_MAX_BYTES / 8; i++)
		sum += conn.state[i] != 0;
	CHECK(!sum, "%u words", sum);
	CHECK(conn.pending.action == AW_NOTHING, "nothing pending");
}

int main(void)
{
	repairs_what_a_policy_may_not_say();
	follows_the_latest_answer();
	a_promise_is_kept();
	an_ack_that_repeats_another_is_no_news();
	a_timer_asks_only_when_it_is_due();
	reads();
	reads_that_may_be_worth_an_update();
	optional_members_have_defaults();
	the_flight_is_what_comes_in_a_round_trip();
	segments_above_a_hole_share_acks_after_three();
	a_host_may_want_each_ack_above_a_hole();
	state_starts_at_zero();
	return test_end();
}
