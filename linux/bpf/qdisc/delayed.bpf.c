// SPDX-License-Identifier: GPL-2.0-only
/* The policy delayed, in a queueing discipline that holds ACKs. */
#include "hold.bpf.h"
#define aw_policy_delayed static policy
#include "../../../core/policy/delayed.c"
