/* SPDX-License-Identifier: MIT */
/*
 * The kernel fills a ring with timestamps of the guest's clock in nanoseconds. The ring is emptied
 * periodically, not per packet.
 */
#define _GNU_SOURCE
#include "capture.h"
#include "system.h"
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define CAPTURES_MAX 2
#define SNAP_BYTES 96 /* Ethernet, IPv4 without options, TCP with all of them: 94 */
/*
 * One page: when a process that has mapped larger blocks forks, a user-mode kernel of 6.12 reports
 * "Bad page map".
 */
#define BLOCK_BYTES 4096u
#define BLOCKS (12u << 10)

static struct capture {
	int fd;
	FILE *file;
	const char *device;
	uint8_t *ring;
	unsigned next;
	char buffer[1 << 20];
} captures[CAPTURES_MAX];
static int captures_count;

struct pcap_head {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, sigfigs, snap, link_type;
};
struct pcap_packet {
	uint32_t seconds, nanoseconds, captured, length;
};

void capture_open(const char *namespace_name, const char *device, const char *file)
{
	static const struct pcap_head head = { .magic = 0xa1b23c4d,
					       .major = 2,
					       .minor = 4,
					       .snap = SNAP_BYTES,
					       .link_type = 1 };
	/* IPv4 and TCP, headers only */
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SNAP_BYTES),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	static const struct sock_fprog program = { 6, code };
	struct tpacket_req3 request = { .tp_block_size = BLOCK_BYTES,
					.tp_block_nr = BLOCKS,
					.tp_frame_size = 256,
					.tp_frame_nr = BLOCK_BYTES / 256 * BLOCKS,
					.tp_retire_blk_tov = 100 };
	struct sockaddr_ll address = { .sll_family = AF_PACKET,
				       .sll_protocol = htons(ETH_P_ALL) };
	int version = TPACKET_V3;
	struct capture *c = &captures[captures_count];

	if (captures_count == CAPTURES_MAX)
		die("more than %d captures", CAPTURES_MAX);
	enter(namespace_name);
	c->device = strdup(device);
	/* no protocol yet: nothing arrives before the filter is attached */
	c->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	address.sll_ifindex = (int)if_nametoindex(device);
	if (c->fd < 0 ||
	    setsockopt(c->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) ||
	    setsockopt(c->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
		       sizeof(program)) ||
	    setsockopt(c->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)))
		die("capture on %s: %s", device, strerror(errno));
	c->ring = mmap(NULL, (size_t)BLOCK_BYTES * BLOCKS, PROT_READ | PROT_WRITE,
		       MAP_SHARED, c->fd, 0);
	if (c->ring == MAP_FAILED ||
	    bind(c->fd, (struct sockaddr *)&address, sizeof(address)))
		die("capture on %s: %s", device, strerror(errno));
	enter("-");
	c->file = fopen(file, "we");
	if (!c->file)
		die("%s: %s", file, strerror(errno));
	setvbuf(c->file, c->buffer, _IOFBF, sizeof(c->buffer));
	fwrite(&head, sizeof(head), 1, c->file);
	captures_count++;
}

static void write_block(struct capture *c, struct tpacket_block_desc *block)
{
	uint8_t *at = (uint8_t *)block + block->hdr.bh1.offset_to_first_pkt;
	uint32_t i;

	for (i = 0; i < block->hdr.bh1.num_pkts; i++) {
		const struct tpacket3_hdr *packet = (const void *)at;
		struct pcap_packet head = { packet->tp_sec, packet->tp_nsec,
					    packet->tp_snaplen, packet->tp_len };

		fwrite(&head, sizeof(head), 1, c->file);
		fwrite(at + packet->tp_mac, packet->tp_snaplen, 1, c->file);
		at += packet->tp_next_offset;
	}
}

void capture_drain(void)
{
	int i;

	for (i = 0; i < captures_count; i++) {
		struct capture *c = &captures[i];

		for (;;) {
			struct tpacket_block_desc *block =
				(void *)(c->ring + (size_t)BLOCK_BYTES * c->next);

			if (!(__atomic_load_n(&block->hdr.bh1.block_status,
					      __ATOMIC_ACQUIRE) &
			      TP_STATUS_USER))
				break;
			write_block(c, block);
			__atomic_store_n(&block->hdr.bh1.block_status, TP_STATUS_KERNEL,
					 __ATOMIC_RELEASE);
			c->next = (c->next + 1) % BLOCKS;
		}
	}
}

void capture_close(void)
{
	int i;

	/* longer than tp_retire_blk_tov: the kernel has handed over the block in use */
	if (captures_count)
		usleep(300000);
	capture_drain();
	for (i = 0; i < captures_count; i++) {
		struct tpacket_stats_v3 stats;
		socklen_t length = sizeof(stats);
		struct capture *c = &captures[i];

		if (getsockopt(c->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length) ||
		    stats.tp_drops)
			die("capture on %s: %u packets were dropped: the ring is too small",
			    c->device, stats.tp_drops);
		if (ferror(c->file) || fclose(c->file))
			die("capture on %s: cannot write the file: %s", c->device,
			    strerror(errno));
		close(c->fd);
	}
	captures_count = 0;
}
