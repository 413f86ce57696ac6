/* SPDX-License-Identifier: MIT */
/* clang-format off */
/* spec/2-dynamic-acknowledgement.md: an ACK costs L = 10 ms of latency. */
#include "model.h"
#include "script.h"

/* Every ACK leaves when the sum over its packets reaches L, to the ns. [S2.6] */
static void agrees_with_the_sum(void)
{
	u64 arrival_ns[200], now = 0, sum, price = MS(10) / 3;
	u32 seed = 7, pending = 0, checked = 0, i, j;
	struct host h = { .policy = "greedy", .set = { { "cost_permille", 250 } } };
	struct step s = { .kind = AW_EVENT_DATA, .bytes = 100 };
	struct aw_verdict v = { 0 };

	host_open(&h);
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
			v = host_step(&h, &s);
			CHECK(v.reason == AW_REASON_LATENCY, "packet %u", i);
			pending = 0;
			s.kind = AW_EVENT_DATA;
		}
		arrival_ns[pending++] = now;
		s.at_ns = now;
		v = host_step(&h, &s);
		if (v.action == AW_SEND_NOW)
			pending = 0;
	}
	CHECK(checked > 1000, "%u", checked);
}

int main(void)
{
	PLAY("one packet waits for L", (.policy = "greedy"),
	     { PART(MS(5), 100), WAIT(MS(15)) },
	     { TIMER(MS(15)), NOW(LATENCY) },
	     { PART(MS(20), 100), WAIT(MS(30)) });
	PLAY("more packets share L", (.policy = "greedy"),
	     { PART(MS(0), 100), WAIT(MS(10)) },
	     { PART(MS(4), 100), WAIT(MS(7)) },        /* 4 + 6 / 2 */
	     { PART(MS(6), 100), WAIT(MS(6) + 666666) }, /* 6 + 2 / 3 */
	     { TIMER(MS(6) + 666666), NOW(LATENCY) });
	PLAY("merged segments are as many packets", (.policy = "greedy"),
	     { PART(MS(0), 500), .segments = 5, WAIT(MS(2)) });
	PLAY("rho = 0.9 makes an ACK nine times as expensive",
	     (.policy = "greedy", .set = { { "cost_permille", 900 } }),
	     { PART(MS(0), 100), WAIT(MS(90)) });
	PLAY("500 ms is still the limit [S2.8]", (.policy = "greedy",
	     .set = { { "cost_permille", 999 } }),
	     { PART(MS(0), 100), WAIT(MS(500)), .by_rail = 1 },
	     { TIMER(MS(500)), RAIL(MAX_DELAY) });
	agrees_with_the_sum();
	return test_end();
}
