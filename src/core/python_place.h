/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Where a frame is: its names and its line, as text. User space only. */
#include "core/python.h"

/* A text of Latin letters needs twice its bytes in UTF-8, and a cut one begins with an ellipsis. */
#define PYTHON_FUNCTION_LEN (4 * PYTHON_NAME_BYTES)
#define PYTHON_PATH_LEN	    (4 * PYTHON_FILE_BYTES)

struct python_place {
	u32 line; /* 0: not known */
	char function[PYTHON_FUNCTION_LEN];
	char file[PYTHON_PATH_LEN];
};

/* Copies one part of the code of a frame. A negative result: it is not known. */
typedef int (*python_part_fn)(void *ctx, const struct python_frame *frame, u32 part,
			      struct python_code *ret);

/* Returns the error of the first part. Lines behind a part that is not known are not known. */
int python_place(python_part_fn read, void *ctx, const struct python_frame *frame,
		 struct python_place *ret);
