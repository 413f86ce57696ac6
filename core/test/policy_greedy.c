/* SPDX-License-Identifier: MIT */
/* clang-format off */
/* spec/2-dynamic-acknowledgement.md: an ACK costs L = 10 ms of latency. */
#include "model.h"
#include "script.h"

/* The model of the paper: no protocol, and no bound on an order. */
#define PAPER .policy = "greedy", .host = "model"

/* Every ACK leaves when the sum over its packets reaches L, to the ns. [S2.6] */
static void agrees_with_the_sum(void)
{
	aw_u64 arrival_ns[200], now = 0, sum, price = MS(10) / 3;
	aw_u32 seed = 7, pending = 0, checked = 0, i, j;
	struct sock h = { PAPER, .set = { { "cost_permille", 250 } } };
	struct step s = { .kind = AW_EVENT_DATA, .bytes = 100 };
	struct aw_verdict v = { 0 };

	sock_open(&h);
	for (i = 0; i < 20000; i++) {
		now += model_next(&seed) % MS(1);
		if (pending && v.deadline_ns <= now) {
			sum = 0;
			for (j = 0; j < pending; j++)
				sum += v.deadline_ns - arrival_ns[j];
			/* the deadline is rounded down to a whole ns */
			CHECK(sum <= price && sum + pending > price,
			      "%u packets: %llu", pending,
			      (unsigned long long)sum);
			checked++;
			s.kind = AW_EVENT_DEADLINE;
			s.at_ns = v.deadline_ns;
			v = sock_step(&h, &s);
			CHECK(v.reason == AW_REASON_LATENCY, "packet %u", i);
			pending = 0;
			s.kind = AW_EVENT_DATA;
		}
		arrival_ns[pending++] = now;
		s.at_ns = now;
		v = sock_step(&h, &s);
		if (v.action == AW_SEND_NOW)
			pending = 0;
	}
	CHECK(checked > 1000, "%u", checked);
}

int main(void)
{
	PLAY("one packet waits for L", (PAPER),
	     { PART(MS(5), 100), WAIT(MS(15)) },
	     { TIMER(MS(15)), NOW(LATENCY) },
	     { PART(MS(20), 100), WAIT(MS(30)) });
	PLAY("more packets share L", (PAPER),
	     { PART(MS(0), 100), WAIT(MS(10)) },
	     { PART(MS(4), 100), WAIT(MS(7)) },        /* 4 + 6 / 2 */
	     { PART(MS(6), 100), WAIT(MS(6) + 666666) }, /* 6 + 2 / 3 */
	     { TIMER(MS(6) + 666666), NOW(LATENCY) });
	PLAY("merged segments are as many packets", (PAPER),
	     { PART(MS(0), 500), .segments = 5, WAIT(MS(2)) });
	PLAY("rho = 0.9 makes an ACK nine times as expensive",
	     (PAPER, .set = { { "cost_permille", 900 } }),
	     { PART(MS(0), 100), WAIT(MS(90)) });
	/* the host takes 500 ms for the policy's longer time, and asks */
	PLAY("500 ms is still the limit [S2.8]", (.policy = "greedy",
	     .set = { { "cost_permille", 999 } }),
	     { PART(MS(0), 100), WAIT(MS(500)) },
	     { TIMER(MS(500)), DUTY(MAX_DELAY) });
	PLAY("TCP: 50 us are the shortest time that an order may have",
	     (.policy = "greedy", .set = { { "unit_us", 10 } }),
	     { PART(MS(0), 100), WAIT(US(50)) },
	     { TIMER(US(50)), NOW(LATENCY) });
	ASK("each arrival moves t; what is left after rounding is nothing [S2.6]",
	    (.policy = "greedy"), (.rtt_us = 0),
	    { QUESTION(SENT, 0), ORDER(1, 0) },
	    { QUESTION(LIMIT, MS(1)), .seen.new_segments = 3, ORDER(1, 3333333) },
	    { QUESTION(TIMEOUT, MS(1) + 3333333), ANSWER_NOW(LATENCY) },
	    { QUESTION(SENT, MS(5)), ORDER(1, 0) },
	    { QUESTION(LIMIT, MS(6)), .seen.new_segments = 1, ORDER(1, MS(10)) },
	    { QUESTION(LIMIT, MS(12)), .seen.new_segments = 1, ORDER(1, MS(2)) },
	    { QUESTION(LIMIT, MS(20)), .seen.new_segments = 1, ANSWER_NOW(LATENCY) });
	agrees_with_the_sum();
	return test_end();
}
