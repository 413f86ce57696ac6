/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes BPF programs of a policy of core/: the same file, loaded into a running
 * kernel.
 *
 *	#include "policy.bpf.h"
 *	#define aw_policy_NAME static policy
 *	#include "../../core/policy/NAME.c"
 *	AW_BPF_POLICY(bpfNAME, flags, values of its parameters);
 *
 * The values are fixed when the file is compiled.  BPF allows functions that return a
 * struct only if they are inlined; `static` lets the compiler drop the policy once its
 * members are.
 */
#ifndef ACKWISE_POLICY_BPF_H
#define ACKWISE_POLICY_BPF_H

#include <ackwise/base.h>
#include <ackwise/reason.h>

typedef aw_u32 aw_u32;
typedef aw_u64 aw_u64;

/* Fields are located by name in the kernel's structure, which may have more. */
#define aw_seen tcp_ack_seen
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#include <ackwise/order.h>
#pragma clang attribute pop
#include <ackwise/policy.h>

#define SEC(name) __attribute__((section(name), used))

/* What the programs use of the kernel: bpf.h, and tcp_ack.h with its flags. */
#define BPF_MAP_TYPE_SK_STORAGE 24
#define BPF_F_NO_PREALLOC 1
#define BPF_SK_STORAGE_GET_F_CREATE 1
#define AW_BPF_READS_ARRIVALS 2
#define AW_BPF_ASKED_ON_READ 4
#define AW_BPF_USES_RANDOM 8

static aw_u32 (*const bpf_get_prandom_u32)(void) = (void *)7;
static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value,
					 aw_u64 flags) = (void *)107;

/* The fields of the kernel's structure that a program fills. */
struct tcp_ack_ops {
	aw_u64 (*order)(aw_u64 *args);
	void (*init)(aw_u64 *args);
	char name[16];
	aw_u32 flags;
};

struct aw_bpf_state {
	aw_u64 word[AW_STATE_MAX_BYTES / 8];
};

/* The state of each socket, in its storage. */
struct {
	int (*type)[BPF_MAP_TYPE_SK_STORAGE];
	int (*map_flags)[BPF_F_NO_PREALLOC];
	int *key;
	struct aw_bpf_state *value;
} aw_bpf_states SEC(".maps");

#define AW_BPF_SOCKET ((void *)args[0])
#define AW_BPF_SEEN ((const struct aw_seen *)args[1])
/* NULL: no memory, and the answer is the kernel's own rule */
#define AW_BPF_STATE                                                                     \
	bpf_sk_storage_get(&aw_bpf_states, AW_BPF_SOCKET, NULL,                          \
			   BPF_SK_STORAGE_GET_F_CREATE)

static inline aw_u64 aw_bpf_answer(struct aw_order o)
{
	return (aw_u64)o.delay_ns << 32 | o.bytes;
}

#define AW_BPF_POLICY(called, its_flags, ...)                                            \
	static const struct aw_params bpf_params = { { __VA_ARGS__ } };                  \
	SEC("struct_ops/init") void bpf_init(aw_u64 *args)                                  \
	{                                                                                \
		struct aw_bpf_state *state = AW_BPF_STATE;                               \
                                                                                         \
		if (!state)                                                              \
			return;                                                          \
		*state = (struct aw_bpf_state){ 0 };                                     \
		if (policy.init)                                                         \
			policy.init(state, &bpf_params, bpf_get_prandom_u32());          \
	}                                                                                \
	SEC("struct_ops/order") aw_u64 bpf_order(aw_u64 *args)                                 \
	{                                                                                \
		struct aw_bpf_state *state = AW_BPF_STATE;                               \
                                                                                         \
		if (!state)                                                              \
			return 0;                                                        \
		return aw_bpf_answer(policy.order(state, &bpf_params, AW_BPF_SEEN));     \
	}                                                                                \
	SEC(".struct_ops")                                                               \
	struct tcp_ack_ops called = {                                                    \
		.order = bpf_order,                                                      \
		.init = bpf_init,                                                        \
		.name = #called,                                                         \
		.flags = its_flags,                                                      \
	};                                                                               \
	SEC("license") char bpf_license[] = "GPL"

#endif /* ACKWISE_POLICY_BPF_H */
