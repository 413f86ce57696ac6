// SPDX-License-Identifier: GPL-2.0-only
/* Tries to change its parameters. */
#include "policy.bpf.h"

SEC("struct_ops/on_data") u64 on_data(u64 *args)
{
	struct aw_params *p = (void *)args[1];

	p->value[0] = 0;
	return 0;
}

SEC(".struct_ops") struct tcp_ack_bpf_ops bpfbad = {
	.on_data = on_data,
	.name = "bpfbad",
};

SEC("license") char bpf_license[] = "GPL";
