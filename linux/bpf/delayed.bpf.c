// SPDX-License-Identifier: GPL-2.0-only
/* The policy delayed, as BPF programs: 8 segments, 200 ms. */
#include "policy.bpf.h"
#define aw_policy_delayed static policy
#include "../../core/policy/delayed.c"

AW_BPF_POLICY(bpfdelayed, 0, 8, 200);
