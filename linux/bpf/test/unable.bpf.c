// SPDX-License-Identifier: GPL-2.0-only
/* Lacks on_data, which is required. */
#include "policy.bpf.h"

SEC("struct_ops/on_deadline") u64 on_deadline(u64 *args)
{
	(void)args;
	return 0;
}

SEC(".struct_ops") struct tcp_ack_bpf_ops bpfbad = {
	.on_deadline = on_deadline,
	.name = "bpfbad",
};

SEC("license") char bpf_license[] = "GPL";
