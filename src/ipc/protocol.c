/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "ipc/protocol.h"
#include <errno.h>
#include <string.h>

static const char *const codes[PROTOCOL_ERROR_NR] = {
	[PROTOCOL_OK] = "ok",
	[PROTOCOL_MALFORMED] = "malformed",
	[PROTOCOL_TOO_LARGE] = "too-large",
	[PROTOCOL_BUSY] = "busy",
	[PROTOCOL_VERSION_DIFFERS] = "version",
	[PROTOCOL_HELLO_NEEDED] = "hello-needed",
	[PROTOCOL_UNKNOWN_METHOD] = "unknown-method",
	[PROTOCOL_INVALID] = "invalid",
	[PROTOCOL_FORBIDDEN] = "forbidden",
	[PROTOCOL_NOT_FOUND] = "not-found",
	[PROTOCOL_UNSUPPORTED] = "unsupported",
	[PROTOCOL_FAILED] = "failed",
};

const char *protocol_error_code(enum protocol_error error)
{
	return codes[error];
}

enum protocol_error protocol_request_parse(const char *line, size_t length,
					   struct protocol_request *ret)
{
	yyjson_doc *doc = yyjson_read(line, length, 0);
	yyjson_val *root = yyjson_doc_get_root(doc);
	yyjson_val *id = yyjson_obj_get(root, "id"), *method = yyjson_obj_get(root, "method");
	yyjson_val *params = yyjson_obj_get(root, "params");

	/* A method that contains a zero byte would be compared only up to that byte. */
	if (!yyjson_is_uint(id) || !yyjson_is_str(method) ||
	    strlen(yyjson_get_str(method)) != yyjson_get_len(method) ||
	    (params && !yyjson_is_obj(params))) {
		yyjson_doc_free(doc);
		return PROTOCOL_MALFORMED;
	}
	*ret = (struct protocol_request){
		.doc = doc,
		.id = yyjson_get_uint(id),
		.method = yyjson_get_str(method),
		.params = params,
	};
	return PROTOCOL_OK;
}

void protocol_request_done(struct protocol_request *request)
{
	yyjson_doc_free(request->doc);
	*request = (struct protocol_request){};
}

static int write_doc(yyjson_mut_doc *doc, char **ret, size_t *ret_length)
{
	char *text = yyjson_mut_write(doc, 0, ret_length);

	yyjson_mut_doc_free(doc);
	if (!text)
		return -ENOMEM;
	*ret = text;
	return 0;
}

int protocol_request_write(u64 id, const char *method, const char *params, char **ret,
			   size_t *ret_length)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_uint(doc, root, "id", id);
	yyjson_mut_obj_add_str(doc, root, "method", method);
	if (params)
		yyjson_mut_obj_add_val(doc, root, "params", yyjson_mut_raw(doc, params));
	return write_doc(doc, ret, ret_length);
}

int protocol_request_line(u64 id, const char *method, const char *params, char **ret,
			  size_t *ret_length)
{
	int err = protocol_request_write(id, method, params, ret, ret_length);

	if (err < 0)
		return err;
	(*ret)[(*ret_length)++] = '\n'; /* replaces the terminating zero */
	return 0;
}

int protocol_error_write(enum protocol_error error, const char *message, char **ret,
			 size_t *ret_length)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);

	yyjson_mut_doc_set_root(doc, root);
	yyjson_mut_obj_add_str(doc, root, "code", protocol_error_code(error));
	yyjson_mut_obj_add_str(doc, root, "message", message);
	return write_doc(doc, ret, ret_length);
}

char *protocol_ended_params(const char *who)
{
	yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
	yyjson_mut_val *root = yyjson_mut_obj(doc);
	char *text;

	yyjson_mut_doc_set_root(doc, root);
	if (who)
		yyjson_mut_obj_add_str(doc, root, "job", who);
	/* A word of the command line or of an address need not be valid UTF-8. */
	text = yyjson_mut_write(doc, YYJSON_WRITE_ALLOW_INVALID_UNICODE, NULL);
	yyjson_mut_doc_free(doc);
	return text;
}
