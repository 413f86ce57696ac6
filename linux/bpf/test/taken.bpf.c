// SPDX-License-Identifier: GPL-2.0-only
/* Has the name of a policy in the kernel. */
#include "policy.bpf.h"

SEC("struct_ops/on_data") u64 on_data(u64 *args)
{
	(void)args;
	return 0;
}

SEC(".struct_ops") struct tcp_ack_bpf_ops delayed = {
	.on_data = on_data,
	.name = "delayed",
};

SEC("license") char bpf_license[] = "GPL";
