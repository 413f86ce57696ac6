/* SPDX-License-Identifier: MIT */
/* Bytes of state per connection; --list and --hosts are for make size. */
#include <string.h>
#include <ackwise/ackwise.h>
#include "listed.h"
#include "test.h"

int main(int argc, char **argv)
{
	const struct aw_policy *policy;
	const struct aw_host *host;
	aw_u32 i;

	for (i = 0; (policy = listed_at(i)); i++) {
		if (argc > 1 && !strcmp(argv[1], "--list"))
			printf("%s:%u\n", policy->name, policy->state_bytes);
		CHECK(policy->state_bytes <= AW_STATE_MAX_BYTES, "%s", policy->name);
	}
	for (i = 0; (host = aw_host_at(i)); i++)
		if (argc > 1 && !strcmp(argv[1], "--hosts"))
			printf("%s\n", host->name);
	if (argc > 1)
		return 0;
	/* what the headers promise to every driver and binding */
	CHECK(sizeof(struct aw_event) == 64, "%zu", sizeof(struct aw_event));
	CHECK(sizeof(struct aw_verdict) == 16, "%zu", sizeof(struct aw_verdict));
	CHECK(sizeof(struct aw_seen) <= 96, "%zu", sizeof(struct aw_seen));
	CHECK(sizeof(struct aw_conn) <= 256, "%zu", sizeof(struct aw_conn));
	return test_end();
}
