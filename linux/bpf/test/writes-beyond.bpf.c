// SPDX-License-Identifier: GPL-2.0-only
/* Tries to write a word beyond its state. */
#include "policy.bpf.h"

SEC("struct_ops/order") aw_u64 order(aw_u64 *args)
{
	aw_u64 *state = AW_BPF_STATE;

	if (state)
		state[AW_STATE_MAX_BYTES / 8] = 1;
	return 0;
}

SEC(".struct_ops") struct tcp_ack_ops bpfbad = {
	.order = order,
	.name = "bpfbad",
};

SEC("license") char bpf_license[] = "GPL";
