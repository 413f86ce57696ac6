/* SPDX-License-Identifier: MIT */
/*
 * Properties that hold after every event, on every host and for any policy, good or
 * bad.
 *
 * One harness, used in three ways:
 *	prop_orders           all short sequences of a small alphabet, then
 *	                      long random ones
 *	libFuzzer             the same checks on its inputs (make fuzz)
 *	against broken cores  it must catch each (make mutants)
 *
 * Duties, clamp and flight are restated here, independently of the core.
 */
#include <stdlib.h>
#include <string.h>
#include "listed.h"
#include "model.h"
#include "test.h"

#define CONFIG_BYTES 5

/* --- a policy that answers at random ------------------------------------ */

static struct aw_order garbage(void *state, const struct aw_params *p,
			       const struct aw_seen *seen)
{
	static const aw_u32 delays_ns[] = { 0,
					    1,
					    AW_DELAY_MIN_NS + 1,
					    7000000,
					    AW_DELAY_MAX_NS,
					    AW_NOW_NS - 1,
					    AW_NOW_NS,
					    AW_NOW_NS };
	aw_u32 bytes[] = { 0,
			   1,
			   seen->mss_bytes,
			   3 * seen->mss_bytes,
			   seen->owed_bytes + 1,
			   100 * seen->mss_bytes,
			   ~0u,
			   AW_REASON_AREA };
	aw_u32 random = seen->random | 1;
	struct aw_order o;

	(void)p;
	o.delay_ns = delays_ns[model_next(&random) >> 8 & 7];
	o.bytes = bytes[model_next(&random) >> 8 & 7];
	if (aw_is_now(o))
		o.bytes = model_next(&random) % (AW_REASONS + 3);
	memset(state, (int)model_next(&random), AW_STATE_MAX_BYTES);
	return o;
}

static const struct aw_policy random_policy = {
	.name = "random",
	.summary = "answers at random",
	.source = "none",
	.state_bytes = AW_STATE_MAX_BYTES,
	.uses_random = 1,
	.asked_on_read = 1,
	.reads_arrivals = 1,
	.order = garbage,
};

/* --- a spy between policy and host: what was asked, what was answered? --- */

static const struct aw_policy *inner;

static struct {
	aw_u32 questions;     /* about this event, SENT excepted */
	struct aw_seen seen;  /* the last one */
	struct aw_order said; /* its answer */
	aw_u64 timeout_ns;    /* the last TIMEOUT; 0: none */
	bool storm;           /* two of them within 50 us */
	struct aw_order most; /* when the order in force was placed */
} spy;

static struct aw_order spy_order(void *state, const struct aw_params *p,
				 const struct aw_seen *seen)
{
	spy.seen = *seen;
	if (seen->why != AW_WHY_SENT)
		spy.questions++;
	if (seen->why == AW_WHY_TIMEOUT) {
		if (spy.timeout_ns && seen->now_ns - spy.timeout_ns < 50000)
			spy.storm = true;
		spy.timeout_ns = seen->now_ns;
	}
	spy.said = inner->order(state, p, seen);
	if (!aw_is_now(spy.said))
		spy.most = seen->most;
	return spy.said;
}

static struct aw_policy spy_on(const struct aw_policy *policy)
{
	struct aw_policy spied = *policy;

	inner = policy;
	spied.order = spy_order;
	return spied;
}

/* --- properties ---------------------------------------------------------- */

struct trial {
	aw_u64 canary_before[2];
	struct aw_conn conn;
	aw_u64 canary_after[2];
	struct aw_policy spied;
	const struct aw_policy *policy; /* NULL: the host alone */
	const struct aw_host *host;
	struct aw_params host_params, params;
	struct model model;
	aw_u64 owed_since_ns; /* as the harness counts it */
	struct {
		aw_u64 start_ns;
		aw_u32 bytes, flight; /* bytes: modulo 2^32 */
	} round;
	aw_u32 new_bytes, new_segments; /* since the last question */
	struct {
		aw_u32 reported; /* segments above a hole, an ACK for each */
		bool waiting;
		aw_u64 until_ns;
	} above;
	aw_u64 due_ns; /* when the order's time is up; AW_NEVER_NS: it does not run */
	bool wild;
	aw_u32 events;
	aw_u32 digest;
};

static bool found;        /* this trial violated a property */
static aw_u32 other_bits; /* random bits flipped where no one uses them */

static void violated(const struct trial *t, const struct aw_event *e, const char *claim,
		     struct aw_verdict v)
{
	found = true;
	test_failed++;
	if (test_failed > 20)
		return;
	printf("%s on %s, event %u (kind %u, seq %u, flags %#x): %s: "
	       "action %u, %s, deadline %+lld ns, by_duty %u\n",
	       t->policy ? t->policy->name : "no policy", t->host->name, t->events,
	       e->kind, e->seq, e->flags, claim, v.action, aw_reason_label(v.reason),
	       (long long)(v.deadline_ns - e->now_ns), v.by_duty);
}

static bool is_tcp(const struct trial *t)
{
	return strcmp(t->host->name, "model") != 0;
}

/* 500 ms, or the host's maximum if that is less. */
static aw_u64 longest_ns(const struct aw_event *e)
{
	if (!e->delay_max_us || e->delay_max_us > 500000)
		return 500000000;
	return e->delay_max_us * 1000ull;
}

/*
 * Segments above a hole: the first three get an ACK each, later ones share one, after
 * at most 5% of the RTT.  Call before the verdict is checked; true: this segment must
 * not wait. [D-31]
 */
static bool is_hole_duty(struct trial *t, const struct aw_event *e,
			 struct aw_verdict before)
{
	aw_u64 part_ns = (aw_u64)e->rtt_us * 50, most_ns = e->sack_delay_us * 1000ull;
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

/* True if an ACK must leave, whatever host and policy say. */
static bool is_duty(bool owed, const struct aw_event *e)
{
	bool data = e->kind == AW_EVENT_DATA;
	aw_u64 half = e->wnd_max_bytes / 2;
	aw_u64 mss = e->rcv_mss_bytes > e->mss_max_bytes ? e->rcv_mss_bytes
							 : e->mss_max_bytes;
	aw_u64 usable = mss < half ? mss : half;
	aw_u64 left =
		e->wnd_bytes < e->unacked_bytes ? 0 : e->wnd_bytes - e->unacked_bytes;
	aw_u64 gain = e->wnd_next_bytes < left ? 0 : e->wnd_next_bytes - left;
	bool only_update = !owed || e->kind == AW_EVENT_APP_READ;
	aw_u64 worth = only_update && usable ? usable : 1;

	if (data && (e->seq == AW_SEQ_FILLS || e->seq == AW_SEQ_DUPLICATE))
		return true;
	if (data && e->flags & (AW_FLAG_CE_CHANGE | AW_FLAG_FIN))
		return true;
	if (owed && e->flags & AW_FLAG_QUICKACK)
		return true;
	if (owed && e->flags & AW_FLAG_READER_WAITS &&
	    e->unacked_bytes > e->rcv_mss_bytes)
		return true;
	return (left < usable || !left) && gain >= worth;
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
		       (!v.by_duty || !strcmp(aw_reason_source(v.reason), "duty"));
	default:
		return false;
	}
}

#define MUST(condition, claim)                    \
	do {                                      \
		if (!(condition))                 \
			violated(t, e, claim, v); \
	} while (0)

/* The sender's flight: what came in a round, scaled to one RTT; discarded after an
 * RTO.  Rounds begin and end with questions. */
static void keep_round(struct trial *t, const struct aw_seen *seen)
{
	aw_u64 age_ns = seen->now_ns - t->round.start_ns;
	aw_u64 rtt_ns = seen->rtt_us * 1000ull, rto_ns = seen->rto_us * 1000ull;

	if (!rtt_ns || age_ns < rtt_ns)
		return;
	t->round.flight = (aw_u32)((aw_u64)t->round.bytes * seen->rtt_us /
				   aw_min_u64(age_ns / 1000, ~0u));
	if (rto_ns && age_ns - rtt_ns >= rto_ns)
		t->round.flight = 0;
	t->round.start_ns = seen->now_ns;
	t->round.bytes = 0;
}

/* What the policy was told, and what became of its answer. */
static void check_question(struct trial *t, const struct aw_event *e,
			   struct aw_verdict before, struct aw_verdict v,
			   aw_u64 owed_ns, aw_u32 owed_bytes)
{
	const struct aw_seen *seen = &spy.seen;
	aw_u64 share, most;

	keep_round(t, seen);
	share = t->round.flight < e->wnd_bytes ? t->round.flight : e->wnd_bytes;
	most = share / 4 > 2ull * e->rcv_mss_bytes ? share / 4
						   : 2ull * e->rcv_mss_bytes;
	if (t->conn.unbounded || most > ~0u)
		most = ~0u;
	MUST(seen->now_ns == e->now_ns && seen->first_ns == owed_ns &&
		     seen->owed_bytes == owed_bytes,
	     "told something else about what waits");
	MUST(seen->new_segments == t->new_segments && seen->new_bytes == t->new_bytes,
	     "told something else about what came");
	MUST(seen->flight_bytes == t->round.flight, "another flight");
	MUST(seen->most.bytes == most, "another share of the flight");
	if (is_tcp(t))
		MUST(seen->most.delay_ns == longest_ns(e), "another longest delay");
	t->new_segments = t->new_bytes = 0;
	if (seen->why == AW_WHY_SENT) {
		t->due_ns = AW_NEVER_NS;
		if (aw_is_now(spy.said))
			MUST(!t->conn.order.bytes && !t->conn.order.delay_ns,
			     "not the host's own order");
		return;
	}
	MUST(before.action != AW_SEND_NOW, "asked while an ACK is promised");
	MUST(spy.questions == 1, "asked twice");
	if (aw_is_now(spy.said)) {
		MUST(v.action == AW_SEND_NOW && !v.by_duty &&
			     v.reason == (spy.said.bytes > AW_REASON_WAITING &&
							  spy.said.bytes < AW_REASONS
						  ? spy.said.bytes
						  : AW_REASON_UNSTATED),
		     "later than the policy, or not its reason");
		return;
	}
	if (is_tcp(t))
		MUST(v.action == AW_SEND_NOW || owed_bytes < most,
		     "more than the clamp allows waits after a question");
	t->due_ns = AW_NEVER_NS;
	if (t->conn.order.delay_ns)
		t->due_ns = aw_min_u64(aw_add_ns(e->now_ns, t->conn.order.delay_ns),
				       aw_add_ns(owed_ns, seen->most.delay_ns));
}

/* The order in force is one that the clamp allows. */
static void check_order(struct trial *t, const struct aw_event *e, struct aw_verdict v)
{
	struct aw_order o = t->conn.order;

	if (!is_tcp(t))
		return;
	MUST(o.bytes <= spy.most.bytes, "an order of more than the clamp allows");
	MUST(o.delay_ns <= spy.most.delay_ns, "an order of more time");
	MUST(!o.delay_ns || o.delay_ns >= 50000 || o.delay_ns == spy.most.delay_ns,
	     "an order of less than 50 us");
	if (o.bytes && e->kind == AW_EVENT_DATA && v.action == AW_WAIT &&
	    !spy.questions && (e->wnd_next_bytes >= e->wnd_bytes || !e->unread_bytes))
		MUST(e->unacked_bytes < o.bytes, "the order's bytes wait on");
}

/* What is left to an order: the host's count of bytes, and its time. */
static bool is_plain_rule(const struct trial *t, const struct aw_event *e, aw_u8 reason)
{
	switch (reason) {
	case AW_REASON_SEGMENT_COUNT:
	case AW_REASON_SECOND_SEGMENT:
	case AW_REASON_EVERY_SEGMENT:
	case AW_REASON_PUSH:
	case AW_REASON_TIMER_NEAR:
	case AW_REASON_DELAY_TIMER:
		return true;
	case AW_REASON_WINDOW_UPDATE: /* bsd counts what is owed by it */
		return !strcmp(t->host->name, "bsd") && e->unacked_bytes;
	default:
		return false;
	}
}

/* The whole rule of host rfc, when no duty has its say. */
static void check_rfc(struct trial *t, const struct aw_event *e, struct aw_verdict v,
		      aw_u64 limit_ns)
{
	aw_u64 until_ns = t->due_ns;

	if (e->kind != AW_EVENT_DATA || spy.questions)
		return;
	if (!t->conn.order.bytes && e->unacked_bytes / 2 >= e->rcv_mss_bytes) {
		MUST(v.reason == AW_REASON_SECOND_SEGMENT, "the second segment waits");
		return;
	}
	if (!t->conn.order.delay_ns)
		until_ns = aw_add_ns(t->owed_since_ns, 200000000);
	else if (until_ns == AW_NEVER_NS)
		until_ns = aw_add_ns(t->owed_since_ns, t->conn.order.delay_ns);
	if (limit_ns < until_ns)
		until_ns = limit_ns;
	if (until_ns <= e->now_ns)
		MUST(v.action == AW_SEND_NOW, "later than the order's time");
	else
		MUST(v.action == AW_WAIT && v.deadline_ns == until_ns,
		     "not at the order's time");
}

static void check(struct trial *t, const struct aw_event *e, struct aw_verdict before,
		  struct aw_verdict v, struct aw_verdict alone)
{
	bool made = before.action != AW_SEND_NOW, tcp = is_tcp(t), due;
	bool hole = made && tcp && is_hole_duty(t, e, before);
	aw_u64 limit_ns = AW_NEVER_NS;
	bool owed;
	aw_u32 i;

	if (e->kind == AW_EVENT_DATA && t->owed_since_ns == AW_NEVER_NS)
		t->owed_since_ns = e->now_ns;
	if (e->kind == AW_EVENT_ACK_SENT)
		t->owed_since_ns = AW_NEVER_NS;
	owed = t->owed_since_ns != AW_NEVER_NS;
	if (tcp && owed)
		limit_ns = aw_add_ns(t->owed_since_ns, longest_ns(e));
	keep_above(t, e, made, v);
	if (tcp && owed && t->above.waiting)
		limit_ns = aw_min_u64(limit_ns, t->above.until_ns);

	MUST(is_well_formed(v), "ill-formed");
	MUST(same(v, t->conn.pending), "not the verdict in force");
	MUST(!owed || v.action != AW_NOTHING, "an ACK is forgotten");
	MUST(owed || v.action != AW_WAIT, "waits for nothing");
	MUST(v.action != AW_WAIT || v.deadline_ns <= limit_ns, "longer than allowed");
	if (e->kind == AW_EVENT_DATA)
		MUST(v.action == AW_SEND_NOW || v.deadline_ns > e->now_ns,
		     "a timer in the past");
	due = is_duty(owed, e) || hole;
	if (e->kind == AW_EVENT_ACK_SENT)
		MUST(same(v, aw_nothing()), "something is still owed");
	else if (!made)
		MUST(same(v, before), "a promise is taken back");
	else if (tcp && due)
		MUST(v.action == AW_SEND_NOW, "a duty waits");
	else if (owed && e->kind == AW_EVENT_DEADLINE && e->now_ns < before.deadline_ns)
		MUST(limit_ns <= e->now_ns
			     ? v.action == AW_SEND_NOW
			     : v.deadline_ns ==
				       aw_min_u64(before.deadline_ns, limit_ns),
		     "an early timer changes the verdict");
	else if (!strcmp(t->host->name, "rfc"))
		check_rfc(t, e, v, limit_ns);

	/* whatever the host sends at once without a policy, it sends at once with one */
	if (made && alone.action == AW_SEND_NOW && !is_plain_rule(t, e, alone.reason))
		MUST(v.action == AW_SEND_NOW, "the host alone would send");
	if (tcp && !t->wild)
		MUST(!spy.storm, "two timeouts within 50 us");
	if (t->policy)
		check_order(t, e, v);

	MUST(t->canary_before[0] == 0x5a5a && t->canary_after[1] == 0xa5a5 &&
		     t->canary_before[1] == 1 && t->canary_after[0] == 2,
	     "wrote outside of the connection");
	for (i = t->policy ? t->spied.state_bytes : 0; i < AW_STATE_MAX_BYTES; i++)
		MUST(!((aw_u8 *)t->conn.state)[i], "wrote outside of its state");
	MUST(t->conn.policy == (t->policy ? &t->spied : NULL) &&
		     t->conn.params == &t->params && t->conn.host == t->host,
	     "wrote over the connection");
}

/* Events that no correct driver sends must not break anything either. */
static void wild_event(struct model *m, aw_u8 op, aw_u8 size, struct aw_event *e)
{
	aw_u32 seed = m->random ^ (aw_u32)op << 8 ^ size;
	aw_u32 *words = (aw_u32 *)(void *)e;
	aw_u32 i;

	seed |= 1;
	for (i = 0; i < sizeof(*e) / 4; i++)
		words[i] = model_next(&seed) >> model_next(&seed) % 32;
	m->now_ns += model_next(&seed) >> model_next(&seed) % 32;
	m->random = model_next(&seed);
	e->now_ns = m->now_ns;
	e->rcv_mss_bytes = aw_max_u32(e->rcv_mss_bytes, 1);
	e->segments = (aw_u16)aw_max_u32(e->segments, 1);
	e->kind = op % (AW_EVENT_KINDS + 1);
	e->seq = size % (AW_SEQS + 1);
}

/* The host would have changed nothing on a read that it is not told about. */
static void needless_read(struct trial *t, const struct aw_event *e)
{
	struct aw_verdict v = t->conn.pending;
	struct aw_conn copy = t->conn;

	if (e->kind != AW_EVENT_APP_READ || !e->bytes || t->wild ||
	    t->conn.owed_since_ns != AW_NEVER_NS || e->unacked_bytes ||
	    aw_wnd_worth_update(aw_wnd_left(e), aw_wnd_slide(e), e->wnd_max_bytes,
				e->rcv_mss_bytes))
		return;
	v = t->host->on_app_read(&copy, e);
	MUST(v.action == t->conn.pending.action &&
		     !memcmp(&copy, &t->conn, sizeof(copy)),
	     "a read that is worth no update is answered");
}

/* Does anyone read wnd_next_bytes?  See aw_wnd_use. */
static bool wnd_next_matters(const struct trial *t, const struct aw_event *e)
{
	const struct aw_conn *conn = &t->conn;
	aw_u64 left =
		e->wnd_bytes < e->unacked_bytes ? 0 : e->wnd_bytes - e->unacked_bytes;
	aw_u64 may = conn->order.bytes ? conn->order.bytes - 1 : e->rcv_mss_bytes;

	if (left < aw_wnd_unusable(e) || t->host->wnd_use == AW_WND_USE_ALWAYS)
		return true;
	if (t->host->wnd_use == AW_WND_USE_NEVER)
		return false;
	if (e->kind == AW_EVENT_DATA) /* the first order is placed with this event */
		return (e->unacked_bytes > may || !conn->account.last_ns) &&
		       e->unread_bytes && !(e->flags & AW_FLAG_READER_WAITS);
	return e->kind == AW_EVENT_APP_READ && left <= e->wnd_max_bytes / 2;
}

/* The same host at the same moment, without a policy. */
static struct aw_verdict without_policy(const struct aw_conn *conn,
					const struct aw_event *e)
{
	struct aw_conn alone = *conn;

	alone.policy = NULL;
	alone.order = aw_order(0, 0);
	alone.due_ns = AW_NEVER_NS;
	return aw_decide(&alone, e);
}

static void step(struct trial *t, const struct aw_event *given)
{
	struct aw_verdict before = t->conn.pending, v, alone;
	struct aw_event other = *given, *e = &other;
	aw_u64 owed_ns = t->owed_since_ns;
	aw_u32 owed_bytes = t->conn.unacked_bytes;
	bool first = !t->conn.account.last_ns && e->kind == AW_EVENT_DATA;

	if (!(t->policy && t->spied.uses_random))
		e->random ^= other_bits;
	/* fields that no one reads may have any value that the interface allows */
	if (other_bits && e->kind < AW_EVENT_KINDS && e->kind != AW_EVENT_ACK_SENT &&
	    !wnd_next_matters(t, e))
		e->wnd_next_bytes = aw_wnd_left(e);
	if (other_bits && e->kind == AW_EVENT_ACK_SENT)
		e->flags &= AW_FLAG_PIGGYBACK;
	needless_read(t, e);
	alone = without_policy(&t->conn, e);
	spy.questions = 0;
	spy.seen.now_ns = 0;
	spy.storm = false;
	if (e->kind == AW_EVENT_DATA) {
		if (first) /* the first question came before this data */
			t->round.flight = 0, t->round.bytes = 0;
		t->new_segments += e->segments;
		if (e->seq == AW_SEQ_IN || e->seq == AW_SEQ_FILLS) {
			t->new_bytes += e->bytes;
			t->round.bytes += e->bytes;
		}
		if (owed_ns == AW_NEVER_NS)
			owed_ns = e->now_ns;
		owed_bytes = e->unacked_bytes;
	} else if (e->kind != AW_EVENT_ACK_SENT) {
		owed_bytes = e->unacked_bytes;
	}
	v = aw_decide(&t->conn, e);
	if (e->kind < AW_EVENT_KINDS) {
		if (t->policy && first && e->rtt_us &&
		    e->now_ns - t->round.start_ns >= e->rtt_us * 1000ull)
			t->round.start_ns = e->now_ns;
		if (t->policy && spy.seen.now_ns &&
		    !(first && spy.seen.why == AW_WHY_SENT))
			check_question(t, e, before, v, owed_ns, owed_bytes);
		check(t, e, before, v, alone);
	}
	t->digest =
		(t->digest ^ v.action ^ (aw_u32)v.reason << 8 ^ (aw_u32)v.deadline_ns) *
		16777619;
	t->events++;
}

/* Each policy, then none, then the one that answers at random. */
static const struct aw_policy *policy_number(aw_u8 n)
{
	aw_u32 count = listed_count();

	n %= count + 2;
	return n <= count ? listed_at(n) : &random_policy;
}

static const struct aw_host *host_number(aw_u8 n)
{
	const struct aw_host *host;
	aw_u32 count;

	for (count = 0; aw_host_at(count);)
		count++;
	host = aw_host_at(n % count);
	return host;
}

/* Every trial ends with all data acknowledged. */
static void drain(struct trial *t)
{
	struct aw_event e;
	aw_u32 i;

	for (i = 0; i < 1000 && t->conn.pending.action != AW_NOTHING; i++) {
		if (t->conn.pending.deadline_ns == AW_NEVER_NS &&
		    t->conn.pending.action == AW_WAIT && !is_tcp(t))
			return;
		model_event(&t->model,
			    t->conn.pending.action == AW_WAIT ? MODEL_DUE : MODEL_SENT,
			    0, &t->conn.pending, &e);
		step(t, &e);
	}
	if (i == 1000)
		violated(t, &e, "never acknowledged", t->conn.pending);
}

static void set_params(const struct aw_param *list, aw_u32 count, aw_u8 choice,
		       struct aw_params *p)
{
	aw_u32 i;

	aw_params_init(list, count, p);
	for (i = 0; i < count; i++)
		if (choice >> i % 4 & 1)
			p->value[i] = choice >> 4 & 1 ? list[i].max : list[i].min;
}

/* bytes: policy, host, shape of the socket, parameters, flags (1: wild events, 2: no
 * bound of flight and window); then events. */
static aw_u32 run(const aw_u8 *bytes, size_t count)
{
	static struct trial trial; /* its bytes must not depend on the stack */
	struct trial *t = &trial;
	struct aw_event e = { .now_ns = AW_NS_PER_S };
	size_t i;

	memset(t, 0, sizeof(*t));
	memset(&spy, 0, sizeof(spy));
	t->canary_before[0] = 0x5a5a;
	t->canary_before[1] = 1;
	t->canary_after[0] = 2;
	t->canary_after[1] = 0xa5a5;
	t->owed_since_ns = AW_NEVER_NS;
	t->due_ns = AW_NEVER_NS;
	t->digest = 2166136261u;
	t->wild = bytes[4] & 1;
	t->policy = policy_number(bytes[0]);
	t->host = host_number(bytes[1]);
	set_params(t->host->params, t->host->params_count, bytes[3], &t->host_params);
	if (t->policy) {
		t->spied = spy_on(t->policy);
		set_params(t->policy->params, t->policy->params_count, bytes[3],
			   &t->params);
	}
	model_start(&t->model, bytes[2]);
	/* the phase of bsd's timer */
	e.random = t->host->uses_random || (t->policy && t->policy->uses_random)
			   ? model_next(&t->model.random)
			   : other_bits;
	t->round.start_ns = e.now_ns;
	aw_conn_init(&t->conn, t->host, &t->host_params, t->policy ? &t->spied : NULL,
		     &t->params, &e);
	t->conn.unbounded |= bytes[4] >> 1 & 1;
	for (i = CONFIG_BYTES; i + 1 < count; i += 2) {
		if (t->wild)
			wild_event(&t->model, bytes[i], bytes[i + 1], &e);
		else
			model_event(&t->model, bytes[i], bytes[i + 1], &t->conn.pending,
				    &e);
		step(t, &e);
	}
	if (!t->wild)
		drain(t);
	return t->digest;
}

static void trial(const aw_u8 *bytes, size_t count)
{
	aw_u32 first;

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
int LLVMFuzzerTestOneInput(const aw_u8 *bytes, size_t count);

int LLVMFuzzerTestOneInput(const aw_u8 *bytes, size_t count)
{
	trial(bytes, count);
	if (found)
		abort();
	return 0;
}
#else
#define LENGTH 4

static bool until_first_failure;

static void try(const aw_u8 *bytes, size_t count)
{
	trial(bytes, count);
	if (until_first_failure && test_failed)
		exit(test_end());
}

static void all_short_sequences(void)
{
	/* size: time step in the upper 3 bits (3: 1 ms, 6: 250 ms) */
	static const aw_u8 alphabet[][2] = {
		{ MODEL_SEGMENT, 0x60 }, { MODEL_SEGMENT, 0xc0 },
		{ MODEL_MERGED, 0x64 },  { MODEL_SMALL, 0x61 },
		{ MODEL_HOLE, 0x60 },    { MODEL_FILLS, 0x60 },
		{ MODEL_DUPLICATE, 0 },  { MODEL_CE, 0 },
		{ MODEL_FIN, 0 },        { MODEL_READ_ALL, 0x60 },
		{ MODEL_READ_PART, 1 },  { MODEL_SENT, 0 },
		{ MODEL_PIGGYBACK, 0 },  { MODEL_DUE, 0 },
		{ MODEL_EARLY, 0 },      { MODEL_WAITS, 0x60 },
	};
	const aw_u32 letters = sizeof(alphabet) / sizeof(alphabet[0]);
	static const aw_u8 shapes[] = { 0x00, 0x09, 0x1a };
	aw_u8 bytes[CONFIG_BYTES + 2 * LENGTH] = { 0 };
	aw_u32 sequences = 1, n, i, rest, shape;

	for (i = 0; i < LENGTH; i++)
		sequences *= letters;
	for (bytes[0] = 0; bytes[0] <= listed_count() + 1; bytes[0]++) {
		for (shape = 0; shape < sizeof(shapes); shape++) {
			bytes[1] = (aw_u8)(bytes[0] + shape); /* hosts in turn */
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

static void long_random_sequences(aw_u32 trials)
{
	aw_u8 bytes[CONFIG_BYTES + 600];
	aw_u32 seed = 20240601, length, i;

	while (trials--) {
		length = CONFIG_BYTES + model_next(&seed) % 600;
		for (i = 0; i < length; i++)
			bytes[i] = (aw_u8)(model_next(&seed) >> 11);
		try(bytes, length);
	}
}

/* prop_orders [TRIALS [first]]; first: ends at the first failure */
int main(int argc, char **argv)
{
	until_first_failure = argc > 2 && !strcmp(argv[2], "first");
	all_short_sequences();
	long_random_sequences(argc > 1 ? (aw_u32)atoi(argv[1]) : 20000);
	return test_end();
}
#endif
