// SPDX-License-Identifier: GPL-2.0-only
/* Has the name of a policy in the kernel. */
#include "policy.bpf.h"

SEC("struct_ops/order") aw_u64 order(aw_u64 *args)
{
	(void)args;
	return 0;
}

SEC(".struct_ops") struct tcp_ack_ops delayed = {
	.order = order,
	.name = "delayed",
};

SEC("license") char bpf_license[] = "GPL";
