/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/recording.h"
#include <errno.h>
#include <string.h>
#include "base/cleanup.h"
#include "base/log.h"

static int open_reader(struct recording *recording)
{
	CLEANUP(record_reader_free_cleanup) struct record_reader *reader = NULL;
	enum record_ending ending;
	int err = record_reader_new(recording->in, &reader);

	if (err < 0) {
		log_error("cannot read %s: %s", recording->path, strerror(-err));
		return err;
	}
	ending = record_reader_ending(reader);
	if (ending != RECORD_OPEN) {
		log_error("cannot use any part of %s: it is %s", recording->path,
			  record_ending_text(ending));
		return -EBADMSG;
	}
	recording->reader = TAKE_PTR(reader);
	return 0;
}

int recording_open(const char *path, struct recording *ret)
{
	struct recording recording = { .path = path, .in = fopen(path, "re") };
	int err;

	if (!recording.in) {
		err = -errno;
		log_error("cannot read %s: %s", path, strerror(-err));
		return err;
	}
	err = open_reader(&recording);
	if (err < 0)
		fclose(recording.in);
	else
		*ret = recording;
	return err;
}

void recording_close(struct recording *recording)
{
	record_reader_free(recording->reader);
	fclose(recording->in);
}

void recording_tell_ending(const struct recording *recording)
{
	enum record_ending ending = record_reader_ending(recording->reader);

	if (ending != RECORD_ENDED)
		log_warning("%s is %s at byte %llu: only the %llu frames before it are used",
			    recording->path, record_ending_text(ending),
			    record_reader_nr_bytes(recording->reader),
			    record_reader_nr_frames(recording->reader));
}

void recording_tell_version(const struct recording *recording)
{
	log_error("%s contains a snapshot of a newer version: use a newer zernel", recording->path);
}
