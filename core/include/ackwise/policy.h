/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An ACK policy: one ops struct, and at most AW_STATE_MAX_BYTES of private
 * state for each connection.
 */
#ifndef ACKWISE_POLICY_H
#define ACKWISE_POLICY_H

#include <ackwise/event.h>
#include <ackwise/verdict.h>

#define AW_STATE_MAX_BYTES 64
#define AW_PARAMS_MAX 8
#define AW_VALUES_MAX 4

/* One parameter: the only definition of its name, range and default. */
struct aw_param {
	const char *name; /* "segments", "delay_ms": unit in the name */
	const char *unit; /* "segments", "ms", "bytes", "1/1000", "choice" */
	const char *text; /* one sentence */
	u32 min;          /* smallest value allowed */
	u32 max;          /* largest value allowed */
	u32 initial;      /* default */
};

/* One value of the private state that can be read from outside. */
struct aw_value {
	const char *name; /* "rate_segments": unit in the name */
	const char *unit; /* as aw_param.unit */
	const char *text; /* one sentence; says what 0 means if special */
};

/* Values in the order of aw_policy.params, shared by many connections. */
struct aw_params {
	u32 value[AW_PARAMS_MAX];
};

/* When the policy reads wnd_next_bytes. */
enum aw_wnd_use {
	AW_WND_USE_NEVER,
	/* like Linux: on data, while more than one full segment is unacknowledged and
	 * data is unread (SO_RCVLOWAT reached); on a read, while at most half of the
	 * window is left */
	AW_WND_USE_STOCK,
	AW_WND_USE_ALWAYS,
};

/*
 * A policy.  The driver holds the connection's lock during every call; members
 * must not block, allocate or keep a pointer to the event.
 *
 * on_data, on_deadline and on_app_read return a verdict on all unacknowledged
 * data, which replaces the previous verdict.  They are called only while an ACK is
 * owed (from on_data until an ACK leaves).  on_app_read is also called when none is
 * owed, because a window update is an ACK too, if the read may be worth one
 * (aw_wnd_worth_update).  A deadline that is not in the future sends immediately;
 * AW_NOTHING while an ACK is owed waits as long as the rails allow.
 */
struct aw_policy {
	const char *name;    /* (required) one lower-case word: file, CLI, sysctl */
	const char *summary; /* (required) one line for lists */
	const char *source;  /* (required) RFC section or spec page */

	const struct aw_param *params; /* (optional) parameters */
	const struct aw_value *values; /* (optional) what observe() reports */
	u8 params_count;               /* entries in params, at most AW_PARAMS_MAX */
	u8 values_count;               /* entries in values, at most AW_VALUES_MAX */
	u8 state_bytes;                /* private state, at most AW_STATE_MAX_BYTES */
	/* ACKs per round trip that AW_RAIL_FLIGHT ensures, a power of two; fewer
	 * than 4 for a policy that measures the effect of its delays.
	 * (optional: 4) */
	u8 acks_per_round;
	/* 1: reads the event's random bits; else they may be 0 after init, because
	 * drawing them costs as much as the decision (optional) */
	u8 uses_random;
	/* When it reads wnd_next_bytes, enum aw_wnd_use: to know that costs a driver
	 * more than the decision (optional: never) */
	u8 wnd_use;

	/* The connection starts; state is zeroed; e holds time and random bits
	 * only. (optional) */
	void (*init)(void *state, const struct aw_params *p, const struct aw_event *e);
	/* A segment arrived. (required) */
	struct aw_verdict (*on_data)(void *state, const struct aw_params *p,
				     const struct aw_event *e);
	/* The deadline of the last wait passed. (optional: sends the ACK as
	 * AW_REASON_DELAY_TIMER) */
	struct aw_verdict (*on_deadline)(void *state, const struct aw_params *p,
					 const struct aw_event *e);
	/* The application read.  pending: the verdict in force; return it to
	 * change nothing. (optional: returns pending) */
	struct aw_verdict (*on_app_read)(void *state, const struct aw_params *p,
					 const struct aw_event *e,
					 struct aw_verdict pending);
	/* An ACK left, for whatever reason. (optional) */
	void (*on_ack_sent)(void *state, const struct aw_params *p,
			    const struct aw_event *e);
	/* Fills out[0 .. values_count - 1] in the order of values, at any time
	 * after init, without side effects. (required with values) */
	void (*observe)(const void *state, const struct aw_params *p, u32 *out);
};

/*
 * Does wnd_next_bytes matter to the policy or to a rail, given the rest of e?  If
 * not, aw_wnd_left() may stand for it.
 */
static inline bool aw_wnd_next_matters(const struct aw_policy *policy,
				       const struct aw_event *e)
{
	u32 left = aw_wnd_left(e);

	if (left < aw_wnd_unusable(e) || policy->wnd_use == AW_WND_USE_ALWAYS)
		return true;
	if (policy->wnd_use == AW_WND_USE_NEVER)
		return false;
	if (e->kind == AW_EVENT_DATA)
		return e->unacked_bytes > e->rcv_mss_bytes && e->unread_bytes &&
		       !(e->flags & AW_FLAG_READER_WAITS);
	return e->kind == AW_EVENT_APP_READ && left <= e->wnd_max_bytes / 2;
}

/* 0, or the negative number of the first rule that is broken. */
int aw_policy_validate(const struct aw_policy *policy);
#define AW_EPOLICY_NAME (-1)     /* name, summary or source missing or malformed */
#define AW_EPOLICY_REQUIRED (-2) /* a required member is missing */
#define AW_EPOLICY_STATE (-3)    /* more private state than allowed */
#define AW_EPOLICY_PARAM (-4)    /* a parameter without name, or out of range */
#define AW_EPOLICY_VALUE (-5)    /* a value without name, or values without observe */

/* The list, policies.def: count, by index, by name; NULL when there is none. */
u32 aw_policy_count(void);
const struct aw_policy *aw_policy_at(u32 index);
const struct aw_policy *aw_policy_find(const char *name);

/* Sets every parameter to its default. */
void aw_params_init(const struct aw_policy *policy, struct aw_params *p);

#endif /* ACKWISE_POLICY_H */
