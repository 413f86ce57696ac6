/* SPDX-License-Identifier: MIT */
/*
 * Properties that hold after every event, for any policy, good or bad.
 *
 * One harness, used in three ways:
 *	prop_rails            all short sequences of a small alphabet, then
 *	                      long random ones
 *	libFuzzer             the same checks on its inputs (make fuzz)
 *	against broken cores  it must catch each (make mutants)
 *
 * The duties are restated here, independently of rails.c.
 */
#include <stdlib.h>
#include <string.h>
#include "model.h"
#include "test.h"

#define CONFIG_BYTES 5

/* --- a policy that answers at random ------------------------------------ */

static struct aw_verdict garbage(void *state, const struct aw_params *p,
				 const struct aw_event *e)
{
	u64 deadlines_ns[] = { 0,
			       e->now_ns,
			       e->now_ns + 1,
			       e->now_ns + 100 * AW_NS_PER_MS,
			       e->now_ns + 10 * AW_NS_PER_S,
			       AW_NEVER_NS - 1,
			       AW_NEVER_NS };
	u32 random = e->random;
	struct aw_verdict v;

	(void)p;
	memset(&v, (int)model_next(&random), sizeof(v));
	v.action = (u8)(model_next(&random) % 5);
	v.reason = (u8)(model_next(&random) % (AW_REASONS + 3));
	v.deadline_ns = deadlines_ns[model_next(&random) % 7];
	memset(state, (int)model_next(&random), AW_STATE_MAX_BYTES);
	return v;
}

static struct aw_verdict garbage_on_read(void *state, const struct aw_params *p,
					 const struct aw_event *e,
					 struct aw_verdict pending)
{
	return e->random & 1 ? pending : garbage(state, p, e);
}

static const struct aw_policy random_policy = {
	.name = "random",
	.summary = "answers at random",
	.source = "none",
	.state_bytes = AW_STATE_MAX_BYTES,
	.uses_random = 1,
	.wnd_use = AW_WND_USE_ALWAYS,
	.on_data = garbage,
	.on_deadline = garbage,
	.on_app_read = garbage_on_read,
};

/* --- a spy between policy and core: what did the policy answer? ---------- */

static const struct aw_policy *inner;
static struct aw_verdict raw;
static bool asked;

static struct aw_verdict heard(struct aw_verdict v)
{
	asked = true;
	raw = v;
	return v;
}

static struct aw_verdict spy_on_data(void *state, const struct aw_params *p,
				     const struct aw_event *e)
{
	return heard(inner->on_data(state, p, e));
}

static struct aw_verdict spy_on_deadline(void *state, const struct aw_params *p,
					 const struct aw_event *e)
{
	return heard(inner->on_deadline(state, p, e));
}

static struct aw_verdict spy_on_read(void *state, const struct aw_params *p,
				     const struct aw_event *e,
				     struct aw_verdict pending)
{
	return heard(inner->on_app_read(state, p, e, pending));
}

static struct aw_policy spy_on(const struct aw_policy *policy)
{
	struct aw_policy spy = *policy;

	inner = policy;
	spy.on_data = spy_on_data;
	spy.on_deadline = policy->on_deadline ? spy_on_deadline : NULL;
	spy.on_app_read = policy->on_app_read ? spy_on_read : NULL;
	return spy;
}

/* --- properties ---------------------------------------------------------- */

struct trial {
	u64 canary_before[2];
	struct aw_conn conn;
	u64 canary_after[2];
	struct aw_policy spy;
	struct aw_params params;
	struct model model;
	u64 owed_since_ns; /* as the harness counts it */
	struct {
		u32 since, bytes, before; /* times: 1024 ns */
	} round;
	struct {
		u32 reported; /* segments above a hole, an ACK for each */
		bool waiting;
		u64 until_ns;
	} above;
	bool wild;
	u32 events;
	u32 digest;
};

static bool found;     /* this trial violated a property */
static u32 other_bits; /* random bits flipped where the policy does not use them */

static void violated(const struct trial *t, const struct aw_event *e, const char *claim,
		     struct aw_verdict v)
{
	found = true;
	test_failed++;
	if (test_failed > 20)
		return;
	printf("%s, event %u (kind %u, order %u, flags %#x): %s: "
	       "action %u, %s, deadline %+lld ns, by_duty %u\n",
	       t->spy.name, t->events, e->kind, e->seq, e->flags, claim, v.action,
	       aw_reason_label(v.reason), (long long)(v.deadline_ns - e->now_ns),
	       v.by_duty);
}

static u32 units(u64 ns)
{
	return (u32)(ns / 1024);
}

/* The bytes of the last full round; discarded after an RTO. */
static void keep_rounds(struct trial *t, const struct aw_event *e)
{
	u64 sum = (u64)t->round.bytes + e->bytes;
	u32 rtt = units((u64)e->rtt_us * 1000), rto = units((u64)e->rto_us * 1000);
	u32 age = units(e->now_ns) - t->round.since;

	if (e->kind != AW_EVENT_DATA || !e->rtt_us)
		return;
	if (age < rtt) {
		t->round.bytes = sum > ~0u ? t->round.bytes : (u32)sum;
		return;
	}
	t->round.before = e->rto_us && age - rtt >= rto ? 0 : t->round.bytes;
	t->round.bytes = e->bytes;
	t->round.since = units(e->now_ns);
}

/*
 * Segments above a hole: the first three get an ACK each, later ones share one, after
 * at most 5% of the RTT.  Call before the verdict is checked; true: this segment must
 * not wait. [D-31]
 */
static bool is_hole_duty(struct trial *t, const struct aw_event *e,
			 struct aw_verdict before)
{
	u64 part_ns = (u64)e->rtt_us * 50, most_ns = e->sack_delay_us * 1000ull;
	bool above = e->kind == AW_EVENT_DATA && e->seq == AW_SEQ_HOLE;

	if (above && (t->above.reported < 3 || !most_ns))
		return true;
	if (t->above.waiting) {
		t->above.until_ns = before.deadline_ns;
		/* its timer is late */
		if (above && t->above.until_ns <= e->now_ns)
			t->above.until_ns = e->now_ns + 1;
	} else if (above) {
		t->above.until_ns =
			aw_add_ns(e->now_ns, part_ns < most_ns ? part_ns : most_ns);
	} else {
		return false;
	}
	return above && e->now_ns >= t->above.until_ns;
}

/* Call after the check; made: the verdict was made for this event. */
static void keep_above(struct trial *t, const struct aw_event *e, bool made,
		       struct aw_verdict v)
{
	if (e->kind == AW_EVENT_ACK_SENT)
		t->above.waiting = false;
	if (e->kind != AW_EVENT_DATA || !made)
		return;
	if (e->seq == AW_SEQ_IN || e->seq == AW_SEQ_FILLS)
		t->above.reported = 0;
	else if (e->seq == AW_SEQ_HOLE && v.action == AW_WAIT)
		t->above.waiting = true;
	else if (e->seq == AW_SEQ_HOLE && v.reason == AW_REASON_OUT_OF_ORDER)
		t->above.reported++;
}

/* True if an ACK must leave for the sender's flight, whatever the policy. */
static bool is_flight_duty(const struct trial *t, const struct aw_event *e)
{
	u32 acks = t->spy.acks_per_round ? t->spy.acks_per_round : 4;
	u64 first = e->rcv_mss_bytes * 10ull;

	if (first > ~0u)
		first = ~0u;

	return t->conn.rails & AW_RAIL_FLIGHT && e->kind == AW_EVENT_DATA &&
	       e->unacked_bytes >= (t->round.before ? t->round.before / acks : first) &&
	       e->unacked_bytes / 2 >= e->rcv_mss_bytes;
}

/* True if an ACK must leave, whatever the policy. */
static bool is_duty(u32 rails, bool owed, const struct aw_event *e)
{
	bool data = e->kind == AW_EVENT_DATA;
	u64 half = e->wnd_max_bytes / 2;
	u64 mss = e->rcv_mss_bytes > e->mss_max_bytes ? e->rcv_mss_bytes
						      : e->mss_max_bytes;
	u64 usable = mss < half ? mss : half;
	u64 left =
		e->wnd_bytes < e->unacked_bytes ? 0 : e->wnd_bytes - e->unacked_bytes;
	u64 gain = e->wnd_next_bytes < left ? 0 : e->wnd_next_bytes - left;
	bool only_update = !owed || e->kind == AW_EVENT_APP_READ;
	u64 worth = only_update && usable ? usable : 1;

	if (data && rails & AW_RAIL_ORDER &&
	    (e->seq == AW_SEQ_FILLS || e->seq == AW_SEQ_DUPLICATE))
		return true;
	if (data && rails & AW_RAIL_CE && e->flags & AW_FLAG_CE_CHANGE)
		return true;
	if (data && rails & AW_RAIL_FIN && e->flags & AW_FLAG_FIN)
		return true;
	if (owed && rails & AW_RAIL_QUICKACK && e->flags & AW_FLAG_QUICKACK)
		return true;
	if (owed && rails & AW_RAIL_READER && e->flags & AW_FLAG_READER_WAITS &&
	    e->unacked_bytes > e->rcv_mss_bytes)
		return true;
	if (rails & AW_RAIL_WINDOW_DRY && (left < usable || !left) && gain >= worth)
		return true;
	return rails & AW_RAIL_SECOND_SEGMENT &&
	       e->unacked_bytes / 2 >= e->rcv_mss_bytes;
}

static bool same(struct aw_verdict a, struct aw_verdict b)
{
	return a.deadline_ns == b.deadline_ns && a.action == b.action &&
	       a.reason == b.reason && a.by_duty == b.by_duty;
}

static bool is_well_formed(struct aw_verdict v)
{
	if (v.by_duty > 1 || v.reserved || v.reserved_word)
		return false;
	switch (v.action) {
	case AW_NOTHING:
		return same(v, aw_nothing());
	case AW_WAIT:
		return v.reason == AW_REASON_WAITING;
	case AW_SEND_NOW:
		return v.deadline_ns == AW_NEVER_NS && v.reason > AW_REASON_WAITING &&
		       v.reason < AW_REASONS &&
		       (!v.by_duty || !strcmp(aw_reason_source(v.reason), "rail"));
	default:
		return false;
	}
}

#define MUST(condition, claim)                    \
	do {                                      \
		if (!(condition))                 \
			violated(t, e, claim, v); \
	} while (0)

static void check_answer(struct trial *t, const struct aw_event *e, struct aw_verdict v,
			 struct aw_verdict before, u64 limit_ns, bool hole)
{
	bool owed = t->owed_since_ns != AW_NEVER_NS;
	bool duty = is_duty(t->conn.rails, owed, e) || is_flight_duty(t, e) || hole;

	if (duty)
		MUST(v.action == AW_SEND_NOW, "a duty waits");
	if (!asked)
		return;
	if (raw.action == AW_SEND_NOW)
		MUST(v.action == AW_SEND_NOW && !v.by_duty,
		     "later than the policy, or not its verdict");
	if (raw.action == AW_WAIT && owed)
		MUST(v.action == AW_SEND_NOW || v.deadline_ns <= raw.deadline_ns,
		     "later than the policy's deadline");
	if (!duty && raw.action == AW_WAIT && owed && raw.deadline_ns > e->now_ns &&
	    raw.deadline_ns <= limit_ns)
		MUST((v.action == AW_WAIT && v.deadline_ns == raw.deadline_ns &&
		      !v.by_duty) ||
			     same(v, before),
		     "earlier than any duty demands");
}

/* 500 ms, or the host's maximum if that is less. */
static u64 longest_ns(const struct aw_event *e)
{
	if (!e->delay_max_us || e->delay_max_us > 500000)
		return 500000000;
	return e->delay_max_us * 1000ull;
}

static void check(struct trial *t, const struct aw_event *e, struct aw_verdict before,
		  struct aw_verdict v)
{
	bool max_delay = t->conn.rails & AW_RAIL_MAX_DELAY;
	bool order = t->conn.rails & AW_RAIL_ORDER;
	bool made = before.action != AW_SEND_NOW;
	bool hole = made && is_hole_duty(t, e, before) && order;
	u64 limit_ns = AW_NEVER_NS;
	bool owed;
	u32 i;

	if (e->kind == AW_EVENT_DATA && t->owed_since_ns == AW_NEVER_NS)
		t->owed_since_ns = e->now_ns;
	if (e->kind == AW_EVENT_ACK_SENT)
		t->owed_since_ns = AW_NEVER_NS;
	owed = t->owed_since_ns != AW_NEVER_NS;
	if (max_delay && owed)
		limit_ns = aw_add_ns(t->owed_since_ns, longest_ns(e));
	keep_above(t, e, made, v);
	if (order && owed && t->above.waiting)
		limit_ns = aw_min_u64(limit_ns, t->above.until_ns);

	keep_rounds(t, e);
	MUST(is_well_formed(v), "ill-formed");
	MUST(same(v, t->conn.pending), "not the verdict in force");
	MUST(!owed || v.action != AW_NOTHING, "an ACK is forgotten");
	MUST(owed || v.action != AW_WAIT, "waits for nothing");
	MUST(v.action != AW_WAIT || v.deadline_ns <= limit_ns, "longer than allowed");
	if (e->kind == AW_EVENT_DATA)
		MUST(v.action == AW_SEND_NOW || v.deadline_ns > e->now_ns,
		     "a timer in the past");
	if (e->kind == AW_EVENT_ACK_SENT)
		MUST(same(v, aw_nothing()), "something is still owed");
	else if (before.action == AW_SEND_NOW)
		MUST(same(v, before), "a promise is taken back");
	else if (e->kind != AW_EVENT_DEADLINE)
		check_answer(t, e, v, before, limit_ns, hole);
	else if (owed && e->now_ns < before.deadline_ns)
		MUST(is_duty(t->conn.rails, true, e) || limit_ns <= e->now_ns
			     ? v.action == AW_SEND_NOW
			     : v.deadline_ns ==
				       aw_min_u64(before.deadline_ns, limit_ns),
		     "an early timer changes the verdict");
	else if (owed)
		check_answer(t, e, v, before, limit_ns, hole);

	MUST(t->canary_before[0] == 0x5a5a && t->canary_after[1] == 0xa5a5 &&
		     t->canary_before[1] == 1 && t->canary_after[0] == 2,
	     "wrote outside of the connection");
	for (i = t->spy.state_bytes; i < AW_STATE_MAX_BYTES; i++)
		MUST(!((u8 *)t->conn.state)[i], "wrote outside of its state");
	MUST(t->conn.policy == &t->spy && t->conn.params == &t->params,
	     "wrote over the connection");
}

/* Events that no correct driver sends must not break anything either. */
static void wild_event(struct model *m, u8 op, u8 size, struct aw_event *e)
{
	u32 seed = m->random ^ (u32)op << 8 ^ size;
	u32 *words = (u32 *)(void *)e;
	u32 i;

	seed |= 1;
	for (i = 0; i < sizeof(*e) / 4; i++)
		words[i] = model_next(&seed) >> model_next(&seed) % 32;
	m->now_ns += model_next(&seed) >> model_next(&seed) % 32;
	m->random = model_next(&seed);
	e->now_ns = m->now_ns;
	e->rcv_mss_bytes = aw_max_u32(e->rcv_mss_bytes, 1);
	e->segments = (u16)aw_max_u32(e->segments, 1);
	e->kind = op % (AW_EVENT_KINDS + 1);
	e->seq = size % (AW_SEQS + 1);
}

/* The policy would have changed nothing on a read that it is not told about. */
static void needless_read(struct trial *t, const struct aw_event *e)
{
	struct aw_verdict v = t->conn.pending;
	struct aw_conn copy = t->conn;

	if (e->kind != AW_EVENT_APP_READ || !e->bytes || t->wild ||
	    inner == &random_policy || !inner->on_app_read ||
	    t->conn.owed_since_ns != AW_NEVER_NS || e->unacked_bytes ||
	    aw_wnd_worth_update(aw_wnd_left(e), aw_wnd_slide(e), e->wnd_max_bytes,
				e->rcv_mss_bytes))
		return;
	v = inner->on_app_read(copy.state, &t->params, e, t->conn.pending);
	MUST(v.action == t->conn.pending.action &&
		     !memcmp(copy.state, t->conn.state, sizeof(copy.state)),
	     "a read that is worth no update is answered");
}

static void step(struct trial *t, const struct aw_event *given)
{
	struct aw_verdict before = t->conn.pending, v;
	struct aw_event other = *given, *e = &other;

	if (!t->spy.uses_random)
		e->random ^= other_bits;
	/* fields that no one reads may have any value that the interface allows */
	if (other_bits && e->kind < AW_EVENT_KINDS && e->kind != AW_EVENT_ACK_SENT &&
	    !aw_wnd_next_matters(&t->spy, e))
		e->wnd_next_bytes = aw_wnd_left(e);
	if (other_bits && e->kind == AW_EVENT_ACK_SENT) {
		e->delay_max_us = 0;
		e->flags &= AW_FLAG_PIGGYBACK;
	}
	needless_read(t, e);
	asked = false;
	v = aw_decide(&t->conn, e);
	if (e->kind < AW_EVENT_KINDS)
		check(t, e, before, v);
	t->digest = (t->digest ^ v.action ^ (u32)v.reason << 8 ^ (u32)v.deadline_ns) *
		    16777619;
	t->events++;
}

static const struct aw_policy *policy_number(u8 n)
{
	const struct aw_policy *policy = aw_policy_at(n % (aw_policy_count() + 1));

	return policy ? policy : &random_policy;
}

/* Every trial ends with all data acknowledged. */
static void drain(struct trial *t)
{
	struct aw_event e;
	u32 i;

	for (i = 0; i < 1000 && t->conn.pending.action != AW_NOTHING; i++) {
		if (t->conn.pending.deadline_ns == AW_NEVER_NS &&
		    t->conn.pending.action == AW_WAIT &&
		    !(t->conn.rails & AW_RAIL_MAX_DELAY))
			return;
		model_event(&t->model,
			    t->conn.pending.action == AW_WAIT ? MODEL_DUE : MODEL_SENT,
			    0, &t->conn.pending, &e);
		step(t, &e);
	}
	if (i == 1000)
		violated(t, &e, "never acknowledged", t->conn.pending);
}

/* bytes: policy, rails, shape of the host, parameters, wild and one more rail; then
 * events. */
static u32 run(const u8 *bytes, size_t count)
{
	static struct trial trial; /* its bytes must not depend on the stack */
	struct trial *t = &trial;
	const struct aw_policy *policy = policy_number(bytes[0]);
	struct aw_event e = { .now_ns = AW_NS_PER_S };
	bool wild = bytes[4] & 1;
	u32 rails = bytes[1] | (bytes[4] & 2u) << 7;
	size_t i;

	memset(t, 0, sizeof(*t));
	t->canary_before[0] = 0x5a5a;
	t->canary_before[1] = 1;
	t->canary_after[0] = 2;
	t->canary_after[1] = 0xa5a5;
	t->owed_since_ns = AW_NEVER_NS;
	t->digest = 2166136261u;
	t->wild = wild;
	t->spy = spy_on(policy);
	aw_params_init(policy, &t->params);
	for (i = 0; i < policy->params_count; i++)
		if (bytes[3] >> i % 4 & 1)
			t->params.value[i] = bytes[3] >> 4 & 1 ? policy->params[i].max
							       : policy->params[i].min;
	model_start(&t->model, bytes[2]);
	e.random = model_next(&t->model.random);
	e.rcv_mss_bytes = t->model.mss_bytes;
	aw_conn_init(&t->conn, &t->spy, &t->params, rails ? rails : AW_RAILS_DEFAULT,
		     &e);
	for (i = CONFIG_BYTES; i + 1 < count; i += 2) {
		if (wild)
			wild_event(&t->model, bytes[i], bytes[i + 1], &e);
		else
			model_event(&t->model, bytes[i], bytes[i + 1], &t->conn.pending,
				    &e);
		step(t, &e);
	}
	if (!wild)
		drain(t);
	return t->digest;
}

static void trial(const u8 *bytes, size_t count)
{
	u32 first;

	if (count < CONFIG_BYTES)
		return;
	found = false;
	other_bits = 0;
	first = run(bytes, count);
	other_bits = ~0u;
	if (run(bytes, count) != first) {
		found = true;
		test_failed++;
		printf("the same log gave other verdicts, maybe for its random bits\n");
	}
	if (!found)
		test_passed++;
}

#ifdef FUZZ
int LLVMFuzzerTestOneInput(const u8 *bytes, size_t count);

int LLVMFuzzerTestOneInput(const u8 *bytes, size_t count)
{
	trial(bytes, count);
	if (found)
		abort();
	return 0;
}
#else
#define LENGTH 4

static bool until_first_failure;

static void try(const u8 *bytes, size_t count)
{
	trial(bytes, count);
	if (until_first_failure && test_failed)
		exit(test_end());
}

static void all_short_sequences(void)
{
	/* size: time step in the upper 3 bits (3: 1 ms, 6: 250 ms) */
	static const u8 alphabet[][2] = {
		{ MODEL_SEGMENT, 0x60 }, { MODEL_SEGMENT, 0xc0 },
		{ MODEL_MERGED, 0x64 },  { MODEL_SMALL, 0x61 },
		{ MODEL_HOLE, 0x60 },    { MODEL_FILLS, 0x60 },
		{ MODEL_DUPLICATE, 0 },  { MODEL_CE, 0 },
		{ MODEL_FIN, 0 },        { MODEL_READ_ALL, 0x60 },
		{ MODEL_READ_PART, 1 },  { MODEL_SENT, 0 },
		{ MODEL_PIGGYBACK, 0 },  { MODEL_DUE, 0 },
		{ MODEL_EARLY, 0 },      { MODEL_WAITS, 0x60 },
	};
	const u32 letters = sizeof(alphabet) / sizeof(alphabet[0]);
	static const u8 shapes[] = { 0x00, 0x09, 0x1a };
	u8 bytes[CONFIG_BYTES + 2 * LENGTH] = { 0 };
	u32 sequences = 1, n, i, rest, shape;

	for (i = 0; i < LENGTH; i++)
		sequences *= letters;
	for (bytes[0] = 0; bytes[0] <= aw_policy_count(); bytes[0]++) {
		for (shape = 0; shape < sizeof(shapes); shape++) {
			bytes[2] = shapes[shape];
			for (n = 0; n < sequences; n++) {
				for (i = 0, rest = n; i < LENGTH; i++) {
					memcpy(bytes + CONFIG_BYTES + 2 * i,
					       alphabet[rest % letters], 2);
					rest /= letters;
				}
				try(bytes, sizeof(bytes));
			}
		}
	}
}

static void long_random_sequences(u32 trials)
{
	u8 bytes[CONFIG_BYTES + 600];
	u32 seed = 20240601, length, i;

	while (trials--) {
		length = CONFIG_BYTES + model_next(&seed) % 600;
		for (i = 0; i < length; i++)
			bytes[i] = (u8)(model_next(&seed) >> 11);
		try(bytes, length);
	}
}

/* prop_rails [TRIALS [first]]; first: ends at the first failure */
int main(int argc, char **argv)
{
	until_first_failure = argc > 2 && !strcmp(argv[2], "first");
	all_short_sequences();
	long_random_sequences(argc > 1 ? (u32)atoi(argv[1]) : 20000);
	return test_end();
}
#endif
