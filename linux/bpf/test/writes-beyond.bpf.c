// SPDX-License-Identifier: GPL-2.0-only
/* Tries to write a word beyond its state. */
#include "policy.bpf.h"

SEC("struct_ops/on_data") u64 on_data(u64 *args)
{
	u64 *state = AW_BPF_STATE;

	state[AW_STATE_MAX_BYTES / 8] = 1;
	return 0;
}

SEC(".struct_ops") struct tcp_ack_bpf_ops bpfbad = {
	.on_data = on_data,
	.name = "bpfbad",
};

SEC("license") char bpf_license[] = "GPL";
