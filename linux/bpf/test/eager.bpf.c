// SPDX-License-Identifier: GPL-2.0-only
/* Acknowledges each segment immediately; silent.bpf.c has the same policy name. */
#include "policy.bpf.h"

SEC("struct_ops/on_data") u64 on_data(u64 *args)
{
	(void)args;
	return aw_verdict_pack(aw_send_now(AW_REASON_EVERY_SEGMENT), 0);
}

SEC(".struct_ops") struct tcp_ack_bpf_ops bpfswap = {
	.on_data = on_data,
	.name = "bpfswap",
};

SEC("license") char bpf_license[] = "GPL";
