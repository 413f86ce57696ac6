/* SPDX-License-Identifier: MIT */
/*
 * aw_decide() on one host with a policy that answers anything: if what valid() says
 * holds before an event, so does it after, with the properties below.  aw_conn_init()
 * makes it hold (START).  So the proof is of any number of events.
 *
 * HOST: the host.  EVENT: the kind of event, one proof each; ALONE: only the host
 * beside itself without a policy; START: the beginning.
 *
 * Assumes, of the socket:
 *	times do not go back, begin at 1 ns and end after 290 years;
 *	the MSS is at least a byte, and a longest delay at least 50 us;
 *	segments above a hole wait for less than 65 ms (the type says so).
 * Assumes of the policy: nothing; it may also write any state.
 * Assumes of quotients: see proof.h.
 *
 * Proves:
 *	time      an ACK that is owed leaves by the longest delay that event and clamp
 *	          allow, counted from the oldest data; no timer is armed in the past
 *	bytes     what waits after data is less than an order of the clamp's size,
 *	          unless the host could not send (its window cannot move)
 *	at once   what the host alone would send at once, it sends at once; open for
 *	          data and reads on bsd
 *	promise   "send now" ends with an ACK, not before
 *	storm     between two questions of TIMEOUT are 50 us at least
 *	order     the order in force is one of the clamp's
 *	question  one for each event at most, none while an ACK is promised
 */
#include <ackwise/host.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define THE_HOST JOIN(aw_host_, HOST)

extern const struct aw_host THE_HOST;
struct aw_conn any_conn(void);
struct aw_event any_event(void);
struct aw_params any_params(void);

static aw_u64 asked_ns;             /* the last TIMEOUT; 0: none */
static aw_u64 last_ns;              /* the event before */
static struct aw_order placed_most; /* the clamp, when the order in force was placed */
static unsigned questions;
static bool storm, said_now, alone;
static aw_u32 most_bytes;

static struct aw_order answer(void *state, const struct aw_params *p,
			      const struct aw_seen *seen)
{
	struct aw_order o = { any_u32(), any_u32() };
	aw_u64 *words = state;

	(void)p;
	PROVE(!alone, "a host alone asks no one");
	words[0] = any_u64();
	words[AW_STATE_MAX_BYTES / 8 - 1] = any_u64();
	PROVE(seen->mss_bytes, "an MSS");
	PROVE(seen->most.delay_ns <= AW_DELAY_MAX_NS, "the clamp of the answer");
	if (seen->why != AW_WHY_SENT)
		questions++;
	if (seen->why == AW_WHY_TIMEOUT) {
		if (asked_ns && seen->now_ns < asked_ns + AW_DELAY_MIN_NS)
			storm = true;
		asked_ns = seen->now_ns;
	}
	said_now = aw_is_now(o) && seen->why != AW_WHY_SENT;
	most_bytes = seen->most.bytes;
	if (!aw_is_now(o))
		placed_most = seen->most;
	return o;
}

static const struct aw_policy policy = {
	.name = "any",
	.summary = "answers anything",
	.source = "none",
	.state_bytes = AW_STATE_MAX_BYTES,
	.asked_on_read = 1,
	.reads_arrivals = 1,
	.order = answer,
};

/* What holds between two events: assumed before one, proved after it. */
#define HOLDS(condition, claim)                  \
	do {                                     \
		if (proving)                     \
			PROVE(condition, claim); \
		else                             \
			ASSUME(condition);       \
	} while (0)

static void valid(const struct aw_conn *c, bool proving)
{
	bool owed = c->owed_since_ns != AW_NEVER_NS, timed = c->order.delay_ns;
	bool runs = c->due_ns != AW_NEVER_NS;
	struct aw_verdict v = c->pending;

	HOLDS(v.by_duty <= 1 && !v.reserved && !v.reserved_word, "well-formed");
	HOLDS(v.action < AW_ACTIONS, "an action");
	if (v.action == AW_NOTHING)
		HOLDS(!owed && v.deadline_ns == AW_NEVER_NS &&
			      v.reason == AW_REASON_NONE,
		      "no ACK is forgotten");
	if (v.action == AW_WAIT)
		HOLDS(owed && v.reason == AW_REASON_WAITING, "no wait for nothing");
	if (v.action == AW_WAIT && !v.by_duty && timed)
		HOLDS(v.deadline_ns == c->due_ns, "the order's deadline");
	if (v.action == AW_SEND_NOW)
		HOLDS(v.deadline_ns == AW_NEVER_NS && v.reason > AW_REASON_WAITING &&
			      v.reason < AW_REASONS,
		      "an ACK has a reason");
	HOLDS(!owed || c->owed_since_ns <= last_ns, "owed since the past");
	HOLDS(owed || !runs, "no time without data");
	HOLDS(c->account.last_ns <= last_ns && c->flight.start_ns <= last_ns &&
		      asked_ns <= last_ns,
	      "times of the past");
	HOLDS(c->account.last_ns || (!c->order.bytes && !timed && !owed),
	      "no order before the first data");
	HOLDS(c->order.bytes <= placed_most.bytes, "order: bytes of the clamp");
	HOLDS(c->order.delay_ns <= AW_DELAY_MAX_NS, "order: time of the clamp");
	HOLDS(!timed || c->order.delay_ns >= AW_DELAY_MIN_NS, "order: 50 us");
	if (asked_ns && timed && owed && v.action == AW_WAIT)
		HOLDS(runs ? c->due_ns >= asked_ns + AW_DELAY_MIN_NS
			   : c->owed_since_ns >= asked_ns,
		      "the next TIMEOUT is far from the last");
	HOLDS(c->compress.duplicate_acks <= 3 && c->news <= AW_NEWS_EVENT &&
		      c->unbounded <= 1,
	      "small numbers");
}

/* What an order stands for: the host's count of bytes, and its time. */
static bool is_plain_rule(const struct aw_event *e, aw_u8 reason)
{
	return reason == AW_REASON_SEGMENT_COUNT ||
	       reason == AW_REASON_SECOND_SEGMENT || reason == AW_REASON_PUSH ||
	       reason == AW_REASON_TIMER_NEAR || reason == AW_REASON_DELAY_TIMER ||
	       /* bsd counts what is owed by the window */
	       (reason == AW_REASON_WINDOW_UPDATE &&
		THE_HOST.wnd_use == AW_WND_USE_ALWAYS && e->unacked_bytes);
}

int main(void)
{
	struct aw_params host_params = any_params(), params;
	struct aw_conn conn = any_conn(), without;
	struct aw_event e = any_event();
	struct aw_verdict before, v, v_alone;
	aw_u64 longest_ns = 500000000;
	bool owed;

	/* bsd: the period, in its range */
	ASSUME(host_params.value[1] >= 1 && host_params.value[1] <= 1000);
	ASSUME(e.now_ns >= 1 && e.now_ns < 1ull << 63);
	ASSUME(e.rcv_mss_bytes >= 1 && e.segments >= 1);
	ASSUME(!e.delay_max_us || e.delay_max_us >= AW_DELAY_MIN_NS / 1000);

#ifdef START
	aw_conn_init(&conn, &THE_HOST, &host_params, &policy, &params, &e);
	last_ns = e.now_ns;
	valid(&conn, true);
	PROVE(conn.pending.action == AW_NOTHING, "with nothing to do");
	return 0;
#else
	conn.host = &THE_HOST;
	conn.host_params = &host_params;
	conn.params = &params;
	conn.policy = &policy;
	last_ns = any_u64();
	asked_ns = any_u64();
	placed_most.bytes = any_u32();
	ASSUME(last_ns <= e.now_ns);
	valid(&conn, false);
	e.kind = EVENT;
	ASSUME(e.seq < AW_SEQS);

	before = conn.pending;
#ifdef ALONE
	without = conn;
	without.policy = NULL;
	without.order = aw_order(0, 0);
	without.due_ns = AW_NEVER_NS;
	alone = true;
	v_alone = aw_decide(&without, &e);
	alone = false;
#endif
	v = aw_decide(&conn, &e);
#ifdef ALONE
	if (before.action != AW_SEND_NOW && v_alone.action == AW_SEND_NOW &&
	    !is_plain_rule(&e, v_alone.reason))
		PROVE(v.action == AW_SEND_NOW, "at once");
	return 0;
#endif
	last_ns = e.now_ns;

	owed = conn.owed_since_ns != AW_NEVER_NS;
	if (e.delay_max_us && e.delay_max_us * AW_NS_PER_US < longest_ns)
		longest_ns = e.delay_max_us * AW_NS_PER_US;

	valid(&conn, true);
	PROVE(v.action == conn.pending.action &&
		      v.deadline_ns == conn.pending.deadline_ns,
	      "the verdict in force");
	PROVE(e.kind != AW_EVENT_DATA || owed, "data is owed an ACK");
	if (v.action == AW_WAIT && before.action != AW_SEND_NOW) {
		PROVE(v.deadline_ns <= conn.owed_since_ns + longest_ns ||
			      (e.kind == AW_EVENT_ACK_SENT),
		      "time");
		if (e.kind == AW_EVENT_DATA)
			PROVE(v.deadline_ns > e.now_ns, "no timer in the past");
	}
	if (e.kind == AW_EVENT_DATA && v.action == AW_WAIT && conn.order.bytes &&
	    (e.wnd_next_bytes >= e.wnd_bytes || !e.unread_bytes))
		PROVE(e.unacked_bytes < (questions ? most_bytes : conn.order.bytes),
		      "bytes");
	if (before.action == AW_SEND_NOW && e.kind != AW_EVENT_ACK_SENT)
		PROVE(v.action == AW_SEND_NOW && v.reason == before.reason, "promise");
	if (e.kind == AW_EVENT_ACK_SENT)
		PROVE(v.action == AW_NOTHING || v.action == before.action, "sent");
	PROVE(!storm, "storm");
	PROVE(questions <= 1, "one question");
	PROVE(!questions || before.action != AW_SEND_NOW, "question");
	if (said_now)
		PROVE(v.action == AW_SEND_NOW, "now is now");
	return 0;
#endif
}
