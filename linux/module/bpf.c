// SPDX-License-Identifier: GPL-2.0-only
/*
 * Policies that BPF programs make: struct_ops tcp_ack_ops, the objects that a kernel with
 * the patch series takes. A program reads the socket and what it is told, and aw_clamp()
 * bounds its answers as those of any policy. Its storage of a socket is the state that
 * the connection has for its policy: one map, as long as the connection follows it.
 */

#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/btf.h>
#include <linux/btf_ids.h>
#include <linux/ctype.h>
#include <linux/filter.h>
#include <linux/slab.h>
#include "module.h"

#define NAME_BYTES	16
/* As the series has them; bit 0 is no program's to set. */
#define READS_ARRIVALS	BIT(1)
#define ASKED_ON_READ	BIT(2)
#define USES_RANDOM	BIT(3)
#define FLAGS		(READS_ARRIVALS | ASKED_ON_READ | USES_RANDOM)

/**
 * struct tcp_ack_ops - what the programs of a policy are
 * @order: the answer to a question: nanoseconds in the upper half, bytes in the lower
 * @init: a socket begins to follow it, before the first question (optional)
 * @release: a socket no longer follows it: not called here (optional)
 * @name: by which it is chosen
 * @flags: READS_ARRIVALS and so on
 */
struct tcp_ack_ops {
	u64	(*order)(struct sock *sk, const struct tcp_ack_seen *seen);
	void	(*init)(struct sock *sk);
	void	(*release)(struct sock *sk);
	char	name[NAME_BYTES];
	u32	flags;
};

/* A policy as those of the core are, which asks a program */
struct bpf_policy {
	struct list_head		list;
	struct aw_policy		policy;
	const struct tcp_ack_ops	*ops;
};

static LIST_HEAD(loaded);

BTF_ID_LIST(ids)
BTF_ID(struct, sock)
BTF_ID(struct, tcp_sock)

static const struct tcp_ack_ops *ops_of(const struct ackwise_conn *conn)
{
	return container_of(conn->choice->policy, struct bpf_policy, policy)->ops;
}

static struct aw_order ask_program(void *state, const struct aw_params *unused,
				   const struct tcp_ack_seen *seen)
{
	struct ackwise_conn *conn = container_of(state, struct ackwise_conn, state);
	u64 answer = ops_of(conn)->order(conn->sk, seen);

	return (struct aw_order){
		.bytes = lower_32_bits(answer),
		.delay_ns = upper_32_bits(answer),
	};
}

static void start_program(void *state, const struct aw_params *unused, u32 random)
{
	struct ackwise_conn *conn = container_of(state, struct ackwise_conn, state);
	const struct tcp_ack_ops *ops = ops_of(conn);

	conn->storage = NULL;
	if (ops->init)
		ops->init(conn->sk);
}

/* The policy of this name, among those that are loaded; with ackwise_choices */
const struct aw_policy *ackwise_bpf_find(const char *name)
{
	struct bpf_policy *one;

	list_for_each_entry(one, &loaded, list)
		if (!strcmp(one->policy.name, name))
			return &one->policy;
	return NULL;
}

/* Their names behind those in buf; with ackwise_choices */
void ackwise_bpf_names(char *buf, size_t len)
{
	size_t offs = strlen(buf);
	struct bpf_policy *one;

	list_for_each_entry(one, &loaded, list)
		offs += scnprintf(buf + offs, len - offs, " %s", one->policy.name);
}

static struct bpf_policy *find_ops(const struct tcp_ack_ops *ops)
{
	struct bpf_policy *one;

	list_for_each_entry(one, &loaded, list)
		if (one->ops == ops)
			return one;
	return NULL;
}

static struct bpf_policy *policy_of(const struct tcp_ack_ops *ops)
{
	struct bpf_policy *made = kzalloc(sizeof(*made), GFP_KERNEL);

	if (!made)
		return NULL;
	made->ops = ops;
	made->policy = (struct aw_policy){
		.name = ops->name,
		.reads_arrivals = !!(ops->flags & READS_ARRIVALS),
		.asked_on_read = !!(ops->flags & ASKED_ON_READ),
		.uses_random = !!(ops->flags & USES_RANDOM),
		.init = start_program,
		.order = ask_program,
	};
	return made;
}

/* Nobody follows it any more, nor can. */
static void discard(struct bpf_policy *old)
{
	synchronize_rcu();
	ackwise_conns_drain(&old->policy);
	synchronize_rcu();
	kfree(old);
}

static int reg(void *kdata, struct bpf_link *link)
{
	const struct tcp_ack_ops *ops = kdata;
	struct bpf_policy *made = policy_of(ops);
	int ret = 0;

	if (!made)
		return -ENOMEM;
	mutex_lock(&ackwise_choices);
	if (ackwise_policy_find(ops->name) || !strcmp(ops->name, ACKWISE_STOCK))
		ret = -EEXIST;
	else
		list_add_tail(&made->list, &loaded);
	mutex_unlock(&ackwise_choices);
	if (ret)
		kfree(made);
	return ret;
}

/* Who followed it, follows TCP's own rules. */
static void unreg(void *kdata, struct bpf_link *link)
{
	struct bpf_policy *old;

	mutex_lock(&ackwise_choices);
	old = find_ops(kdata);
	if (old) {
		list_del(&old->list);
		ackwise_replace_everywhere(&old->policy, NULL);
	}
	mutex_unlock(&ackwise_choices);
	if (old)
		discard(old);
}

/* Who followed it, follows the other, from the start. */
static int update(void *kdata, void *old_kdata, struct bpf_link *link)
{
	const struct tcp_ack_ops *ops = kdata;
	struct bpf_policy *old, *made = policy_of(ops);
	int ret = -EINVAL;

	if (!made)
		return -ENOMEM;
	mutex_lock(&ackwise_choices);
	old = find_ops(old_kdata);
	if (old && !strcmp(old->policy.name, ops->name)) {
		ret = ackwise_replace_everywhere(&old->policy, &made->policy);
		if (!ret)
			list_replace(&old->list, &made->list);
	}
	mutex_unlock(&ackwise_choices);
	if (ret)
		kfree(made);
	else
		discard(old);
	return ret;
}

static int validate(void *kdata)
{
	return ((struct tcp_ack_ops *)kdata)->order ? 0 : -EINVAL;
}

/* All run under a spinlock. */
static int check_member(const struct btf_type *t, const struct btf_member *member,
			const struct bpf_prog *prog)
{
	return prog->sleepable ? -EINVAL : 0;
}

static bool is_name(const char *name)
{
	size_t len = strnlen(name, NAME_BYTES);
	size_t i;

	for (i = 0; i < len; i++)
		if (!isalnum(name[i]) && name[i] != '_')
			return false;
	return len && len < NAME_BYTES;
}

static int init_member(const struct btf_type *t, const struct btf_member *member,
		       void *kdata, const void *udata)
{
	const struct tcp_ack_ops *from = udata;
	struct tcp_ack_ops *ops = kdata;

	switch (__btf_member_bit_offset(t, member) / 8) {
	case offsetof(struct tcp_ack_ops, flags):
		if (from->flags & ~FLAGS)
			return -EINVAL;
		ops->flags = from->flags;
		return 1;
	case offsetof(struct tcp_ack_ops, name):
		if (!is_name(from->name))
			return -EINVAL;
		memcpy(ops->name, from->name, NAME_BYTES);
		return 1;
	}
	return 0;
}

/* Modules cannot call the kernel's own. The address only finds the connection. */
BPF_CALL_4(ackwise_storage_get, struct bpf_map *, map, struct sock *, sk, void *, value,
	   u64, flags)
{
	struct ackwise_conn *conn = ackwise_conn_find(sk);

	if (!conn || map->value_size > sizeof(conn->state) ||
	    (conn->storage && conn->storage != map))
		return 0;
	conn->storage = map;
	return (unsigned long)conn->state;
}

static const struct bpf_func_proto storage_get_proto = {
	.func		= ackwise_storage_get,
	.gpl_only	= true,
	.ret_type	= RET_PTR_TO_MAP_VALUE_OR_NULL,
	.arg1_type	= ARG_CONST_MAP_PTR,
	/* Of this module's types, which are no socket to the verifier */
	.arg2_type	= ARG_ANYTHING,
	.arg3_type	= ARG_PTR_TO_MAP_VALUE_OR_NULL,
	.arg4_type	= ARG_ANYTHING,
};

static const struct bpf_func_proto *func_proto(enum bpf_func_id id,
					       const struct bpf_prog *prog)
{
	return id == BPF_FUNC_sk_storage_get ? &storage_get_proto :
					       bpf_base_func_proto(id, prog);
}

static bool is_valid_access(int off, int size, enum bpf_access_type type,
			    const struct bpf_prog *prog, struct bpf_insn_access_aux *info)
{
	if (!bpf_tracing_btf_ctx_access(off, size, type, prog, info))
		return false;
	if (base_type(info->reg_type) == PTR_TO_BTF_ID && info->btf_id == ids[0])
		info->btf_id = ids[1];
	return true;
}

static const struct bpf_verifier_ops verifier_ops = {
	.get_func_proto		= func_proto,
	.is_valid_access	= is_valid_access,
};

static int init(struct btf *btf)
{
	return 0;
}

static u64 order_stub(struct sock *sk, const struct tcp_ack_seen *seen)
{
	return 0;
}

static void socket_stub(struct sock *sk)
{
}

static struct tcp_ack_ops stubs = {
	.order = order_stub,
	.init = socket_stub,
	.release = socket_stub,
};

static struct bpf_struct_ops tcp_ack_struct_ops = {
	.verifier_ops = &verifier_ops,
	.init = init,
	.check_member = check_member,
	.init_member = init_member,
	.validate = validate,
	.reg = reg,
	.unreg = unreg,
	.update = update,
	.cfi_stubs = &stubs,
	.owner = THIS_MODULE,
	.name = "tcp_ack_ops",
};

/* Without the module's types (BTF), the kernel says so, and there are none. */
int __init ackwise_bpf_init(void)
{
	return register_bpf_struct_ops(&tcp_ack_struct_ops, tcp_ack_ops);
}
