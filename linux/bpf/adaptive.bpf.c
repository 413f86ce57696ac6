// SPDX-License-Identifier: GPL-2.0-only
/* The policy adaptive, as BPF programs, at its own price of an ACK. */
#include "policy.bpf.h"
#define aw_policy_adaptive static policy
#include "../../core/policy/adaptive.c"

AW_BPF_POLICY(bpfadaptive, AW_BPF_READS_ARRIVALS, 1000);
