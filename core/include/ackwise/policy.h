/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An ACK policy: one function that answers with orders, and at most
 * AW_STATE_MAX_BYTES of private state for each connection.
 */
#ifndef ACKWISE_POLICY_H
#define ACKWISE_POLICY_H

#include <ackwise/order.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AW_STATE_MAX_BYTES 64
#define AW_PARAMS_MAX 8
#define AW_VALUES_MAX 4

/* One parameter: the only definition of its name, range and default. */
struct aw_param {
	const char *name; /* "segments", "delay_ms": unit in the name */
	const char *unit; /* "segments", "ms", "bytes", "1/1000", "choice" */
	const char *text; /* one sentence */
	aw_u32 min;       /* smallest value allowed */
	aw_u32 max;       /* largest value allowed */
	aw_u32 initial;   /* default */
};

/* One value of the private state that can be read from outside. */
struct aw_value {
	const char *name; /* "rate_segments": unit in the name */
	const char *unit; /* as aw_param.unit */
	const char *text; /* one sentence; says what 0 means if special */
};

/* Values in the order of the parameters, shared by many connections. */
struct aw_params {
	aw_u32 value[AW_PARAMS_MAX];
};

/*
 * A policy.  The host holds the connection's lock during every call; members must
 * not block, allocate or keep a pointer to what was seen.
 */
struct aw_policy {
	const char *name;    /* (required) one lower-case word: file, CLI, sysctl */
	const char *summary; /* (required) one line for lists */
	const char *source;  /* (required) RFC section or spec page */

	const struct aw_param *params; /* (optional) parameters */
	const struct aw_value *values; /* (optional) what observe() reports */
	aw_u8 params_count;            /* entries in params, at most AW_PARAMS_MAX */
	aw_u8 values_count;            /* entries in values, at most AW_VALUES_MAX */
	aw_u8 state_bytes;             /* private state, at most AW_STATE_MAX_BYTES */
	/* 1: reads the random bits (optional) */
	aw_u8 uses_random;
	/* 1: is asked when the application reads while data waits (optional) */
	aw_u8 asked_on_read;
	/* 1: reads new_arrivals, gap_ns or last_ns, which cost a host a few
	 * instructions for each segment; else they may be 0 (optional) */
	aw_u8 reads_arrivals;

	/* The connection starts; state is zeroed, and random are 32 uniform random
	 * bits.  The first question is AW_WHY_SENT, before any data has been seen.
	 * (optional) */
	void (*init)(void *state, const struct aw_params *p, aw_u32 random);
	/* The answer to a question. (required) */
	struct aw_order (*order)(void *state, const struct aw_params *p,
				 const struct aw_seen *seen);
	/* Fills out[0 .. values_count - 1] in the order of values, at any time
	 * after init, without side effects. (required with values) */
	void (*observe)(const void *state, const struct aw_params *p, aw_u32 *out);
};

/* 0, or the negative number of the first rule that is broken. */
int aw_policy_validate(const struct aw_policy *policy);
#define AW_EPOLICY_NAME (-1)     /* name, summary or source missing or malformed */
#define AW_EPOLICY_REQUIRED (-2) /* a required member is missing */
#define AW_EPOLICY_STATE (-3)    /* more private state than allowed */
#define AW_EPOLICY_PARAM (-4)    /* a parameter without name, or out of range */
#define AW_EPOLICY_VALUE (-5)    /* a value without name, or values without observe */

/* The list, policies.def: count, by index, by name; NULL when there is none. */
aw_u32 aw_policy_count(void);
const struct aw_policy *aw_policy_at(aw_u32 index);
const struct aw_policy *aw_policy_find(const char *name);

/* Sets every parameter to its default. */
void aw_params_init(const struct aw_param *params, aw_u32 count, struct aw_params *p);

#ifdef __cplusplus
}
#endif

#endif /* ACKWISE_POLICY_H */
