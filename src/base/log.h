/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Programs log, libraries return. Lines go to standard error. When standard error is the
 * journal, they go to it with the fields it knows: PRIORITY, CODE_FILE and kin, and
 * ZERNEL_EVENT for searches. The levels are the priorities of the journal.
 */
enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

#define LOG_LEVELS "error, warning, info or debug"

/* Where in the source it is said. */
struct log_place {
	const char *file;
	const char *function;
	int line;
};

/* -EINVAL: no level has this name. */
int log_level_parse(const char *text, enum log_level *ret);

/*
 * For services, at their start: leaves out lines below `least`, and puts the time (UTC) and
 * the level before each line outside the journal. Without this call a program logs
 * "name: text" and no debug lines, as commands do.
 */
void log_start_service(enum log_level least);

#define LOG_PLACE (&(const struct log_place){ __FILE__, __func__, __LINE__ })

/* `event` is a word for programs, or NULL. */
__attribute__((format(printf, 4, 5))) void log_line(const struct log_place *place,
						    enum log_level level, const char *event,
						    const char *format, ...);

/* Several lines that belong to what was said just before, as they are. */
void log_text(enum log_level level, const char *text);

#define log_event(level, event, ...) log_line(LOG_PLACE, level, event, __VA_ARGS__)
#define log_error(...)		     log_line(LOG_PLACE, LOG_LEVEL_ERROR, NULL, __VA_ARGS__)
#define log_warning(...)	     log_line(LOG_PLACE, LOG_LEVEL_WARNING, NULL, __VA_ARGS__)
#define log_info(...)		     log_line(LOG_PLACE, LOG_LEVEL_INFO, NULL, __VA_ARGS__)
#define log_debug(...)		     log_line(LOG_PLACE, LOG_LEVEL_DEBUG, NULL, __VA_ARGS__)
