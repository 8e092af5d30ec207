/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define REQUIRE(what) ((what) ? (void)0 : abort())

/* libFuzzer calls this function, and so does the replay of the corpus. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
