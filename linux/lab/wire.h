/* SPDX-License-Identifier: MIT */
/* Both hosts of a flow on one wire, where no `ip` is at hand: an emulated machine has only us. */
#ifndef LAB_WIRE_H
#define LAB_WIRE_H

/*
 * A veth pair: `down` in the namespace `server`, `up` in `client`, with the addresses of flow.h and
 * fixed neighbours.
 */
void wire_make(unsigned mtu_bytes);

#endif
