// SPDX-License-Identifier: GPL-2.0-only
/* Wants to wait for ever: an ACK waits as long as the limits of orders allow. */
#include "policy.bpf.h"

SEC("struct_ops/order") aw_u64 order(aw_u64 *args)
{
	(void)args;
	return aw_bpf_answer(aw_order(~0u, ~0u));
}

SEC(".struct_ops") struct tcp_ack_ops bpfswap = {
	.order = order,
	.name = "bpfswap",
};

SEC("license") char bpf_license[] = "GPL";
