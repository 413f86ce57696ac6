/* SPDX-License-Identifier: MIT */
/* Stands for include/uapi/linux/inet_diag.h of the patched kernel, see kernel-tcp.h. */
#ifndef FUZZ_KERNEL_INET_DIAG_H
#define FUZZ_KERNEL_INET_DIAG_H

#include <linux/inet_diag.h>

#define INET_DIAG_ACK_POLICY 23
#define INET_ACK_POLICY_MAX INET_ACK_POLICY_STATE
enum {
	INET_ACK_POLICY_CHOICE = 1,
	INET_ACK_POLICY_REASON,
	INET_ACK_POLICY_INFO,
	INET_ACK_POLICY_STATE
};

struct tcp_ack_info {
	__u64 acks, segments, owed_ns, wait_ns;
};

#endif
