/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/result.h"
#include <errno.h>
#include <stdio.h>
#include <yyjson.h>
#include "base/cleanup.h"

int result_print(const struct result_field *fields)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);
	CLEANUP_FREE char *text = NULL;

	yyjson_mut_doc_set_root(doc, root);
	for (; fields->name; fields++) {
		if (fields->text)
			yyjson_mut_obj_add_str(doc, root, fields->name, fields->text);
		else
			yyjson_mut_obj_add_uint(doc, root, fields->name, fields->number);
	}
	text = yyjson_mut_write(doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	return puts(text) < 0 ? -EIO : 0;
}
