/* SPDX-License-Identifier: MIT */
/* The headers of every TCP packet of a device, written to a pcap file. */
#ifndef LAB_CAPTURE_H
#define LAB_CAPTURE_H

void capture_open(const char *namespace_name, const char *device, const char *file);
void capture_drain(void);
void capture_close(void);

#endif
