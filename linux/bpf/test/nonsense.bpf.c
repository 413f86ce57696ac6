// SPDX-License-Identifier: GPL-2.0-only
/* Returns random answers to every question, and writes random bits to its state. */
#include "policy.bpf.h"

static aw_u64 nonsense(aw_u64 *args)
{
	aw_u64 word = (aw_u64)bpf_get_prandom_u32() << 32 | bpf_get_prandom_u32();
	struct aw_bpf_state *state = AW_BPF_STATE;

	if (state) {
		state->word[0] = word;
		state->word[AW_STATE_MAX_BYTES / 8 - 1] += word;
	}
	/* one answer in four is an ACK now */
	return word & 3 ? word : (aw_u64)AW_NOW_NS << 32 | (word >> 40);
}

SEC("struct_ops/init") void init(aw_u64 *args)
{
	nonsense(args);
}

SEC("struct_ops/order") aw_u64 order(aw_u64 *args)
{
	return nonsense(args);
}

SEC(".struct_ops") struct tcp_ack_ops bpfnonsense = {
	.order = order,
	.init = init,
	.name = "bpfnonsense",
	.flags = AW_BPF_READS_ARRIVALS | AW_BPF_ASKED_ON_READ | AW_BPF_USES_RANDOM,
};

SEC("license") char bpf_license[] = "GPL";
