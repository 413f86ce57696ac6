// SPDX-License-Identifier: GPL-2.0-only
/* The policy delayed, as BPF programs. */
#include "policy.bpf.h"
#define aw_policy_delayed static policy
#include "../../core/policy/delayed.c"

AW_BPF_POLICY(bpfdelayed,
	      { "segments", 1, 1024, 2 },
	      { "delay_ms", 1, 500, 200 });
