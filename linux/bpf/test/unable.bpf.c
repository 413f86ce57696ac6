// SPDX-License-Identifier: GPL-2.0-only
/* Lacks order, which is required. */
#include "policy.bpf.h"

SEC("struct_ops/init") void init(aw_u64 *args)
{
	(void)args;
}

SEC(".struct_ops") struct tcp_ack_ops bpfbad = {
	.init = init,
	.name = "bpfbad",
};

SEC("license") char bpf_license[] = "GPL";
