// SPDX-License-Identifier: GPL-2.0-only
/* Returns random verdicts on every event, and writes random bits to its state. */
#include "policy.bpf.h"

static u32 (*const random_u32)(void) = (void *)7; /* bpf_get_prandom_u32() */

static u64 nonsense(u64 *args)
{
	u64 *state = AW_BPF_STATE;
	u64 word = (u64)random_u32() << 32 | random_u32();

	state[0] = word;
	state[AW_STATE_MAX_BYTES / 8 - 1] += word;
	return word;
}

SEC("struct_ops/init") void init(u64 *args)
{
	nonsense(args);
}

SEC("struct_ops/on_data") u64 on_data(u64 *args)
{
	return nonsense(args);
}

SEC("struct_ops/on_deadline") u64 on_deadline(u64 *args)
{
	return nonsense(args);
}

SEC("struct_ops/on_app_read") u64 on_app_read(u64 *args)
{
	return nonsense(args);
}

SEC("struct_ops/on_ack_sent") void on_ack_sent(u64 *args)
{
	nonsense(args);
}

SEC(".struct_ops") struct tcp_ack_bpf_ops bpfnonsense = {
	.init = init,
	.on_data = on_data,
	.on_deadline = on_deadline,
	.on_app_read = on_app_read,
	.on_ack_sent = on_ack_sent,
	.name = "bpfnonsense",
};

SEC("license") char bpf_license[] = "GPL";
