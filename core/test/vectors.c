/* SPDX-License-Identifier: MIT */
/*
 * One event log through every policy on every host, one line per verdict.  The output must not
 * depend on the machine's word size or byte order.
 */
#include <stdio.h>
#include "listed.h"
#include "model.h"

#define EVENTS 1000

static void play(const struct aw_host *host, const struct aw_policy *policy,
		 aw_u8 shape)
{
	struct aw_params host_params, params;
	struct aw_conn conn;
	struct aw_verdict v;
	struct model model;
	struct aw_event e;
	aw_u32 seed = shape + 1u, i;
	aw_u8 op, size;

	model_start(&model, shape);
	memset(&e, 0, sizeof(e));
	e.now_ns = model.now_ns;
	e.random = model_next(&model.random);
	aw_params_init(host->params, host->params_count, &host_params);
	if (policy)
		aw_params_init(policy->params, policy->params_count, &params);
	aw_conn_init(&conn, host, &host_params, policy, &params, &e);
	for (i = 0; i < EVENTS; i++) {
		op = (aw_u8)(model_next(&seed) % 64);
		size = (aw_u8)(model_next(&seed) >> 9);
		/* mostly data in order, and ACKs when the verdict says so; few
		 * losses, so that policies settle in between */
		if (conn.pending.action == AW_SEND_NOW && op < 48)
			op = MODEL_SENT;
		else if (op >= 2 * MODEL_OPS)
			op = op & 1 ? MODEL_SEGMENT : MODEL_READ_ALL;
		size &= op == MODEL_DUE ? 0xff : 0x7f;
		model_event(&model, op, size, &conn.pending, &e);
		v = aw_decide(&conn, &e);
		printf("%s %s %u %llu %u %u %s %lld %u\n", host->name,
		       policy ? policy->name : "-", i, (unsigned long long)e.now_ns,
		       e.kind, v.action, aw_reason_label(v.reason),
		       (long long)v.deadline_ns, v.by_duty);
	}
}

int main(void)
{
	const struct aw_host *host;
	aw_u32 h, i;
	aw_u8 shape;

	for (h = 0; (host = aw_host_at(h)); h++)
		for (i = 0; i <= listed_count(); i++)
			for (shape = 0; shape < 32; shape += 5)
				play(host, listed_at(i), shape);
	return 0;
}
