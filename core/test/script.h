/* SPDX-License-Identifier: MIT */
/*
 * A receiving host in a table: each step is one event and the expected verdict.
 * The host tracks bytes and window, and sends an ACK as soon as the verdict says
 * so, like every driver.
 */
#ifndef ACKWISE_TEST_SCRIPT_H
#define ACKWISE_TEST_SCRIPT_H

#include <string.h>
#include <ackwise/ackwise.h>
#include "test.h"

#define MSS 1460u
#define US(n) ((u64)((n)*1e3))
#define MS(n) ((u64)((n)*1e6))

struct setting {
	const char *name;
	u32 value;
};

struct host {
	const char *policy;
	struct setting set[5];
	u32 rails;
	u32 wnd_max_bytes; /* 1 MB unless given */
	u32 mss_bytes;     /* MSS unless given */
	u32 rtt_us, rto_us, delay_max_us, random;

	/* kept by host_*() */
	struct aw_params params;
	struct aw_conn conn;
	u32 unacked_bytes, wnd_bytes;
	unsigned acks;
};

struct step {
	u8 kind, order;
	u16 flags, segments;
	u64 at_ns;
	u32 bytes, unread_bytes;
	/* the same event, repeated: times in all, every_ns apart */
	u32 times;
	u64 every_ns;

	/* expected */
	u8 action, reason, by_rail;
	u64 until_ns;
};

/* clang-format off */
#define IN(at) .kind = AW_EVENT_DATA, .at_ns = at, .bytes = MSS
#define PART(at, n) .kind = AW_EVENT_DATA, .at_ns = at, .bytes = n
#define READ(at, n) .kind = AW_EVENT_APP_READ, .at_ns = at, .bytes = n
#define TIMER(at) .kind = AW_EVENT_DEADLINE, .at_ns = at
#define SENT(at) .kind = AW_EVENT_ACK_SENT, .at_ns = at
#define NOW(name) .action = AW_SEND_NOW, .reason = AW_REASON_##name
#define RAIL(name) NOW(name), .by_rail = 1
#define WAIT(until)                                               \
	.action = AW_WAIT, .reason = AW_REASON_WAITING,           \
	.until_ns = until
#define NOTHING .action = AW_NOTHING, .reason = AW_REASON_NONE
/* clang-format on */

static inline void host_fill(const struct host *h, const struct step *s,
			     struct aw_event *e)
{
	u32 room = h->wnd_max_bytes > s->unread_bytes
			   ? h->wnd_max_bytes - s->unread_bytes
			   : 0;

	memset(e, 0, sizeof(*e));
	e->now_ns = s->at_ns;
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
	e->order = s->order;
}

static inline void host_open(struct host *h)
{
	const struct aw_policy *policy = aw_policy_find(h->policy);
	struct step start = { 0 };
	struct aw_event e;
	unsigned i, j;

	if (!h->wnd_max_bytes)
		h->wnd_max_bytes = 1000000;
	if (!h->mss_bytes)
		h->mss_bytes = MSS;
	h->wnd_bytes = h->wnd_max_bytes;
	h->unacked_bytes = 0;
	h->acks = 0;
	aw_params_init(policy, &h->params);
	for (i = 0; i < 5 && h->set[i].name; i++) {
		for (j = 0; j < policy->params_count; j++)
			if (!strcmp(policy->params[j].name, h->set[i].name))
				break;
		CHECK(j < policy->params_count, "%s has no %s", h->policy,
		      h->set[i].name);
		h->params.value[j] = h->set[i].value;
	}
	host_fill(h, &start, &e);
	aw_conn_init(&h->conn, policy, &h->params, h->rails, &e);
}

/* One event; sends an ACK if the verdict says so. */
static inline struct aw_verdict host_step(struct host *h, const struct step *s)
{
	struct step sent = { .kind = AW_EVENT_ACK_SENT,
			     .at_ns = s->at_ns,
			     .unread_bytes = s->unread_bytes };
	struct aw_verdict v;
	struct aw_event e;

	if (s->kind == AW_EVENT_DATA &&
	    (s->order == AW_ORDER_IN || s->order == AW_ORDER_FILLS))
		h->unacked_bytes += s->bytes;
	host_fill(h, s, &e);
	if (s->kind == AW_EVENT_ACK_SENT) {
		h->unacked_bytes = 0;
		h->wnd_bytes = e.wnd_next_bytes;
		h->acks++;
		host_fill(h, s, &e);
	}
	v = aw_decide(&h->conn, &e);
	if (v.action == AW_SEND_NOW)
		host_step(h, &sent);
	return v;
}

/* A value that the policy's observe() reports. */
static inline u32 host_observe(const struct host *h, const char *name)
{
	const struct aw_policy *policy = h->conn.policy;
	u32 out[AW_VALUES_MAX] = { 0 };
	unsigned i;

	for (i = 0; i < policy->values_count; i++)
		if (!strcmp(policy->values[i].name, name))
			break;
	CHECK(i < policy->values_count, "%s has no value %s", h->policy, name);
	policy->observe(h->conn.state, h->conn.params, out);
	return out[i % AW_VALUES_MAX];
}

static inline void host_play(const char *claim, struct host *h,
			     const struct step *steps, unsigned count)
{
	struct aw_verdict v;
	struct step s;
	unsigned i, n;

	host_open(h);
	for (i = 0; i < count; i++) {
		for (n = 0; n < aw_max_u32(steps[i].times, 1); n++) {
			s = steps[i];
			s.at_ns += n * s.every_ns;
			if (s.action != AW_WAIT)
				s.until_ns = AW_NEVER_NS;
			v = host_step(h, &s);
			CHECK(v.action == s.action && v.reason == s.reason &&
				      v.by_rail == s.by_rail &&
				      v.deadline_ns == s.until_ns,
			      "%s: %s: step %u (%u): %u %s %u at %.3f, "
			      "expected %u %s %u at %.3f ms",
			      h->policy, claim, i, n, v.action,
			      aw_reason_label(v.reason), v.by_rail,
			      (double)v.deadline_ns / 1e6, s.action,
			      aw_reason_label(s.reason), s.by_rail,
			      (double)s.until_ns / 1e6);
		}
	}
}

/* PLAY("claim", { .policy = ... }, steps): a host and its events. */
#define PLAY(claim, setup, ...)                                                       \
	do {                                                                          \
		struct host host_ = { .rails = AW_RAILS_DEFAULT, SETUP setup };       \
		const struct step steps_[] = { __VA_ARGS__ };                         \
		host_play(claim, &host_, steps_, sizeof(steps_) / sizeof(steps_[0])); \
	} while (0)
#define SETUP(...) __VA_ARGS__

#endif /* ACKWISE_TEST_SCRIPT_H */
