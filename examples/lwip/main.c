/* SPDX-License-Identifier: MIT */
/*
 * A download within one lwIP: two of its interfaces, and a wire between them.
 *
 *	sender 10.0.0.1  --->  wire, 5 ms  --->  receiver 10.1.0.1
 *	knows 10.0.0.4                           knows 10.1.0.2
 *
 * Each side knows the other by an address of its own network.  Both pairs have one sum,
 * so the wire replaces the addresses and every checksum stays valid.
 *
 * Prints segments and ACKs without and with a policy.  Exit code 1 if data is wrong or
 * missing, or if delayed does not save half of the ACKs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lwip/ip.h>
#include <lwip/netif.h>
#include <lwip/prot/ip4.h>
#include <lwip/prot/tcp.h>
#include <lwip/sys.h>
#include <lwip/tcp.h>
#include <lwip/tcpip.h>
#include <lwip/timeouts.h>

#include "acks.h"

#define BYTES (4u << 20)
#define WIRE_MS 5
#define PORT 5001
#define SEGMENTS 8 /* for each ACK of delayed */
#define RUN_MS_MOST 60000
#define LOSE_EACH 200 /* of the data segments, in a run with loss */

static struct {
	const char *policy; /* NULL: lwIP as it is */
	bool loss;
	u32_t begun_ms, lasted_ms;
	u32_t sent_bytes, read_bytes, wrong_bytes;
	u32_t segments, lost, acks;
} run;

static struct netif sender_end, receiver_end;
static struct tcp_pcb *listener, *sender, *receiver;
static struct acks acks;
static sys_sem_t done;

/* What is sent at each place of the stream: repeats after a prime, so no segment's. */
static u8_t byte_at(u32_t place)
{
	return (u8_t)(place % 251);
}

/* The wire. */

static void arrive(void *arg)
{
	struct pbuf *p = arg;
	const struct ip_hdr *ip = p->payload;
	struct netif *to = ip4_addr2(&ip->dest) ? &receiver_end : &sender_end;

	if (to->input(p, to) != ERR_OK)
		pbuf_free(p);
}

static err_t onto_wire(struct netif *from, struct pbuf *p, const ip4_addr_t *next)
{
	struct pbuf *copy = pbuf_clone(PBUF_LINK, PBUF_RAM, p);
	bool down = from == &sender_end;
	struct tcp_hdr *tcp;
	struct ip_hdr *ip;
	u16_t payload;

	(void)next;
	if (!copy)
		return ERR_MEM;
	ip = copy->payload;
	tcp = (struct tcp_hdr *)((u8_t *)ip + IPH_HL_BYTES(ip));
	payload = (u16_t)(copy->tot_len - IPH_HL_BYTES(ip) - TCPH_HDRLEN_BYTES(tcp));
	ip->src.addr = down ? PP_HTONL(0x0a010002) : PP_HTONL(0x0a000004);
	ip->dest.addr = down ? PP_HTONL(0x0a010001) : PP_HTONL(0x0a000001);
	if (down && payload && ++run.segments % LOSE_EACH == 0 && run.loss) {
		run.lost++;
		pbuf_free(copy);
		return ERR_OK;
	}
	if (!down && !payload && !(TCPH_FLAGS(tcp) & (TCP_SYN | TCP_FIN | TCP_RST)))
		run.acks++;
	sys_timeout(WIRE_MS, arrive, copy);
	return ERR_OK;
}

static err_t join(struct netif *end)
{
	end->output = onto_wire;
	end->mtu = 1500;
	end->name[0] = 'w';
	end->flags |= NETIF_FLAG_UP | NETIF_FLAG_LINK_UP;
	return ERR_OK;
}

/* Both applications. */

static void over(void)
{
	run.lasted_ms = sys_now() - run.begun_ms;
	acks_stop(&acks);
	if (receiver)
		tcp_abort(receiver);
	if (sender)
		tcp_abort(sender);
	sender = NULL;
	receiver = NULL;
	tcp_close(listener);
	sys_sem_signal(&done);
}

static void broken(void *arg, err_t err)
{
	(void)err;
	*(struct tcp_pcb **)arg = NULL; /* lwIP has freed it */
	if (arg == &receiver)
		acks_drop(&acks);
}

static void too_long(void *arg)
{
	(void)arg;
	over();
}

static err_t send_more(void *arg, struct tcp_pcb *pcb, u16_t acked)
{
	u8_t part[TCP_MSS];
	u32_t i, bytes;

	(void)arg;
	(void)acked;
	while (run.sent_bytes < BYTES) {
		bytes = LWIP_MIN(LWIP_MIN(sizeof(part), BYTES - run.sent_bytes),
				 tcp_sndbuf(pcb));
		for (i = 0; i < bytes; i++)
			part[i] = byte_at(run.sent_bytes + i);
		if (!bytes || tcp_write(pcb, part, (u16_t)bytes, TCP_WRITE_FLAG_COPY))
			break;
		run.sent_bytes += bytes;
	}
	tcp_output(pcb);
	return ERR_OK;
}

static err_t accepted(void *arg, struct tcp_pcb *pcb, err_t err)
{
	(void)arg;
	(void)err;
	sender = pcb;
	tcp_arg(pcb, &sender);
	tcp_err(pcb, broken);
	tcp_nagle_disable(pcb); /* or the last, short segment waits for an ACK */
	tcp_sent(pcb, send_more);
	return send_more(NULL, pcb, 0);
}

static void stop(void *arg)
{
	(void)arg;
	sys_untimeout(too_long, NULL);
	over();
}

static err_t arrived(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
	struct pbuf *q;
	u16_t i;

	(void)arg;
	(void)err;
	if (!p)
		return ERR_OK;
	if (run.policy)
		acks_arrived(&acks, p);
	for (q = p; q; q = q->next)
		for (i = 0; i < q->len; i++)
			if (((u8_t *)q->payload)[i] != byte_at(run.read_bytes++))
				run.wrong_bytes++;
	if (run.policy)
		acks_read(&acks, p->tot_len);
	else
		tcp_recved(pcb, p->tot_len);
	pbuf_free(p);
	if (run.read_bytes == BYTES)
		sys_timeout(0, stop, NULL);
	return ERR_OK;
}

static err_t connected(void *arg, struct tcp_pcb *pcb, err_t err)
{
	u32_t rtt_ms = sys_now() - run.begun_ms;

	(void)arg;
	(void)err;
	if (!run.policy)
		return ERR_OK;
	acks_start(&acks, pcb, aw_policy_find(run.policy), rtt_ms * 1000);
	if (!strcmp(run.policy, "delayed"))
		acks.params.value[0] = SEGMENTS;
	return ERR_OK;
}

static void begin(void *arg)
{
	ip_addr_t peer = IPADDR4_INIT_BYTES(10, 1, 0, 2);

	(void)arg;
	run.begun_ms = sys_now();
	listener = tcp_new_ip_type(IPADDR_TYPE_V4);
	tcp_bind(listener, IP4_ADDR_ANY, PORT);
	listener = tcp_listen(listener);
	tcp_accept(listener, accepted);
	receiver = tcp_new_ip_type(IPADDR_TYPE_V4);
	tcp_arg(receiver, &receiver);
	tcp_err(receiver, broken);
	tcp_recv(receiver, arrived);
	sys_timeout(RUN_MS_MOST, too_long, NULL);
	if (tcp_connect(receiver, &peer, PORT, connected) != ERR_OK)
		abort();
}

static void lay_wire(void *arg)
{
	ip4_addr_t sends = { PP_HTONL(0x0a000001) },
		   receives = { PP_HTONL(0x0a010001) };
	ip4_addr_t mask = { PP_HTONL(0xffff0000) };

	(void)arg;
	netif_add(&sender_end, &sends, &mask, IP4_ADDR_ANY4, NULL, join, ip_input);
	netif_add(&receiver_end, &receives, &mask, IP4_ADDR_ANY4, NULL, join, ip_input);
	sys_sem_signal(&done);
}

static bool download(const char *policy, bool loss)
{
	memset(&run, 0, sizeof(run));
	run.policy = policy;
	run.loss = loss;
	tcpip_callback(begin, NULL);
	sys_arch_sem_wait(&done, 0);
	printf("%-11s %4s %9u %5u %5u %6.1f %6u\n", policy ? policy : "lwIP",
	       loss ? "yes" : "no", run.segments, run.lost, run.acks,
	       run.acks ? (double)run.segments / run.acks : 0, run.lasted_ms);
	return run.read_bytes == BYTES && !run.wrong_bytes;
}

int main(void)
{
	static const char *const policies[] = { NULL, "delayed", "a3", "csa3",
						"ratelimit" };
	u32_t own_acks = 0;
	bool right = true;
	size_t i;

	sys_sem_new(&done, 0);
	tcpip_init(lay_wire, NULL);
	sys_arch_sem_wait(&done, 0);
	printf("%-11s %4s %9s %5s %5s %6s %6s\n", "policy", "loss", "segments", "lost",
	       "ACKs", "each", "ms");
	for (i = 0; i < 2 * LWIP_ARRAYSIZE(policies); i++) {
		right &= download(policies[i / 2], i % 2);
		if (!i)
			own_acks = run.acks;
		if (i == 2 && run.acks > own_acks / 2) {
			fprintf(stderr, "%u ACKs, lwIP alone: %u\n", run.acks,
				own_acks);
			right = false;
		}
	}
	if (!right)
		fprintf(stderr, "not as it should be\n");
	return !right;
}
