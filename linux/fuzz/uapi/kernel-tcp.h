/* SPDX-License-Identifier: MIT */
/*
 * Stands for include/uapi/linux/tcp.h of the patched kernel, so that fuzzing needs no kernel source:
 * the distribution's header, and what linux/lab uses beyond it. Only the names matter here.
 */
#ifndef FUZZ_KERNEL_TCP_H
#define FUZZ_KERNEL_TCP_H

#define tcp_info tcp_info_of_the_distribution
#include <linux/tcp.h>
#undef tcp_info

#define TCP_ACK_POLICY 47

struct tcp_info {
	__u32 tcpi_snd_mss, tcpi_snd_cwnd, tcpi_snd_ssthresh, tcpi_rtt, tcpi_unacked;
	__u32 tcpi_rcv_wnd, tcpi_rcv_space, tcpi_total_retrans, tcpi_reord_seen;
	__u32 tcpi_segs_in, tcpi_segs_out, tcpi_data_segs_in, tcpi_data_segs_out;
	__u16 tcpi_total_rto;
	__u64 tcpi_bytes_acked, tcpi_delivery_rate;
};

#endif
