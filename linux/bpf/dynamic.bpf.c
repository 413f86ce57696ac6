// SPDX-License-Identifier: GPL-2.0-only
/* The policy dynamic, as BPF programs. */
#include "policy.bpf.h"
#define aw_policy_dynamic static policy
#include "../../core/policy/dynamic.c"

AW_BPF_POLICY(bpfdynamic,
	      { "cost_permille", 1, 999, 500 },
	      { "unit_us", 1, 1000000, 10000 },
	      { "draw", 0, 2, 0 });
