/* SPDX-License-Identifier: MIT */
/*
 * Nanoseconds per event on host linux, alone and by policy: bulk data in order at 10 Gbit/s with the
 * ACKs that the policy requests and the timers that expire.  The loop that
 * generates the events is measured alone and subtracted.  Minimum of RUNS:
 * disturbances only make a measurement longer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <ackwise/ackwise.h>

#define MSS 1460u
#define SEGMENTS 200000u
#define GAP_NS 1200u
#define RUNS 20

struct result {
	double ns_per_event;
	aw_u32 events, acks;
};

static struct aw_conn conn;
static aw_u64 sink; /* keeps the empty loop from being optimized away */

static aw_u64 clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (aw_u64)t.tv_sec * AW_NS_PER_S + (aw_u64)t.tv_nsec;
}

/* Not inlined, like aw_decide(). */
__attribute__((noinline)) static struct aw_verdict no_host(const struct aw_event *e)
{
	sink += e->now_ns;
	return aw_nothing();
}

static struct aw_verdict decide(const struct aw_host *host, const struct aw_event *e)
{
	return host ? aw_decide(&conn, e) : no_host(e);
}

static void receive(const struct aw_host *host, struct result *r)
{
	struct aw_event e = {
		.wnd_bytes = 4096 * MSS,
		.wnd_next_bytes = 4096 * MSS,
		.wnd_max_bytes = 4096 * MSS,
		.rcv_mss_bytes = MSS,
		.rtt_us = 1000,
		.segments = 1,
	};
	struct aw_verdict v = aw_nothing();
	aw_u64 now_ns = 1;
	aw_u32 i;

	for (i = 0; i < SEGMENTS; i++) {
		now_ns += GAP_NS;
		if (v.action == AW_WAIT && v.deadline_ns <= now_ns) {
			e.now_ns = v.deadline_ns;
			e.kind = AW_EVENT_DEADLINE;
			e.bytes = 0;
			v = decide(host, &e);
			r->events++;
			if (v.action == AW_SEND_NOW)
				goto send;
		}
		e.now_ns = now_ns;
		e.random = i * 2654435761u;
		e.kind = AW_EVENT_DATA;
		e.bytes = MSS;
		e.unacked_bytes += MSS;
		v = decide(host, &e);
		r->events++;
		if (v.action != AW_SEND_NOW)
			continue;
	send:
		e.kind = AW_EVENT_ACK_SENT;
		e.bytes = 0;
		e.unacked_bytes = 0;
		v = decide(host, &e);
		r->events++;
		r->acks++;
	}
}

/* host: NULL, the loop alone.  policy: NULL, the host alone. */
static struct result measure(const struct aw_host *host, const struct aw_policy *policy)
{
	struct result best = { 1e9, 0, 0 };
	struct aw_event start = { .now_ns = 1 };
	struct aw_params host_params, params;
	struct result r;
	aw_u64 before_ns;
	aw_u32 run;

	for (run = 0; run < RUNS; run++) {
		memset(&r, 0, sizeof(r));
		if (policy)
			aw_params_init(policy->params, policy->params_count, &params);
		if (host) {
			aw_params_init(host->params, host->params_count, &host_params);
			aw_conn_init(&conn, host, &host_params, policy, &params,
				     &start);
		}
		before_ns = clock_ns();
		receive(host, &r);
		r.ns_per_event = (double)(clock_ns() - before_ns) / r.events;
		if (r.ns_per_event < best.ns_per_event)
			best = r;
	}
	return best;
}

int main(int argc, char **argv)
{
	const bool json = argc > 1 && !strcmp(argv[1], "--json");
	const double empty = measure(NULL, NULL).ns_per_event;
	const struct aw_host *host = aw_host_find("linux");
	const struct aw_policy *policy;
	const char *name;
	struct result r;
	aw_u32 i;

	if (json)
		printf("{\"empty_loop_ns_per_event\": %.2f, \"policies\": [", empty);
	else
		printf("%-12s %12s %18s\n", "policy", "ns/event", "segments per ACK");
	for (i = 0; i <= aw_policy_count(); i++) {
		policy = i ? aw_policy_at(i - 1) : NULL;
		name = policy ? policy->name : host->name;
		r = measure(host, policy);
		if (json)
			printf("%s{\"policy\": \"%s\", \"ns_per_event\": %.2f, "
			       "\"events\": %" PRIu32 ", \"acks\": %" PRIu32 "}",
			       i ? ", " : "", name, r.ns_per_event - empty, r.events,
			       r.acks);
		else
			printf("%-12s %12.1f %18.2f\n", name, r.ns_per_event - empty,
			       (double)SEGMENTS / r.acks);
	}
	if (json)
		printf("]}\n");
	else
		printf("%-12s %12.1f\n", "(empty loop)", empty);
	return 0;
}
