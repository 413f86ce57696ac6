/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes BPF programs of a policy of core/: the same file, loaded into a running
 * kernel.
 *
 *	#include "policy.bpf.h"
 *	#define aw_policy_NAME static policy
 *	#include "../../core/policy/NAME.c"
 *	AW_BPF_POLICY(bpfNAME, parameters);
 *
 * The parameters are repeated here, because BPF has no pointers in data.  BPF allows
 * functions that return a struct only if they are inlined; `static` lets the compiler
 * drop the policy once its members are.
 */
#ifndef ACKWISE_POLICY_BPF_H
#define ACKWISE_POLICY_BPF_H

/* Fields are located by name, so the kernel may have more. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#include <ackwise/event.h>
#pragma clang attribute pop
#include <ackwise/packed.h>
#include <ackwise/policy.h>

#define SEC(name) __attribute__((section(name), used))

/* The fields of the kernel's structures that a program fills. */
struct tcp_ack_bpf_param {
	char name[32];
	u32 min;
	u32 max;
	u32 initial;
};

struct tcp_ack_bpf_ops {
	void (*init)(u64 *args);
	u64 (*on_data)(u64 *args);
	u64 (*on_deadline)(u64 *args);
	u64 (*on_app_read)(u64 *args);
	void (*on_ack_sent)(u64 *args);
	char name[16];
	u32 acks_per_round;
	struct tcp_ack_bpf_param params[AW_PARAMS_MAX];
};

#define AW_BPF_STATE ((void *)args[0])
#define AW_BPF_PARAMS ((const struct aw_params *)args[1])
#define AW_BPF_EVENT ((const struct aw_event *)args[2])

/* Defaults for the optional members of a policy, as programs of their own. */
#define AW_BPF_POLICY(called, ...)                                                       \
	SEC("struct_ops/init") void bpf_init(u64 *args)                                  \
	{                                                                                \
		if (policy.init)                                                         \
			policy.init(AW_BPF_STATE, AW_BPF_PARAMS, AW_BPF_EVENT);          \
	}                                                                                \
	SEC("struct_ops/on_data") u64 bpf_on_data(u64 *args)                             \
	{                                                                                \
		return aw_verdict_pack(policy.on_data(AW_BPF_STATE, AW_BPF_PARAMS,       \
						      AW_BPF_EVENT),                     \
				       AW_BPF_EVENT->now_ns);                            \
	}                                                                                \
	SEC("struct_ops/on_deadline") u64 bpf_on_deadline(u64 *args)                     \
	{                                                                                \
		struct aw_verdict v = aw_send_now(AW_REASON_DELAY_TIMER);                \
                                                                                         \
		if (policy.on_deadline)                                                  \
			v = policy.on_deadline(AW_BPF_STATE, AW_BPF_PARAMS,              \
					       AW_BPF_EVENT);                            \
		return aw_verdict_pack(v, AW_BPF_EVENT->now_ns);                         \
	}                                                                                \
	SEC("struct_ops/on_app_read") u64 bpf_on_app_read(u64 *args)                     \
	{                                                                                \
		if (!policy.on_app_read)                                                 \
			return args[3];                                                  \
		return aw_verdict_pack(                                                  \
			policy.on_app_read(                                              \
				AW_BPF_STATE, AW_BPF_PARAMS, AW_BPF_EVENT,               \
				aw_verdict_unpack(args[3], AW_BPF_EVENT->now_ns)),       \
			AW_BPF_EVENT->now_ns);                                           \
	}                                                                                \
	SEC("struct_ops/on_ack_sent") void bpf_on_ack_sent(u64 *args)                    \
	{                                                                                \
		if (policy.on_ack_sent)                                                  \
			policy.on_ack_sent(AW_BPF_STATE, AW_BPF_PARAMS, AW_BPF_EVENT);   \
	}                                                                                \
	SEC(".struct_ops")                                                               \
	struct tcp_ack_bpf_ops called = {                                                \
		.init = bpf_init,                                                        \
		.on_data = bpf_on_data,                                                  \
		.on_deadline = bpf_on_deadline,                                          \
		.on_app_read = bpf_on_app_read,                                          \
		.on_ack_sent = bpf_on_ack_sent,                                          \
		.name = #called,                                                         \
		.params = { __VA_ARGS__ },                                               \
	};                                                                               \
	SEC("license") char bpf_license[] = "GPL"

#endif /* ACKWISE_POLICY_BPF_H */
