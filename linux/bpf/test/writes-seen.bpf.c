// SPDX-License-Identifier: GPL-2.0-only
/* Tries to change what it is told, which the limits are made of. */
#include "policy.bpf.h"

SEC("struct_ops/order") aw_u64 order(aw_u64 *args)
{
	struct aw_seen *seen = (void *)args[1];

	seen->most.bytes = ~0u;
	return 0;
}

SEC(".struct_ops") struct tcp_ack_ops bpfbad = {
	.order = order,
	.name = "bpfbad",
};

SEC("license") char bpf_license[] = "GPL";
