// SPDX-License-Identifier: MIT
// The core in one file, used from C++.  Argument: the version of the project.
#include <cstring>
#include "ackwise.h"
#include "test.h"

int main(int argc, char **argv)
{
	const aw_policy *policy = aw_policy_find("delayed");
	const aw_host *host = aw_host_find("rfc");
	aw_params params, host_params;
	aw_conn conn;
	aw_event e = {};
	struct aw_verdict v;

	CHECK(argc == 2 && !std::strcmp(argv[1], AW_VERSION), "%s", AW_VERSION);
	aw_params_init(policy->params, policy->params_count, &params);
	aw_params_init(host->params, host->params_count, &host_params);
	aw_conn_init(&conn, host, &host_params, policy, &params, &e);
	e.kind = AW_EVENT_DATA;
	e.now_ns = AW_NS_PER_S;
	e.rcv_mss_bytes = 1460;
	e.segments = 1;
	e.wnd_bytes = e.wnd_next_bytes = e.wnd_max_bytes = 65535;
	e.bytes = e.unacked_bytes = 1460;
	v = aw_decide(&conn, &e);
	CHECK(v.action == AW_WAIT && v.deadline_ns == e.now_ns + 200 * AW_NS_PER_MS,
	      "one segment waits");
	e.unacked_bytes = 2920;
	v = aw_decide(&conn, &e);
	CHECK(v.action == AW_SEND_NOW &&
		      !std::strcmp(aw_reason_label(v.reason), "segment-count"),
	      "%s", aw_reason_label(v.reason));
	return test_end();
}
