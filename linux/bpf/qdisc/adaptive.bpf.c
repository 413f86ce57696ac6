// SPDX-License-Identifier: GPL-2.0-only
/* The policy adaptive, in a queueing discipline that holds ACKs. */
#include "hold.bpf.h"
#define aw_policy_adaptive static policy
#include "../../../core/policy/adaptive.c"
