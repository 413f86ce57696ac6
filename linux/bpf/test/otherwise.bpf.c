// SPDX-License-Identifier: GPL-2.0-only
/* Cannot replace the others of its name, because it has a parameter. */
#include "policy.bpf.h"

SEC("struct_ops/on_data") u64 on_data(u64 *args)
{
	(void)args;
	return aw_verdict_pack(aw_send_now(AW_REASON_EVERY_SEGMENT), 0);
}

SEC(".struct_ops") struct tcp_ack_bpf_ops bpfswap = {
	.on_data = on_data,
	.name = "bpfswap",
	.params = { { "segments", 1, 2, 1 } },
};

SEC("license") char bpf_license[] = "GPL";
