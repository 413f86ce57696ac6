/* SPDX-License-Identifier: MIT */
/* Validation, the registries, parameters, the clamp and reasons; 64-bit division. */
#include <string.h>
#include <ackwise/ackwise.h>
#include "listed.h"
#include "test.h"

extern const struct aw_policy aw_policy_template;

static struct aw_order order(void *state, const struct aw_params *p,
			     const struct aw_seen *seen)
{
	(void)state, (void)p, (void)seen;
	return aw_order(0, 0);
}

static const struct aw_param good_params[] = {
	{ "first_ms", "ms", "A sentence.", 1, 3, 2 },
	{ "second", "bytes", "A sentence.", 0, 0, 0 },
};

static const struct aw_value good_values[] = {
	{ "rate_segments", "segments", "A sentence." },
	{ "z", "1/1000", "A sentence." },
};

static void observe(const void *state, const struct aw_params *p, aw_u32 *out)
{
	(void)state, (void)p;
	out[0] = out[1] = 0;
}

static const struct aw_policy good = {
	.name = "good2",
	.summary = "sound in all",
	.source = "RFC 1122",
	.params = good_params,
	.params_count = 2,
	.values = good_values,
	.values_count = 2,
	.state_bytes = AW_STATE_MAX_BYTES,
	.order = order,
	.observe = observe,
};

#define REJECTS(error, change)                                                      \
	do {                                                                        \
		struct aw_policy bad = good;                                        \
		struct aw_param bad_params[AW_PARAMS_MAX + 1] = { good_params[0],   \
								  good_params[1] }; \
		struct aw_value bad_values[AW_VALUES_MAX + 1] = { good_values[0],   \
								  good_values[1] }; \
		bad.params = bad_params;                                            \
		bad.values = bad_values;                                            \
		CHECK(aw_policy_validate(&bad) == 0, "before");                     \
		change;                                                             \
		CHECK(aw_policy_validate(&bad) == AW_EPOLICY_##error, "%d",         \
		      aw_policy_validate(&bad));                                    \
	} while (0)

static void rejects_each_broken_rule(void)
{
	CHECK(aw_policy_validate(&good) == 0, "good");
	CHECK(aw_policy_validate(NULL) == AW_EPOLICY_NAME, "none");
	REJECTS(NAME, bad.name = NULL);
	REJECTS(NAME, bad.name = "");
	REJECTS(NAME, bad.name = "Upper");
	REJECTS(NAME, bad.name = "two words");
	REJECTS(NAME, bad.name = "a-b");
	REJECTS(NAME, bad.name = "a_b");
	REJECTS(NAME, bad.name = "3a");
	REJECTS(NAME, bad.name = "sixteenletterssx");
	REJECTS(NAME, bad.summary = NULL);
	REJECTS(NAME, bad.summary = "");
	REJECTS(NAME, bad.source = NULL);
	REJECTS(NAME, bad.source = "");
	REJECTS(REQUIRED, bad.order = NULL);
	REJECTS(STATE, bad.state_bytes = AW_STATE_MAX_BYTES + 1);
	REJECTS(PARAM, bad.params = NULL);
	REJECTS(PARAM, bad.params_count = AW_PARAMS_MAX + 1);
	REJECTS(PARAM, bad_params[0].name = NULL);
	REJECTS(PARAM, bad_params[0].name = "Ms");
	REJECTS(PARAM, bad_params[1].unit = NULL);
	REJECTS(PARAM, bad_params[1].text = "");
	REJECTS(PARAM, bad_params[0].initial = 0);
	REJECTS(PARAM, bad_params[0].initial = 4);
	REJECTS(PARAM, (bad_params[0].min = 3, bad_params[0].max = 2));
	REJECTS(PARAM, bad_params[1].name = "first_ms");
	REJECTS(VALUE, bad.values = NULL);
	REJECTS(VALUE, bad.values_count = AW_VALUES_MAX + 1);
	REJECTS(VALUE, bad.values_count = 0);
	REJECTS(VALUE, bad.observe = NULL);
	REJECTS(VALUE, bad_values[0].name = NULL);
	REJECTS(VALUE, bad_values[1].name = "Z");
	REJECTS(VALUE, bad_values[1].unit = "");
	REJECTS(VALUE, bad_values[0].text = NULL);
	REJECTS(VALUE, bad_values[1].name = "rate_segments");
}

static void lists_sound_policies(void)
{
	const struct aw_policy *policy;
	struct aw_params p;
	aw_u32 i, j;

	CHECK(aw_policy_find("every") && aw_policy_count() >= 2, "a list");
	for (i = 0; (policy = listed_at(i)); i++) {
		CHECK(aw_policy_validate(policy) == 0, "%s", policy->name);
		CHECK(listed_find(policy->name) == policy, "%s is unique",
		      policy->name);
		memset(&p, 0xff, sizeof(p));
		aw_params_init(policy->params, policy->params_count, &p);
		for (j = 0; j < AW_PARAMS_MAX; j++)
			CHECK(p.value[j] == (j < policy->params_count
						     ? policy->params[j].initial
						     : 0),
			      "%s %u", policy->name, j);
	}
	CHECK(!aw_policy_at(aw_policy_count()) && !aw_rival_at(i), "past the end");
	CHECK(!listed_find("ever") && !listed_find("everyx") && !listed_find(""),
	      "no prefixes");
	CHECK(rival_find("xnu") && !aw_policy_find("xnu") && !rival_find("every"),
	      "rivals are no policies of ours");
	CHECK(aw_policy_validate(&aw_policy_template) == 0, "template");
}

static void lists_hosts(void)
{
	const struct aw_host *host;
	aw_u32 i, j;

	for (i = 0; (host = aw_host_at(i)); i++) {
		CHECK(aw_host_find(host->name) == host, "%s is unique", host->name);
		CHECK(!listed_find(host->name), "%s is no policy", host->name);
		CHECK(host->summary[0] && host->source[0], "%s", host->name);
		CHECK(host->delay && host->on_data && host->on_deadline &&
			      host->on_app_read && host->on_ack_sent,
		      "%s", host->name);
		CHECK(host->params_count <= AW_PARAMS_MAX, "%s", host->name);
		for (j = 0; j < host->params_count; j++)
			CHECK(host->params[j].min <= host->params[j].initial &&
				      host->params[j].initial <= host->params[j].max,
			      "%s %s", host->name, host->params[j].name);
	}
	CHECK(i >= 3 && !aw_host_at(i) && aw_host_find("linux") && aw_host_find("rfc"),
	      "%u", i);
	CHECK(!aw_host_find("rf") && !aw_host_find("rfcs") && !aw_host_find(""),
	      "no prefixes");
}

/* What the clamp makes of an order, worked out by hand. [D-17] [D-26] */
static void clamps(void)
{
	static const struct {
		aw_u32 mss, wnd, flight, delay_us;
		struct aw_order o, expected;
	} rows[] = {
		/* a quarter of the flight, or of the window if that is less */
		{ 1000, 80000, 40000, 0, { 50000, 0 }, { 10000, 0 } },
		{ 1000, 20000, 40000, 0, { 50000, 0 }, { 5000, 0 } },
		{ 1000, 80000, 40000, 0, { 9999, 0 }, { 9999, 0 } },
		/* two segments may always wait [RFC 5681, 4.2 (a)] */
		{ 1000, 80000, 0, 0, { 50000, 0 }, { 2000, 0 } },
		{ 1000, 80000, 7000, 0, { 50000, 0 }, { 2000, 0 } },
		{ ~0u, 0, 0, 0, { ~0u, 0 }, { ~0u, 0 } },
		/* from 50 us to 500 ms, or what the host allows; 0 is the host's own */
		{ 1000, 0, 0, 0, { 0, 1 }, { 0, 50000 } },
		{ 1000, 0, 0, 0, { 0, 50001 }, { 0, 50001 } },
		{ 1000, 0, 0, 0, { 0, AW_NOW_NS - 1 }, { 0, 500000000 } },
		{ 1000, 0, 0, 30000, { 0, 30000001 }, { 0, 30000000 } },
		{ 1000, 0, 0, ~0u, { 0, AW_NOW_NS - 1 }, { 0, 500000000 } },
		{ 1000, 0, 0, 10, { 0, 1 }, { 0, 10000 } },
		{ 1000, 0, 0, 10, { 0, 0 }, { 0, 0 } },
	};
	struct aw_order o;
	aw_u32 i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		o = aw_clamp(rows[i].o, aw_most(rows[i].mss, rows[i].wnd,
						rows[i].flight, rows[i].delay_us));
		CHECK(o.bytes == rows[i].expected.bytes &&
			      o.delay_ns == rows[i].expected.delay_ns,
		      "row %u: { %u, %u }", i, o.bytes, o.delay_ns);
	}
	o = aw_order(1ull << 40, ~0ull);
	CHECK(o.bytes == ~0u && !aw_is_now(o), "a long order is not an ACK");
	CHECK(aw_is_now(aw_now(AW_REASON_QUIET)), "now");
}

static void gives_words_for_reasons(void)
{
	aw_u32 i, j;

	for (i = 0; i < AW_REASONS; i++) {
		CHECK(aw_reason_label(i)[0] && aw_reason_text(i)[0], "%u", i);
		for (j = 0; j < i; j++)
			CHECK(strcmp(aw_reason_label(i), aw_reason_label(j)),
			      "%s twice", aw_reason_label(i));
	}
	CHECK(!strcmp(aw_reason_source(AW_REASON_WAITING), "wait"), "wait");
	CHECK(!strcmp(aw_reason_source(AW_REASON_AREA), "policy"), "policy");
	CHECK(!strcmp(aw_reason_source(AW_REASON_FIN), "duty"), "duty");
	CHECK(!strcmp(aw_reason_source(AW_REASON_PIGGYBACK), "driver"), "driver");
	CHECK(!strcmp(aw_reason_label(AW_REASONS), "?") &&
		      !strcmp(aw_reason_text(~0u), "?") &&
		      !strcmp(aw_reason_source(AW_REASONS), "?"),
	      "unknown");
}

static void divides(void)
{
	static const struct {
		aw_u64 n;
		aw_u32 d;
		aw_u64 quotient;
	} rows[] = {
		{ 0, 1, 0 },
		{ 7, 0, ~0ull },
		{ ~0ull, 1, ~0ull },
		{ ~0ull, ~0u, 0x100000001ull },
		{ 1000000007, 1000, 1000000 },
		{ 0x8000000000000000ull, 3, 0x2aaaaaaaaaaaaaaaull },
	};
	aw_u32 i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK(aw_div64(rows[i].n, rows[i].d) == rows[i].quotient, "row %u", i);
	CHECK(aw_add_ns(1, 2) == 3 && aw_add_ns(AW_NEVER_NS, 1) == AW_NEVER_NS &&
		      aw_add_ns(AW_NEVER_NS - 1, 1) == AW_NEVER_NS,
	      "adds");
}

int main(void)
{
	rejects_each_broken_rule();
	lists_sound_policies();
	lists_hosts();
	clamps();
	gives_words_for_reasons();
	divides();
	return test_end();
}
