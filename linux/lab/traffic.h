/* SPDX-License-Identifier: MIT */
/* A run: the flows, pings and programs of the steps, over one clock, and the files it leaves. */
#ifndef LAB_TRAFFIC_H
#define LAB_TRAFFIC_H

#include <stdint.h>

/* The step "exec-at TIME_NS NAMESPACE WORDS...". */
void traffic_program_at(uint64_t time_ns, const char *namespace_name,
			char *const words[]);

/* The step "run DURATION_NS SAMPLE_NS"; SAMPLE_NS 0: no samples. */
void traffic_run(uint64_t duration_ns, uint64_t sample_ns);

#endif
