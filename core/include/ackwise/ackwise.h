/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The whole interface.
 *
 * A stack with ACK rules of its own (Linux) needs order.h and policy.h: it puts the
 * order's two numbers in place of its own, asks, and clamps.  A stack without any
 * needs host.h.
 */
#ifndef ACKWISE_ACKWISE_H
#define ACKWISE_ACKWISE_H

#include <ackwise/host.h>
#include <ackwise/policy.h>

#endif /* ACKWISE_ACKWISE_H */
