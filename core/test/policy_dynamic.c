/* SPDX-License-Identifier: MIT */
/* clang-format off */
/* spec/2-dynamic-acknowledgement.md: an ACK costs L = 10 ms of latency. */
#include <math.h>
#include "model.h"
#include "script.h"

/* The model of the paper: no protocol, and no bound on an order. */
#define PAPER .policy = "dynamic", .host = "model"

static const aw_u16 table[] = {
#include "dynamic_z.h"
};

static unsigned reversed(unsigned n)
{
	unsigned bit, r = 0;

	for (bit = 0; bit < 8; bit++)
		r |= (n >> bit & 1) << (7 - bit);
	return r;
}

/* [S2.5] */
static void table_is_the_inverse_distribution(void)
{
	double mean = 0, u;
	unsigned i;

	CHECK(sizeof(table) / sizeof(table[0]) == 256, "length");
	for (i = 0; i < 256; i++) {
		u = (i + 0.5) / 256;
		CHECK(fabs(table[i] / 65536.0 - log(1 + (exp(1) - 1) * u)) <=
			      0.5 / 65536 + 1e-9, "z[%u]", i);
		mean += table[i] / 65536.0 / 256;
	}
	/* the mean of the density e^z / (e - 1) is 1 / (e - 1) [S2.3] */
	CHECK(fabs(mean - 1 / (exp(1) - 1)) < 1e-5, "mean %f", mean);
}

/* The reported z is the one in use: a single packet waits z L. */
static void reports_the_z_that_it_uses(void)
{
	struct sock h = { PAPER };
	struct step s = { PART(0, 100) };
	struct aw_verdict v;
	aw_u32 random, z;

	for (random = 0; random < 256; random++) {
		h.random = random << 24;
		sock_open(&h);
		z = sock_observe(&h, "z_permille");
		CHECK(z == table[reversed(random)] * 1000u >> 16, "%u", z);
		v = sock_step(&h, &s);
		CHECK(v.deadline_ns / 10000 - z <= 1, "%u", z);
	}
}

/* |packets until s| * (t - s) for the best s: the definition, tried at every
 * arrival, just before it, and half way to t. */
static aw_u64 largest_rectangle(const aw_u64 *arrival_ns, aw_u32 count, aw_u64 t)
{
	aw_u64 best = 0, s[3];
	aw_u32 i, j, k, packets;

	for (i = 0; i < count; i++) {
		s[0] = arrival_ns[i];
		s[1] = arrival_ns[i] ? arrival_ns[i] - 1 : 0;
		s[2] = (arrival_ns[i] + t) / 2;
		for (j = 0; j < 3; j++) {
			if (s[j] > t)
				continue;
			packets = 0;
			for (k = 0; k < count; k++)
				packets += arrival_ns[k] <= s[j];
			best = aw_max_u64(best, packets * (t - s[j]));
		}
	}
	return best;
}

/* One running minimum finds the rectangle. [S2.1] [D-04] */
static void agrees_with_the_rectangle(aw_u32 draw, aw_u32 random, aw_u32 most_gap_ns)
{
	aw_u64 arrival_ns[4000], now = 0, area, found;
	aw_u32 seed = random | 1, pending = 0, checked = 0, acks = 0, i;
	struct sock h = { PAPER, .random = random,
			  .set = { { "draw", draw } } };
	struct step s = { .kind = AW_EVENT_DATA, .bytes = 100 };
	struct aw_verdict v = { 0 };

	sock_open(&h);
	for (i = 0; i < 4000; i++) {
		now += model_next(&seed) % most_gap_ns;
		if (pending && v.deadline_ns <= now) {
			area = MS(10) * table[reversed(((random >> 24) +
				(draw ? acks : 0)) & 255)] >> 16;
			found = largest_rectangle(arrival_ns, pending,
						  v.deadline_ns);
			/* rounded down to a whole ns: j ns of area at most */
			CHECK(found <= area && found + pending > area,
			      "%llu, not %llu, of %u packets",
			      (unsigned long long)found,
			      (unsigned long long)area, pending);
			checked++;
			s.kind = AW_EVENT_DEADLINE;
			s.at_ns = v.deadline_ns;
			v = sock_step(&h, &s);
			CHECK(v.reason == AW_REASON_AREA, "packet %u", i);
			pending = 0;
			acks++;
			s.kind = AW_EVENT_DATA;
		}
		arrival_ns[pending++] = now;
		s.at_ns = now;
		v = sock_step(&h, &s);
		CHECK(v.action == AW_WAIT, "packet %u", i);
	}
	CHECK(checked > 20, "%u", checked);
}

int main(void)
{
	aw_u32 i;

	/* the largest z: 65455 / 65536, so z L = 9987640 ns */
	PLAY("the earliest of a_j + z L / j",
	     (PAPER, .random = 0xff000000),
	     { PART(MS(0), 100), WAIT(9987640) },
	     { PART(MS(2), 100), WAIT(MS(2) + 4993820) },
	     { PART(MS(2), 100), WAIT(MS(2) + 3329213) },
	     { PART(MS(5), 100), WAIT(MS(2) + 3329213) }, /* 5 + 2.5 is later */
	     { TIMER(MS(2) + 3329213), NOW(AREA) },
	     /* draw = 0: the same z again */
	     { PART(MS(100), 100), WAIT(MS(100) + 9987640) });
	PLAY("merged segments are as many packets",
	     (PAPER, .random = 0xff000000),
	     { PART(MS(0), 400), .segments = 4, WAIT(2496910) });
	PLAY("draw = 1 takes the next z: positions 0, 128, 64 [S2.4] [D-05]",
	     (PAPER, .set = { { "draw", 1 } }),
	     { PART(MS(0), 100), WAIT(33569) },         /* 220 */
	     { TIMER(MS(1)), NOW(AREA) },
	     { PART(MS(10), 100), WAIT(MS(10) + 6219177) }, /* 40758 */
	     { TIMER(MS(20)), NOW(AREA) },
	     { PART(MS(30), 100), WAIT(MS(30) + 3597259) }); /* 23575 */
	PLAY("draw = 2: z is 1, whatever the random bits are [S2.2]",
	     (PAPER, .random = 0x12000000, .set = { { "draw", 2 } }),
	     { PART(MS(0), 100), WAIT(MS(10)) },
	     { PART(MS(2), 100), WAIT(MS(7)) },
	     { TIMER(MS(7)), NOW(AREA) },
	     { PART(MS(20), 100), WAIT(MS(30)) });
	PLAY("an ACK that covers no new data draws no z",
	     (PAPER, .set = { { "draw", 1 } }),
	     { SENT(MS(0)), NOTHING },
	     { PART(MS(1), 100), WAIT(MS(1) + 33569) });
	PLAY("TCP: 50 us are the shortest time that an order may have",
	     (.policy = "dynamic", .set = { { "draw", 1 } }),
	     { PART(MS(0), 100), WAIT(US(50)) },
	     { TIMER(US(50)), NOW(AREA) },
	     { PART(MS(10), 100), WAIT(MS(10) + 6219177) });
	ASK("it wants to see each arrival, until t [S2.1]",
	    (.policy = "dynamic", .random = 0xff000000), (.rtt_us = 0),
	    { QUESTION(SENT, 0), ORDER(1, 0) },
	    { QUESTION(LIMIT, MS(1)), .seen.new_segments = 1, ORDER(1, 9987640) },
	    { QUESTION(LIMIT, MS(3)), .seen.new_segments = 1, ORDER(1, 4993820) },
	    /* a timer that is early, as no host's is */
	    { QUESTION(TIMEOUT, MS(4)), ORDER(1, 3993820) },
	    { QUESTION(TIMEOUT, MS(8)), ANSWER_NOW(AREA) },
	    { QUESTION(SENT, MS(8)), ORDER(1, 0) },
	    { QUESTION(LIMIT, MS(9)), .seen.new_segments = 2, ORDER(1, 4993820) },
	    /* what arrives after t does not move it */
	    { QUESTION(LIMIT, MS(20)), .seen.new_segments = 9, ANSWER_NOW(AREA) });
	table_is_the_inverse_distribution();
	reports_the_z_that_it_uses();
	for (i = 0; i < 6; i++) {
		agrees_with_the_rectangle(0, 0xff000000 - i * 0x17000000, 1000000);
		agrees_with_the_rectangle(1, i << 26, 300000 << i);
	}
	return test_end();
}
