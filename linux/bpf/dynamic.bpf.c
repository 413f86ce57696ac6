// SPDX-License-Identifier: GPL-2.0-only
/* The policy dynamic, as BPF programs: an ACK costs half of 10 ms of waiting. */
#include "policy.bpf.h"
#define aw_policy_dynamic static policy
#include "../../core/policy/dynamic.c"

AW_BPF_POLICY(bpfdynamic, AW_BPF_USES_RANDOM, 500, 10000, 0);
