/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "script.h"
#include "system.h"
#include "text.h"
#include <string.h>

#define BYTES_MOST ((int64_t)1 << 30)

const char flag_letters[] = "FSRPAUEC";

static bool flag_of(const char *value)
{
	return signed_number(value, 0, 1);
}

static int option_of(const char *value)
{
	return (int)signed_number(value, INT32_MIN, INT32_MAX);
}

/* "tcp_rmem", "4096,8192,16384": several numbers of a sysctl are joined by commas. */
static void add_sysctl(struct setup *s, const char *name, const char *value)
{
	struct sysctl *one = &s->sysctls[s->sysctls_count];
	char *comma;

	if (s->sysctls_count == SYSCTLS_MAX)
		die("more than %d sysctls", SYSCTLS_MAX);
	if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name))
		die("\"%s\" is not the name of a sysctl", name);
	copy_word(one->name, sizeof(one->name), name);
	copy_word(one->value, sizeof(one->value), value);
	for (comma = one->value; (comma = strchr(comma, ',')); comma++)
		*comma = ' ';
	s->sysctls_count++;
}

static enum by by_of(const char *name)
{
	static const char *const names[] = { [BY_SOCKET] = "socket",
					     [BY_SYSCTL] = "sysctl",
					     [BY_ROUTE] = "route",
					     [BY_HOST] = "host" };

	return (enum by)index_of(name, names, ARRAY_SIZE(names), "way");
}

static void setup_key(struct setup *s, const char *key, const char *value)
{
	if (!strncmp(key, "tcp_", 4))
		add_sysctl(s, key, value);
	else if (!strcmp(key, "policy"))
		copy_word(s->policy, sizeof(s->policy), value);
	else if (!strcmp(key, "isn"))
		s->isn = (uint32_t)number(value, UINT32_MAX);
	else if (!strcmp(key, "mss"))
		s->mss = (uint32_t)number(value, UINT16_MAX);
	else if (!strcmp(key, "scale"))
		s->scale = (uint32_t)number(value, SCALE_NONE);
	else if (!strcmp(key, "window"))
		s->window = (uint32_t)number(value, UINT16_MAX);
	else if (!strcmp(key, "syn_bytes"))
		s->syn_bytes = (uint32_t)number(value, UINT16_MAX);
	else if (!strcmp(key, "sack"))
		s->sack = flag_of(value);
	else if (!strcmp(key, "timestamps"))
		s->timestamps = flag_of(value);
	else if (!strcmp(key, "ecn"))
		s->ecn = flag_of(value);
	else if (!strcmp(key, "completes"))
		s->completes = flag_of(value);
	else if (!strcmp(key, "eager"))
		s->eager = flag_of(value);
	else if (!strcmp(key, "checked"))
		s->checked = flag_of(value);
	else if (!strcmp(key, "by"))
		s->by = by_of(value);
	else if (!strcmp(key, "ip"))
		copy_word(s->ip, sizeof(s->ip), value);
	else if (!strcmp(key, "early"))
		s->early_us = signed_number(value, 0, TIME_MOST_US);
	else if (!strcmp(key, "rtt"))
		s->rtt_us = signed_number(value, 0, TIME_MOST_US);
	else if (!strcmp(key, "rcvbuf"))
		s->rcvbuf = option_of(value);
	else if (!strcmp(key, "clamp"))
		s->clamp = option_of(value);
	else if (!strcmp(key, "lowat"))
		s->lowat = option_of(value);
	else if (!strcmp(key, "oobinline"))
		s->oobinline = option_of(value);
	else if (!strcmp(key, "nodelay"))
		s->nodelay = option_of(value);
	else
		die("a claim has no key \"%s\"", key);
}

void setup_parse(struct setup *s, char *keys)
{
	const char *key, *value;

	*s = (struct setup){ .scale = SCALE_NONE,
			     .rcvbuf = -1,
			     .clamp = -1,
			     .lowat = -1,
			     .oobinline = -1,
			     .nodelay = -1 };
	while ((key = next_key(&keys, &value)))
		setup_key(s, key, value);
}

static unsigned flags_of(const char *letters)
{
	unsigned flags = 0;

	for (; *letters && *letters != '-'; letters++) {
		const char *known = strchr(flag_letters, *letters);

		if (!known)
			die("\"%c\" is not a flag", *letters);
		flags |= 1u << (known - flag_letters);
	}
	return flags;
}

static void arrival_key(struct arrival *a, const char *key, const char *value)
{
	if (!strcmp(key, "flags"))
		a->flags = flags_of(value);
	else if (!strcmp(key, "seq"))
		a->seq = signed_number(value, -BYTES_MOST, BYTES_MOST);
	else if (!strcmp(key, "ack"))
		a->ack = signed_number(value, -BYTES_MOST, BYTES_MOST);
	else if (!strcmp(key, "len"))
		a->length = (uint32_t)number(value, UINT16_MAX);
	else if (!strcmp(key, "win"))
		a->window = signed_number(value, 0, UINT16_MAX);
	else if (!strcmp(key, "tos"))
		a->tos = (uint32_t)number(value, UINT8_MAX);
	else if (!strcmp(key, "urg"))
		a->urgent = (uint32_t)number(value, UINT16_MAX);
	else if (!strcmp(key, "tsval"))
		a->tsval_ms = signed_number(value, -BYTES_MOST, BYTES_MOST);
	else
		die("a segment has no key \"%s\"", key);
}

static enum option setting_of(const char *name)
{
	static const char *const names[] = { [POLICY] = "policy",
					     [QUICKACK] = "quickack",
					     [NODELAY] = "nodelay",
					     [RCVBUF] = "rcvbuf",
					     [LOWAT] = "lowat" };

	return (enum option)index_of(name, names, ARRAY_SIZE(names), "option");
}

static void add_setting(struct action *a, const char *name, const char *value)
{
	struct setting *one = &a->settings[a->settings_count];

	if (a->settings_count == SETTINGS_MAX)
		die("more than %d options", SETTINGS_MAX);
	one->option = setting_of(name);
	if (one->option == POLICY)
		copy_word(one->text, sizeof(one->text), value);
	else
		one->value = option_of(value);
	a->settings_count++;
}

static enum verb verb_of(const char *name)
{
	static const char *const names[] = {
		[SEGMENT] = "segment", [READ] = "read",         [WRITE] = "write",
		[SET] = "set",         [SHUTDOWN] = "shutdown", [CLOSE] = "close"
	};

	return (enum verb)index_of(name, names, ARRAY_SIZE(names), "action");
}

void action_parse(struct action *a, const char *time_us, char *rest)
{
	const char *word = strtok_r(rest, " \n", &rest);
	const char *key, *value;

	*a = (struct action){ .time_us = signed_number(time_us, -TIME_MOST_US,
						       TIME_MOST_US),
			      .verb = verb_of(word ? word : "") };
	switch (a->verb) {
	case SEGMENT:
		a->arrival = (struct arrival){ .flags = ACK,
					       .window = -1,
					       .tsval_ms = a->time_us / 1000 };
		while ((key = next_key(&rest, &value)))
			arrival_key(&a->arrival, key, value);
		break;
	case READ:
	case WRITE:
		word = strtok_r(NULL, " \n", &rest);
		if (!word)
			die("a number of bytes is missing");
		a->bytes = (size_t)number(word, (uint64_t)BYTES_MOST);
		break;
	case SET:
		while ((key = next_key(&rest, &value)))
			add_setting(a, key, value);
		break;
	case SHUTDOWN:
		word = strtok_r(NULL, " \n", &rest);
		if (word && strcmp(word, "reading"))
			die("\"%s\" is not a direction", word);
		a->reading = word;
		break;
	case CLOSE:
		break;
	}
}
