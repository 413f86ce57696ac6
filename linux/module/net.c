// SPDX-License-Identifier: GPL-2.0-only
/*
 * The policy of a network namespace: net.ipv4.tcp_ack_policy, in the words of a kernel
 * that has policies of its own, and /proc/net/ackwise, ACKs by reason.
 */

#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sysctl.h>
#include <net/netns/generic.h>
#include "module.h"

/* "name" or "name:param=value,param=value" */
#define CHOICE_MAX	256
#define NAMES_MAX	512

/* For modinfo: what can be chosen once the module is loaded */
static const char names_info[] __used __aligned(1) __section(".modinfo") = "policies="
#define POLICY(name) #name " "
#include "core/policy/policies.def"
#undef POLICY
;

static unsigned int net_id;

/* Names and choices change with it, one at a time. */
DEFINE_MUTEX(ackwise_choices);

struct ackwise_net *ackwise_net(const struct net *net)
{
	return net_generic(net, net_id);
}

void ackwise_choice_put(struct ackwise_choice *choice)
{
	if (choice && refcount_dec_and_test(&choice->refs))
		kfree_rcu(choice, rcu);
}

const struct aw_policy *ackwise_policy_find(const char *name)
{
	return aw_policy_find(name) ? : ackwise_bpf_find(name);
}

static struct ackwise_choice *choice_of(const struct aw_policy *policy)
{
	struct ackwise_choice *choice = kzalloc(sizeof(*choice), GFP_KERNEL_ACCOUNT);

	if (!choice)
		return NULL;
	choice->policy = policy;
	refcount_set(&choice->refs, 1);
	aw_params_init(policy->params, policy->params_count, &choice->params);
	return choice;
}

static int set_param(struct ackwise_choice *choice, char *text)
{
	const struct aw_policy *policy = choice->policy;
	char *name = strsep(&text, "=");
	u32 i, value;

	if (!text || kstrtou32(text, 0, &value))
		return -EINVAL;
	for (i = 0; i < policy->params_count; i++) {
		if (strcmp(policy->params[i].name, name))
			continue;
		if (value < policy->params[i].min || value > policy->params[i].max)
			return -ERANGE;
		choice->params.value[i] = value;
		choice->stated |= BIT(i);
		return 0;
	}
	return -EINVAL;
}

/* NULL: TCP's own rules; text is cut to pieces. */
static struct ackwise_choice *choice_from(char *text)
{
	char *param, *name = strsep(&text, ":");
	struct ackwise_choice *choice;
	const struct aw_policy *policy;
	int ret = 0;

	if (!strcmp(name, ACKWISE_STOCK))
		return text ? ERR_PTR(-EINVAL) : NULL;
	policy = ackwise_policy_find(name);
	if (!policy)
		return ERR_PTR(-ENOENT);
	choice = choice_of(policy);
	if (!choice)
		return ERR_PTR(-ENOMEM);
	while (!ret && (param = strsep(&text, ",")))
		ret = set_param(choice, param);
	if (!ret)
		return choice;
	kfree(choice);
	return ERR_PTR(ret);
}

static void print_choice(const struct ackwise_choice *choice, char *buf, size_t len)
{
	const struct aw_policy *policy;
	char separator = ':';
	size_t offs;
	u32 i;

	if (!choice) {
		strscpy(buf, ACKWISE_STOCK, len);
		return;
	}
	policy = choice->policy;
	offs = scnprintf(buf, len, "%s", policy->name);
	for (i = 0; i < policy->params_count; i++) {
		if (!(choice->stated & BIT(i)))
			continue;
		offs += scnprintf(buf + offs, len - offs, "%c%s=%u", separator,
				  policy->params[i].name, choice->params.value[i]);
		separator = ',';
	}
}

static void replace(struct ackwise_net *mine, struct ackwise_choice *choice)
{
	ackwise_choice_put(unrcu_pointer(xchg(&mine->choice, RCU_INITIALIZER(choice))));
}

/* Namespaces that have chosen one policy have another, or with NULL TCP's own rules. */
int ackwise_replace_everywhere(const struct aw_policy *old, const struct aw_policy *new)
{
	struct ackwise_choice *choice = NULL, *chosen;
	struct ackwise_net *mine;
	struct net *net;

	if (new) {
		choice = choice_of(new);
		if (!choice)
			return -ENOMEM;
	}
	down_read(&net_rwsem);
	for_each_net(net) {
		mine = ackwise_net(net);
		chosen = rcu_dereference_protected(mine->choice,
						   lockdep_is_held(&ackwise_choices));
		if (!chosen || chosen->policy != old)
			continue;
		if (choice)
			refcount_inc(&choice->refs);
		replace(mine, choice);
	}
	up_read(&net_rwsem);
	ackwise_choice_put(choice);
	return 0;
}

static int policy_handler(const struct ctl_table *table, int write, void *buffer,
			  size_t *lenp, loff_t *ppos)
{
	struct ackwise_net *mine = table->data;
	struct ackwise_choice *choice;
	char text[CHOICE_MAX];
	struct ctl_table words = {
		.data = text,
		.maxlen = sizeof(text),
	};
	int ret;

	rcu_read_lock();
	print_choice(rcu_dereference(mine->choice), text, sizeof(text));
	rcu_read_unlock();
	ret = proc_dostring(&words, write, buffer, lenp, ppos);
	if (ret || !write)
		return ret;
	mutex_lock(&ackwise_choices);
	choice = choice_from(text);
	if (!IS_ERR(choice))
		replace(mine, choice);
	mutex_unlock(&ackwise_choices);
	return PTR_ERR_OR_ZERO(choice);
}

static int names_handler(const struct ctl_table *table, int write, void *buffer,
			 size_t *lenp, loff_t *ppos)
{
	char text[NAMES_MAX];
	struct ctl_table words = {
		.data = text,
		.maxlen = sizeof(text),
	};
	const struct aw_policy *policy;
	size_t offs = 0;
	u32 i;

	*text = '\0';
	for (i = 0; (policy = aw_policy_at(i)); i++)
		offs += scnprintf(text + offs, sizeof(text) - offs, "%s%s", offs ? " " : "",
				  policy->name);
	mutex_lock(&ackwise_choices);
	ackwise_bpf_names(text, sizeof(text));
	mutex_unlock(&ackwise_choices);
	return proc_dostring(&words, write, buffer, lenp, ppos);
}

static const struct ctl_table sysctls[] = {
	{
		.procname = "tcp_ack_policy",
		.maxlen = CHOICE_MAX,
		.mode = 0644,
		.proc_handler = policy_handler,
	},
	{
		.procname = "tcp_available_ack_policies",
		.maxlen = NAMES_MAX,
		.mode = 0444,
		.proc_handler = names_handler,
	},
};

static int show_counts(struct seq_file *seq, void *unused)
{
	const struct ackwise_net *mine = ackwise_net(seq_file_single_net(seq));
	unsigned long sum;
	u32 why;
	int cpu;

	seq_puts(seq, "TcpAck:");
	for (why = AW_REASON_WAITING + 1; why < AW_REASONS; why++)
		seq_printf(seq, " %s", aw_reason_label(why));
	seq_puts(seq, "\nTcpAck:");
	for (why = AW_REASON_WAITING + 1; why < AW_REASONS; why++) {
		sum = 0;
		for_each_possible_cpu(cpu)
			sum += per_cpu_ptr(mine->counts, cpu)->by[why];
		seq_printf(seq, " %lu", sum);
	}
	seq_printf(seq, "\nAckwise: connections\nAckwise: %d\n", atomic_read(&mine->conns));
	return 0;
}

static int __net_init enter(struct net *net)
{
	struct ackwise_net *mine = ackwise_net(net);
	struct ctl_table *table;

	mine->counts = alloc_percpu(struct ackwise_counts);
	if (!mine->counts)
		return -ENOMEM;
	table = kmemdup(sysctls, sizeof(sysctls), GFP_KERNEL);
	if (!table)
		goto counts;
	table[0].data = mine;
	mine->sysctls = register_net_sysctl_sz(net, "net/ipv4", table, ARRAY_SIZE(sysctls));
	if (!mine->sysctls)
		goto table;
	if (proc_create_net_single("ackwise", 0444, net->proc_net, show_counts, NULL))
		return 0;
	unregister_net_sysctl_table(mine->sysctls);
table:
	kfree(table);
counts:
	free_percpu(mine->counts);
	return -ENOMEM;
}

static void __net_exit leave(struct net *net)
{
	struct ackwise_net *mine = ackwise_net(net);
	const struct ctl_table *table = mine->sysctls->ctl_table_arg;

	remove_proc_entry("ackwise", net->proc_net);
	unregister_net_sysctl_table(mine->sysctls);
	kfree(table);
	replace(mine, NULL);
	free_percpu(mine->counts);
}

static struct pernet_operations net_ops = {
	.init = enter,
	.exit = leave,
	.id = &net_id,
	.size = sizeof(struct ackwise_net),
};

int __init ackwise_net_init(void)
{
	return register_pernet_subsys(&net_ops);
}

void ackwise_net_exit(void)
{
	unregister_pernet_subsys(&net_ops);
}
