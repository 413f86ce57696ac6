// SPDX-License-Identifier: GPL-2.0-only
/* Acknowledges each segment immediately; silent.bpf.c has the same policy name. */
#include "policy.bpf.h"

SEC("struct_ops/order") aw_u64 order(aw_u64 *args)
{
	if (AW_BPF_SEEN->why == AW_WHY_SENT)
		return aw_bpf_answer(aw_order(1, 0));
	return aw_bpf_answer(aw_now(AW_REASON_EVERY_SEGMENT));
}

SEC(".struct_ops") struct tcp_ack_ops bpfswap = {
	.order = order,
	.name = "bpfswap",
};

SEC("license") char bpf_license[] = "GPL";
