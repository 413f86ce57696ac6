/* SPDX-License-Identifier: MIT */
/*
 * Tables worked out by hand.
 *
 *	PLAY  a socket on a host: each step is an event and the expected verdict.  The
 *	      socket tracks bytes and window, and sends an ACK as soon as the verdict
 *	      says so, like every driver.
 *	ASK   a policy alone: each row is a question and the expected answer.
 */
#ifndef ACKWISE_TEST_SCRIPT_H
#define ACKWISE_TEST_SCRIPT_H

#include <string.h>
#include <ackwise/ackwise.h>
#include "listed.h"
#include "test.h"

#define MSS 1460u
#define US(n) ((aw_u64)((n)*1e3))
#define MS(n) ((aw_u64)((n)*1e6))
/* Times of tables count from here: 0 would mean "none yet" to a policy. */
#define START_NS (1000 * AW_NS_PER_S)

struct setting {
	const char *name;
	aw_u32 value;
};

struct sock {
	const char *policy;    /* NULL: the host alone */
	const char *host;      /* "rfc" unless given */
	struct setting set[5]; /* of the policy or, without one, of the host */
	aw_u8 clamp;           /* 1: flight and window bound orders */
	aw_u32 wnd_max_bytes;  /* 1 MB unless given */
	aw_u32 mss_bytes;      /* MSS unless given */
	aw_u32 rtt_us, rto_us, delay_max_us, random;

	/* kept by sock_*() */
	struct aw_params params, host_params;
	struct aw_conn conn;
	aw_u32 unacked_bytes, wnd_bytes;
	unsigned acks;
};

struct step {
	aw_u8 kind, seq;
	aw_u16 flags, segments;
	aw_u64 at_ns;
	aw_u32 bytes, unread_bytes;
	/* the same event, repeated: times in all, every_ns apart */
	aw_u32 times;
	aw_u64 every_ns;

	/* expected */
	aw_u8 action, reason, by_duty;
	aw_u64 until_ns;
};

/* clang-format off */
#define IN(at) .kind = AW_EVENT_DATA, .at_ns = at, .bytes = MSS
#define PART(at, n) .kind = AW_EVENT_DATA, .at_ns = at, .bytes = n
#define READ(at, n) .kind = AW_EVENT_APP_READ, .at_ns = at, .bytes = n
#define TIMER(at) .kind = AW_EVENT_DEADLINE, .at_ns = at
#define SENT(at) .kind = AW_EVENT_ACK_SENT, .at_ns = at
#define NOW(name) .action = AW_SEND_NOW, .reason = AW_REASON_##name
#define DUTY(name) NOW(name), .by_duty = 1
#define WAIT(until)                                               \
	.action = AW_WAIT, .reason = AW_REASON_WAITING,           \
	.until_ns = until
#define NOTHING .action = AW_NOTHING, .reason = AW_REASON_NONE
/* clang-format on */

/* Sets parameters by name. */
static inline void set_all(const char *whose, const struct aw_param *list, aw_u32 count,
			   const struct setting *set, struct aw_params *params)
{
	unsigned i, j;

	aw_params_init(list, count, params);
	for (i = 0; i < 5 && set[i].name; i++) {
		for (j = 0; j < count; j++)
			if (!strcmp(list[j].name, set[i].name))
				break;
		CHECK(j < count, "%s has no %s", whose, set[i].name);
		params->value[j % AW_PARAMS_MAX] = set[i].value;
	}
}

static inline void sock_fill(const struct sock *h, const struct step *s,
			     struct aw_event *e)
{
	aw_u32 room = h->wnd_max_bytes > s->unread_bytes
			      ? h->wnd_max_bytes - s->unread_bytes
			      : 0;

	memset(e, 0, sizeof(*e));
	e->now_ns = START_NS + s->at_ns;
	e->random = h->random;
	e->bytes = s->bytes;
	e->unacked_bytes = h->unacked_bytes;
	e->unread_bytes = s->unread_bytes;
	e->wnd_bytes = h->wnd_bytes;
	/* the right edge of the window never moves back (RFC 9293, 3.8.6) */
	e->wnd_next_bytes = aw_max_u32(room, aw_wnd_left(e));
	e->wnd_max_bytes = h->wnd_max_bytes;
	e->rcv_mss_bytes = h->mss_bytes;
	e->rtt_us = h->rtt_us;
	e->rto_us = h->rto_us;
	e->delay_max_us = h->delay_max_us;
	e->segments = s->segments ? s->segments : 1;
	e->flags = s->flags;
	e->kind = s->kind;
	e->seq = s->seq;
}

static inline void sock_open(struct sock *h)
{
	const struct aw_policy *policy = h->policy ? listed_find(h->policy) : NULL;
	const struct aw_host *host = aw_host_find(h->host ? h->host : "rfc");
	static const struct setting none[5];
	struct step start = { 0 };
	struct aw_event e;

	CHECK(host && !h->policy == !policy, "%s", h->policy ? h->policy : h->host);
	if (!h->wnd_max_bytes)
		h->wnd_max_bytes = 1000000;
	if (!h->mss_bytes)
		h->mss_bytes = MSS;
	h->wnd_bytes = h->wnd_max_bytes;
	h->unacked_bytes = 0;
	h->acks = 0;
	set_all(host->name, host->params, host->params_count, policy ? none : h->set,
		&h->host_params);
	if (policy)
		set_all(policy->name, policy->params, policy->params_count, h->set,
			&h->params);
	sock_fill(h, &start, &e);
	aw_conn_init(&h->conn, host, &h->host_params, policy, &h->params, &e);
	h->conn.unbounded |= !h->clamp;
}

/* One event; sends an ACK if the verdict says so.  The deadline counts from START_NS. */
static inline struct aw_verdict sock_step(struct sock *h, const struct step *s)
{
	struct step sent = { .kind = AW_EVENT_ACK_SENT,
			     .at_ns = s->at_ns,
			     .unread_bytes = s->unread_bytes };
	struct aw_verdict v;
	struct aw_event e;

	if (s->kind == AW_EVENT_DATA && (s->seq == AW_SEQ_IN || s->seq == AW_SEQ_FILLS))
		h->unacked_bytes += s->bytes;
	sock_fill(h, s, &e);
	if (s->kind == AW_EVENT_ACK_SENT) {
		h->unacked_bytes = 0;
		h->wnd_bytes = e.wnd_next_bytes;
		h->acks++;
		sock_fill(h, s, &e);
	}
	v = aw_decide(&h->conn, &e);
	if (v.action == AW_SEND_NOW)
		sock_step(h, &sent);
	if (v.deadline_ns != AW_NEVER_NS)
		v.deadline_ns -= START_NS;
	return v;
}

/* A value that the policy's observe() reports. */
static inline aw_u32 sock_observe(const struct sock *h, const char *name)
{
	const struct aw_policy *policy = h->conn.policy;
	aw_u32 out[AW_VALUES_MAX] = { 0 };
	unsigned i;

	for (i = 0; i < policy->values_count; i++)
		if (!strcmp(policy->values[i].name, name))
			break;
	CHECK(i < policy->values_count, "%s has no value %s", h->policy, name);
	policy->observe(h->conn.state, h->conn.params, out);
	return out[i % AW_VALUES_MAX];
}

static inline void sock_play(const char *claim, struct sock *h,
			     const struct step *steps, unsigned count)
{
	struct aw_verdict v;
	struct step s;
	unsigned i, n;

	sock_open(h);
	for (i = 0; i < count; i++) {
		for (n = 0; n < aw_max_u32(steps[i].times, 1); n++) {
			s = steps[i];
			s.at_ns += n * s.every_ns;
			if (s.action != AW_WAIT)
				s.until_ns = AW_NEVER_NS;
			v = sock_step(h, &s);
			CHECK(v.action == s.action && v.reason == s.reason &&
				      v.by_duty == s.by_duty &&
				      v.deadline_ns == s.until_ns,
			      "%s: %s: step %u (%u): %u %s %u at %.6f, "
			      "expected %u %s %u at %.6f ms",
			      h->policy ? h->policy : h->host, claim, i, n, v.action,
			      aw_reason_label(v.reason), v.by_duty,
			      (double)v.deadline_ns / 1e6, s.action,
			      aw_reason_label(s.reason), s.by_duty,
			      (double)s.until_ns / 1e6);
		}
	}
}

/* PLAY("claim", { .policy = ... }, steps): a socket and its events. */
#define PLAY(claim, setup, ...)                                                       \
	do {                                                                          \
		struct sock sock_ = { SETUP setup };                                  \
		const struct step steps_[] = { __VA_ARGS__ };                         \
		sock_play(claim, &sock_, steps_, sizeof(steps_) / sizeof(steps_[0])); \
	} while (0)
#define SETUP(...) __VA_ARGS__

/* A question: what was seen, and the answer that is expected.  Times count from
 * START_NS; the last arrival and the oldest that waits are now unless given. */
struct asked {
	struct aw_seen seen;
	struct aw_order answer;
	aw_u32 times; /* the same question and answer, repeated */
};

struct mind {
	const char *policy;
	struct setting set[5];
	aw_u32 random;
};

/* clang-format off */
#define QUESTION(w, at) .seen.why = AW_WHY_##w, .seen.now_ns = at
#define ORDER(n, delay) .answer = { n, (aw_u32)(delay) }
#define ANSWER_NOW(name) .answer = { AW_REASON_##name, AW_NOW_NS }
/* clang-format on */

static inline void mind_ask(const char *claim, const struct mind *m,
			    const struct aw_seen *usual, const struct asked *rows,
			    unsigned count)
{
	const struct aw_policy *policy = listed_find(m->policy);
	aw_u64 state[AW_STATE_MAX_BYTES / 8] = { 0 };
	struct aw_params params;
	struct aw_seen seen;
	struct aw_order o;
	unsigned i, n;

	set_all(policy->name, policy->params, policy->params_count, m->set, &params);
	if (policy->init)
		policy->init(state, &params, m->random);
	for (i = 0; i < count; i++) {
		seen = rows[i].seen;
		seen.now_ns += START_NS;
		seen.last_ns = seen.last_ns ? START_NS + seen.last_ns : seen.now_ns;
		seen.first_ns = seen.first_ns ? START_NS + seen.first_ns : seen.now_ns;
		seen.mss_bytes = seen.mss_bytes ? seen.mss_bytes : usual->mss_bytes;
		seen.wnd_bytes = seen.wnd_bytes ? seen.wnd_bytes : usual->wnd_bytes;
		seen.rtt_us = seen.rtt_us ? seen.rtt_us : usual->rtt_us;
		if (!seen.flight_bytes)
			seen.flight_bytes = usual->flight_bytes;
		seen.most = aw_order(~0u, AW_DELAY_MAX_NS);
		for (n = 0; n < aw_max_u32(rows[i].times, 1); n++) {
			o = policy->order(state, &params, &seen);
			CHECK(o.bytes == rows[i].answer.bytes &&
				      o.delay_ns == rows[i].answer.delay_ns,
			      "%s: %s: row %u (%u): { %u, %u }, expected { %u, %u }",
			      m->policy, claim, i, n, o.bytes, o.delay_ns,
			      rows[i].answer.bytes, rows[i].answer.delay_ns);
		}
	}
}

/* ASK("claim", { .policy = ... }, { .rtt_us = ... }, rows): a policy's own answers;
 * MSS and a window of 1 MB unless given. */
#define ASK(claim, setup, common, ...)                                            \
	do {                                                                      \
		const struct mind mind_ = { SETUP setup };                        \
		struct aw_seen usual_ = { SETUP common };                         \
		const struct asked rows_[] = { __VA_ARGS__ };                     \
		usual_.mss_bytes = usual_.mss_bytes ? usual_.mss_bytes : MSS;     \
		usual_.wnd_bytes = usual_.wnd_bytes ? usual_.wnd_bytes : 1000000; \
		mind_ask(claim, &mind_, &usual_, rows_,                           \
			 sizeof(rows_) / sizeof(rows_[0]));                       \
	} while (0)

#endif /* ACKWISE_TEST_SCRIPT_H */
