/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Policy a3, for policies that extend it. */
#ifndef ACKWISE_POLICY_A3_H
#define ACKWISE_POLICY_A3_H

#include <ackwise/policy.h>

/* The first parameters of every policy that uses aw_a3_*(). */
enum {
	AW_A3_SHARE_PERCENT,
	AW_A3_DELAY_MS,
	AW_A3_ISP_SEGMENTS,
	AW_A3_ISP_GROWTH,
	AW_A3_ISP_RESET,
	AW_A3_SILENCE_SAMPLES,
	AW_A3_PARAMS
};

/* clang-format off */
#define AW_A3_PARAM_TABLE(isp_growth, isp_reset)                             \
	[AW_A3_SHARE_PERCENT] = { "share_percent", "percent",                \
				  "Share of MUDS that one ACK covers.",      \
				  1, 100, 35 },                              \
	[AW_A3_DELAY_MS] = { "delay_ms", "ms",                               \
			     "Longest delay outside samplings.",             \
			     1, 500, 200 },                                  \
	[AW_A3_ISP_SEGMENTS] = { "isp_segments", "segments",                 \
				 "Segments before the first sampling.",      \
				 1, 10000, 10 },                             \
	[AW_A3_ISP_GROWTH] = { "isp_growth", "factor",                       \
			       "Growth of the segments between samplings "   \
			       "while MUDS stays.", 1, 16, isp_growth },     \
	[AW_A3_ISP_RESET] = { "isp_reset", "choice",                         \
			      "After a change of MUDS, 1: isp_segments "     \
			      "again, 0: half.", 0, 1, isp_reset },          \
	[AW_A3_SILENCE_SAMPLES] = { "silence_samples", "choice",             \
				    "0: as in the paper; 1: learn from "     \
				    "every silence.", 0, 1, 1 }
/* clang-format on */

enum aw_a3_phase {
	AW_A3_COUNTING, /* segments until the next sampling */
	AW_A3_SAMPLING, /* no ACK until the sender falls silent */
};

struct aw_a3 {
	aw_u64 last_data_ns; /* 0: no data yet */
	aw_u64 timer_ns;     /* sampling: SP_timer as its ACK left it */
	aw_u32 muds_bytes;   /* the last estimate; 0: none */
	aw_u32 basis_bytes;  /* the estimate from which the threshold is derived */
	aw_u32 quiet_ns;     /* SP_t = 1.3 IPAT; 0: not known */
	aw_u32 gaps_sum_ns;  /* of the inter-arrival times that IPAT is made of next */
	aw_u32 gaps_max_ns;
	aw_u16 isp_segments; /* ISP_t */
	aw_u16 isp_left;     /* ISP_counter */
	aw_u8 phase;         /* enum aw_a3_phase */
	aw_u8 gaps;          /* inter-arrival times in gaps_sum_ns */
	aw_u8 misled;        /* 1: silent below the threshold: sample less often */
	aw_u8 reserved;
};

/* The members of policy a3: state begins with a struct aw_a3. */
void aw_a3_init(void *state, const struct aw_params *p, aw_u32 random);
struct aw_order aw_a3_order(void *state, const struct aw_params *p,
			    const struct aw_seen *seen);

/* muds_bytes and threshold_bytes, for every policy whose state begins with a3's. */
#define AW_A3_VALUES 2
extern const struct aw_value aw_a3_values[AW_A3_VALUES];
void aw_a3_observe(const void *state, const struct aw_params *p, aw_u32 *out);

/* True if the sender fell silent below the threshold, which counts as a sampling
 * with silence_samples. */
bool aw_a3_is_silence(const struct aw_a3 *s, const struct aw_params *p,
		      const struct aw_seen *seen);

/* Starts counting isp_segments again; drops a sampling in progress. */
void aw_a3_restart(struct aw_a3 *s);

#endif /* ACKWISE_POLICY_A3_H */
