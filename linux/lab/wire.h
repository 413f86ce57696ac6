/* SPDX-License-Identifier: MIT */
/* The wire between the hosts of a flow, without `ip`, which an emulated machine does not have. */
#ifndef LAB_WIRE_H
#define LAB_WIRE_H

#include "flow.h"
#include <stdint.h>

/*
 * A veth pair: `down` in the namespace `server`, `up` in `client`, with the addresses of flow.h and
 * fixed neighbours. `delay_ns`: of what each side sends, 0 for none.
 */
void wire_make(uint32_t mtu_bytes, const int64_t delay_ns[SIDES]);

/*
 * The machine's network card as the port of `side`; the other side is another machine. `delay_ns`: of
 * what this side sends, 0 for none.
 */
void wire_join(uint32_t mtu_bytes, enum side side, int64_t delay_ns);

#endif
