/* SPDX-License-Identifier: MIT */
/* clang-format off */
#include <math.h>
#include "script.h"

/* The same rule in floating point, as lsquic has it. */
struct model {
	double integral;
	aw_u64 start_us;
	unsigned acks, segments, packets;
};

static double target(double rtt_ms)
{
	static const double rows[][2] = {
		{ 5, 2.5 },  { 10, 2 },   { 15, 1.6 }, { 20, 1.4 }, { 30, 1.3 },  { 40, 1.2 },
		{ 50, 1.1 }, { 60, 1.0 }, { 70, .9 },  { 80, .8 },  { 100, .7 },
	};
	unsigned i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rtt_ms <= rows[i][0])
			return rows[i][1];
	return .5;
}

/* The distance of u / 0.05 from the next whole number: how sure the answer is. */
static double model_ack(struct model *m, aw_u64 now_us, aw_u32 rtt_us)
{
	double rtts = (double)(now_us - m->start_us) / rtt_us, e, u, steps, gain;
	unsigned last = m->packets;

	m->acks++;
	if (rtts < 3)
		return 1;
	e = log(m->acks / rtts / target(rtt_us / 1e3));
	gain = e * 3 * rtt_us / 1e6;
	m->integral += gain;
	u = .8 * e + .35 * m->integral;
	m->start_us = now_us;
	steps = fabs(u) / .05;
	if (steps > 1) {
		if (!last) {
			last = m->segments / m->acks;
			last = last < 2 ? 2 : last >= 150 ? 75 : last;
		}
		if (u > 0)
			m->packets = last + steps >= 150 ? 150 : last + (unsigned)steps;
		else
			m->packets = last - floor(steps) <= 2 ? 2 : last - (unsigned)steps;
		if (m->packets == (u > 0 ? 150 : 2))
			m->integral -= gain;
	}
	if (m->packets)
		m->acks = 0;
	return fabs(steps - round(steps));
}

static aw_u32 seed;

static aw_u32 below(aw_u32 n)
{
	seed = seed * 1664525 + 1013904223;
	return (aw_u32)((aw_u64)seed * n >> 32);
}

/* ACKs that come as often as the packets for each allow, at rates and round trips that change. */
static void agrees_with_floating_point(aw_u32 first)
{
	const struct aw_policy *policy = listed_find("lsquic");
	aw_u64 state[AW_STATE_MAX_BYTES / 8] = { 0 }, packet_ns = 0;
	struct aw_seen seen = { .why = AW_WHY_SENT, .mss_bytes = MSS };
	aw_u32 i, packets = 2, same = 0, unsure = 0, values = 0;
	aw_u8 came[151] = { 0 };
	struct aw_params params = { { 0 } };
	struct model m = { 0 };
	struct aw_order o;

	seed = first;
	seen.now_ns = START_NS;
	policy->order(state, &params, &seen);
	m.start_us = START_NS / 1000;
	for (i = 0; i < 200000; i++) {
		if (i % 300 == 0) {
			packet_ns = 1000ull << below(11);
			seen.rtt_us = 1000 * (1 + below(110)) + below(2) * below(1000);
		}
		seen.now_ns += (packet_ns * packets * (80 + below(40)) / 100000 + 1) * 1000;
		seen.new_segments = packets;
		if (!m.packets)
			m.segments += packets;
		o = policy->order(state, &params, &seen);
		if (model_ack(&m, seen.now_ns / 1000, seen.rtt_us) < .02) {
			m.packets = o.bytes / MSS; /* too close to a step to tell */
			unsure++;
		}
		packets = m.packets ? m.packets : 2;
		values += !came[packets]++;
		same += o.bytes == packets * MSS;
	}
	CHECK(same == i && unsure < i / 100, "%u of %u, %u unsure", same, i, unsure);
	CHECK(values > 100, "%u", values);
}

int main(void)
{
	/*
	 * RTT 60 ms, target 1.0; an interval of 180 ms; the delay is 15 ms. [S6.6]
	 *	12 ACKs   e = ln 4 = 1.3863        I = 0.2495   u = 1.1964  + 23
	 *	 3 ACKs   e = 0                    I = 0.2495   u = 0.0873  + 1
	 *	 1 ACK    e = ln(1 / 3) = -1.0986  I = 0.0518   u = -0.8608 - 17
	 *	 1 ACK    the same                 I = -0.1460  u = -0.9300 - 18: 2, and I
	 *						     stays at 0.0518
	 *	 3 ACKs   e = 0                                 u = 0.0181: nothing
	 */
	ASK("the controller, by hand", (.policy = "lsquic"), (.rtt_us = 60000),
	    { QUESTION(SENT, MS(0)), ORDER(2 * MSS, MS(15)) },
	    { QUESTION(LIMIT, MS(10)), .seen.new_segments = 2, .times = 12,
	      ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(SENT, MS(100)), .times = 11, ORDER(2 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(180)), ORDER(25 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(200)), .times = 2, ORDER(25 * MSS, MS(15)) },
	    { QUESTION(TIMEOUT, MS(360)), ANSWER_NOW(DELAY_TIMER) },
	    { QUESTION(SENT, MS(360)), ORDER(26 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(540)), ORDER(9 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(720)), ORDER(2 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(899)), .times = 2, ORDER(2 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(900)), ORDER(2 * MSS, MS(15)) });
	/* On target at first, which is no change, and the count goes on: then 6 ACKs are
	 * e = ln 2 = 0.6931, I = 0.1248, u = 0.5982: + 11, to 12 segments / 6 ACKs */
	ASK("the first change", (.policy = "lsquic"), (.rtt_us = 60000),
	    { QUESTION(SENT, MS(0)), ORDER(2 * MSS, MS(15)) },
	    { QUESTION(LIMIT, MS(10)), .seen.new_segments = 2, .times = 6,
	      ANSWER_NOW(SEGMENT_COUNT) },
	    { QUESTION(SENT, MS(100)), .times = 2, ORDER(2 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(180)), ORDER(2 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(200)), .times = 2, ORDER(2 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(360)), ORDER(13 * MSS, MS(15)) });
	/* 64 ACKs in 3 RTT: e = ln(64 / 3) = 3.0603, u = 2.6411: + 52 */
	ASK("from 2 to 150 packets", (.policy = "lsquic"), (.rtt_us = 60000),
	    { QUESTION(SENT, MS(0)), ORDER(2 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(1)), .times = 63, ORDER(2 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(180)), ORDER(54 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(181)), .times = 63, ORDER(54 * MSS, MS(15)) },
	    /* I doubles to 1.1017: u = 2.8338: + 56 */
	    { QUESTION(SENT, MS(360)), ORDER(110 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(361)), .times = 63, ORDER(110 * MSS, MS(15)) },
	    { QUESTION(SENT, MS(540)), ORDER(150 * MSS, MS(15)) });
	ASK("a delay of a quarter RTT, from 1 to 25 ms; 25 ms if it is not known",
	    (.policy = "lsquic"), (.rtt_us = 0),
	    { QUESTION(SENT, MS(0)), ORDER(2 * MSS, MS(25)) },
	    { QUESTION(SENT, MS(0)), .seen.rtt_us = 200000, ORDER(2 * MSS, MS(25)) },
	    { QUESTION(SENT, MS(0)), .seen.rtt_us = 100, ORDER(2 * MSS, MS(1)) });
	agrees_with_floating_point(1);
	agrees_with_floating_point(2);
	return test_end();
}
