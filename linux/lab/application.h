/* SPDX-License-Identifier: MIT */
/*
 * The applications at both ends of a flow. Each write is a separate send(), as far as the socket
 * accepts it; the rest follows when there is room. A message (the answer to
 * a request, a group of writes, a whole flow) is complete when its last byte has been read.
 */
#ifndef LAB_APPLICATION_H
#define LAB_APPLICATION_H

#include "flow.h"

/* The side that acts first: the writer, or the reader that sends it a request. */
enum side application_first(const struct flow *f);
void application_begin(struct flow *f);
void application_writable(struct flow *f, enum side side);
void application_readable(struct flow *f, enum side side);

#endif
