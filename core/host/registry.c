/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The list of hosts, in the order in which users see them. */
#include <ackwise/host.h>

extern const struct aw_host aw_host_linux;
extern const struct aw_host aw_host_bsd;
extern const struct aw_host aw_host_rfc;
extern const struct aw_host aw_host_model;

static const struct aw_host *const hosts[] = {
	&aw_host_linux,
	&aw_host_bsd,
	&aw_host_rfc,
	&aw_host_model,
};

const struct aw_host *aw_host_at(aw_u32 index)
{
	return index < sizeof(hosts) / sizeof(hosts[0]) ? hosts[index] : NULL;
}

const struct aw_host *aw_host_find(const char *name)
{
	const struct aw_host *host;
	aw_u32 i;

	for (i = 0; (host = aw_host_at(i)); i++)
		if (aw_same_text(host->name, name))
			return host;
	return NULL;
}
