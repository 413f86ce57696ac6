/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What a socket has to do: send an ACK now or wait for a deadline; and why. */
#ifndef ACKWISE_VERDICT_H
#define ACKWISE_VERDICT_H

#include <ackwise/reason.h>

enum aw_action {
	AW_NOTHING,  /* no ACK is owed: no timer, no ACK */
	AW_WAIT,     /* an ACK is owed; send it when deadline_ns passes */
	AW_SEND_NOW, /* send an ACK immediately */
	AW_ACTIONS
};

struct aw_verdict {
	aw_u64 deadline_ns; /* AW_WAIT: absolute; else AW_NEVER_NS */
	aw_u8 action;       /* enum aw_action */
	aw_u8 reason;       /* enum aw_reason: why now, or AW_REASON_WAITING */
	aw_u8 by_duty;      /* 1: a duty of the host set the action or the deadline */
	aw_u8 reserved;
	aw_u32 reserved_word;
};

/* Set member by member, so that compilers keep it in registers. */
static inline struct aw_verdict aw_verdict_make(aw_u64 deadline_ns, aw_u8 action,
						aw_u8 reason)
{
	struct aw_verdict v;

	v.deadline_ns = deadline_ns;
	v.action = action;
	v.reason = reason;
	v.by_duty = 0;
	v.reserved = 0;
	v.reserved_word = 0;
	return v;
}

static inline struct aw_verdict aw_send_now(enum aw_reason reason)
{
	return aw_verdict_make(AW_NEVER_NS, AW_SEND_NOW, (aw_u8)reason);
}

static inline struct aw_verdict aw_wait_until(aw_u64 deadline_ns)
{
	return aw_verdict_make(deadline_ns, AW_WAIT, AW_REASON_WAITING);
}

static inline struct aw_verdict aw_nothing(void)
{
	return aw_verdict_make(AW_NEVER_NS, AW_NOTHING, AW_REASON_NONE);
}

static inline struct aw_verdict aw_by_duty(struct aw_verdict v)
{
	v.by_duty = 1;
	return v;
}

#endif /* ACKWISE_VERDICT_H */
