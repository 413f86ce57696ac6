/* SPDX-License-Identifier: MIT */
/* Sets socket options; an error ends the guest. */
#ifndef LAB_SOCKET_H
#define LAB_SOCKET_H

void set_option(int fd, int level, int option, int value, const char *name);
void choose_policy(int fd, const char *policy);

#endif
