/* SPDX-License-Identifier: MIT */
/* The Internet checksum (RFC 1071): the sum of parts, the last of which may have an odd length. */
#ifndef LAB_CHECKSUM_H
#define LAB_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint32_t checksum_add(uint32_t sum, const void *data, size_t length);

/* In the host's byte order. */
uint16_t checksum_fold(uint32_t sum);

#endif
