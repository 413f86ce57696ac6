/* SPDX-License-Identifier: MIT */
#ifndef LAB_CONFORM_H
#define LAB_CONFORM_H

/* Runs the claims of the file `from` and writes what left the host to the file `to`. */
void conform_run(const char *from, const char *to);

#endif
