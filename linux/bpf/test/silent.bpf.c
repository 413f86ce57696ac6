// SPDX-License-Identifier: GPL-2.0-only
/* Never sends an ACK: an owed ACK waits as long as the rails allow. */
#include "policy.bpf.h"

SEC("struct_ops/on_data") u64 on_data(u64 *args)
{
	(void)args;
	return aw_verdict_pack(aw_nothing(), 0);
}

SEC(".struct_ops") struct tcp_ack_bpf_ops bpfswap = {
	.on_data = on_data,
	.name = "bpfswap",
};

SEC("license") char bpf_license[] = "GPL";
