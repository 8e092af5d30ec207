/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Feeds random bytes to the request parser, in pieces of any size. The lines that come out must
 * be the lines that went in, and the parser must accept or refuse each of them.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/socket.h"
#include "ipc/protocol.h"
#include "fuzz/fuzz.h"

#define LINE_MAX_BYTES 4096

static void check_request(const char *line, size_t length)
{
	struct protocol_request request;
	yyjson_val *image;
	char *text = NULL;
	void *data = NULL;
	size_t size;

	if (protocol_request_parse(line, length, &request) != PROTOCOL_OK)
		return;
	REQUIRE(request.method && strlen(request.method) <= length);
	REQUIRE(!request.params || yyjson_is_obj(request.params));
	image = yyjson_obj_get(request.params, "image");
	if (yyjson_is_str(image) &&
	    base64_decode(yyjson_get_str(image), yyjson_get_len(image), &data, &size) == 0) {
		text = base64_encode(data, size, &length);
		REQUIRE(text && length == (size + 2) / 3 * 4);
		free(text);
	}
	free(data);
	REQUIRE(protocol_request_write(request.id, request.method, NULL, &text, &size) == 0);
	REQUIRE(memchr(text, '\n', size) == NULL);
	free(text);
	protocol_request_done(&request);
}

/* The lines taken so far, with their newlines, must be the beginning of the input. */
static size_t take_lines(struct line_buffer *buffer, const uint8_t *data, size_t done)
{
	size_t length;
	char *line;

	while (line_buffer_next(buffer, &line, &length)) {
		REQUIRE(memcmp(line, data + done, length) == 0 && data[done + length] == '\n');
		done += length + 1;
		check_request(line, length);
	}
	return done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line_buffer buffer = { .max = LINE_MAX_BYTES };
	size_t sent = 0, done = 0;
	ssize_t n = 0;
	int fds[2];

	REQUIRE(pipe(fds) == 0);
	while (sent < size && n >= 0) {
		size_t piece = 1 + data[sent] * 7U;

		piece = piece < size - sent ? piece : size - sent;
		REQUIRE(write(fds[1], data + sent, piece) == (ssize_t)piece);
		for (size_t left = piece; left > 0 && n >= 0; left -= (size_t)(n > 0 ? n : 0)) {
			n = line_buffer_fill(&buffer, fds[0]);
			done = take_lines(&buffer, data, done);
		}
		sent += piece;
	}
	REQUIRE(n != -EMSGSIZE || !memchr(data + done, '\n', LINE_MAX_BYTES));
	line_buffer_clear(&buffer);
	close(fds[0]);
	close(fds[1]);
	return 0;
}
