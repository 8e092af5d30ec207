/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Programs log errors; libraries return them. Lines go to standard error. If standard error is
 * the journal, each line has fields: PRIORITY, CODE_FILE, CODE_LINE, CODE_FUNC, and
 * ZERNEL_EVENT for searches. The levels are the priorities of the journal.
 */
enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

#define LOG_LEVELS "error, warning, info or debug"

/* The source location of a log call. */
struct log_place {
	const char *file;
	const char *function;
	int line;
};

/* Returns -EINVAL if no level has this name. */
int log_level_parse(const char *text, enum log_level *ret);

/*
 * A service calls this at its start. Lines less severe than `least` are not logged. Outside
 * the journal, each line begins with the time (UTC), the name of the program and the level.
 * Without this call, a program logs "name: text" and no debug lines, as commands do.
 */
void log_start_service(enum log_level least);

#define LOG_PLACE (&(const struct log_place){ __FILE__, __func__, __LINE__ })

/* `event` is a machine-readable name of the event, or NULL. */
__attribute__((format(printf, 4, 5))) void log_line(const struct log_place *place,
						    enum log_level level, const char *event,
						    const char *format, ...);

/* Logs several lines unchanged. They belong to the previous log line. */
void log_text(enum log_level level, const char *text);

#define log_event(level, event, ...) log_line(LOG_PLACE, level, event, __VA_ARGS__)
#define log_error(...)		     log_line(LOG_PLACE, LOG_LEVEL_ERROR, NULL, __VA_ARGS__)
#define log_warning(...)	     log_line(LOG_PLACE, LOG_LEVEL_WARNING, NULL, __VA_ARGS__)
#define log_info(...)		     log_line(LOG_PLACE, LOG_LEVEL_INFO, NULL, __VA_ARGS__)
#define log_debug(...)		     log_line(LOG_PLACE, LOG_LEVEL_DEBUG, NULL, __VA_ARGS__)
