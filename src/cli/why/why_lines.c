/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/why/why_lines.h"
#include <errno.h>
#include <unistd.h>
#include "base/cleanup.h"
#include "base/log.h"
#include "cli/ask.h"

int why_lines(const struct why_lines_request *request)
{
	CLEANUP(client_data_done) struct client_data data = {};
	CLEANUP(lines_free_cleanup) struct lines *lines = NULL;
	const struct term term = term_open(stdout, request->colour);
	u32 pid = 0;
	int err;

	if (request->format == LINES_PPROF && isatty(STDOUT_FILENO)) {
		log_error("the format of pprof is not text: redirect the output to a file");
		return -EINVAL;
	}
	err = ask_process(request->socket, request->who, &pid);
	if (err == 0)
		err = ask_watch(request->socket, "lines", pid, request->seconds, &data);
	if (err < 0)
		return err;
	err = lines_read(yyjson_obj_get(data.value, "lines"), &lines);
	if (err < 0) {
		log_error("zerneld sent invalid stacks: %s. Run: zernel doctor", strerror(-err));
		return -EPROTO;
	}
	err = lines_print(lines, request->format, &term);
	if (err == 0 && (fflush(stdout) != 0 || ferror(stdout)))
		err = -EIO;
	if (err < 0)
		log_error("cannot print the stacks: %s", strerror(-err));
	return err;
}
