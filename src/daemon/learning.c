/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/learning.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/time.h"
#include "ipc/procdb_text.h"
#include "store/procdb_store.h"

/* A power loss can lose the observations of at most this time. */
#define SAVE_INTERVAL_S 60

struct learning {
	struct procdb *db;
	struct kernel *kernel;
	char *path;
	int lock;
	u64 ticked_s;
	u64 saved_s;
	u64 nr_observations;
	bool changed; /* since the last save */
	bool may_save;
	bool may_open;	  /* the directory was not writable at the start: try again */
	bool save_failed; /* the last save failed, and the log says so */
};

static u64 wall_time_s(void)
{
	return (u64)time(NULL);
}

/* Ticks and saves use a clock that cannot be set. */
static u64 steady_time_s(void)
{
	return time_now_ns() / NSEC_PER_SEC;
}

/* A file that cannot be loaded must not be overwritten. */
static void set_aside(struct learning *learning, const char *why)
{
	CLEANUP_FREE char *name = NULL;
	int err = file_set_aside(&file_ops_system, learning->path, &name);

	if (err == 0) {
		log_event(LOG_LEVEL_WARNING, "database-refused",
			  "refused %s: %s; moved it to %s, started with an empty database",
			  learning->path, why, name);
		return;
	}
	log_event(LOG_LEVEL_ERROR, "database-refused",
		  "refused %s: %s; cannot move it away: %s; learned profiles will not be saved",
		  learning->path, why, strerror(-err));
	learning->may_save = false;
}

static void report_loaded(const struct learning *learning, const struct procdb_report *report)
{
	char what[PROCDB_DEFECT_TEXT_MAX];

	log_info("loaded %zu profiles (version %u) from %s",
		 procdb_summarize(learning->db).nr_profiles, report->version, learning->path);
	if (report->defect == PROCDB_FILE_SOUND)
		return;
	procdb_text_defect(report, what, sizeof(what));
	log_warning("%s: %s and are ignored", learning->path, what);
}

static void load(struct learning *learning)
{
	struct procdb_report report = {};
	int err = procdb_store_load(learning->db, learning->path, wall_time_s(), &report);
	char why[PROCDB_DEFECT_TEXT_MAX];

	learning->may_save = true;
	switch (err) {
	case 0: report_loaded(learning, &report); break;
	case -ENOENT:
		log_info("%s does not exist: started with an empty database", learning->path);
		break;
	case -EBADMSG:
		procdb_text_defect(&report, why, sizeof(why));
		set_aside(learning, why);
		break;
	case -EFBIG:
		snprintf(why, sizeof(why), "it has more than %lu bytes", PROCDB_FILE_SIZE_MAX);
		set_aside(learning, why);
		break;
	default:
		snprintf(why, sizeof(why), "it cannot be read (%s)", strerror(-err));
		set_aside(learning, why);
	}
}

static int open_state(struct learning *learning, const char *directory)
{
	if (mkdir(directory, S_IRWXU) < 0 && errno != EEXIST)
		return -errno;
	return procdb_store_lock(learning->path, &learning->lock);
}

int learning_new(const char *directory, u32 nr_profiles, struct learning **ret)
{
	CLEANUP(learning_free_cleanup) struct learning *learning = calloc(1, sizeof(*learning));
	struct procdb_config config = PROCDB_CONFIG_DEFAULT;
	int err;

	if (!learning)
		return -ENOMEM;
	learning->lock = -EBADF;
	if (asprintf(&learning->path, "%s/" PROCDB_FILE_NAME, directory) < 0) {
		learning->path = NULL;
		return -ENOMEM;
	}
	config.capacity = nr_profiles;
	err = procdb_new(&config, &learning->db);
	if (err < 0)
		return err;
	err = open_state(learning, directory);
	if (err != -EBUSY)
		load(learning);
	if (err < 0) {
		learning->may_save = false;
		learning->may_open = err != -EBUSY;
		log_event(LOG_LEVEL_WARNING, "state-unwritable",
			  "cannot keep learned profiles in %s: %s", directory,
			  err == -EBUSY ? "another zerneld uses it" : strerror(-err));
	}
	learning->saved_s = steady_time_s();
	*ret = TAKE_PTR(learning);
	return 0;
}

void learning_save(struct learning *learning)
{
	int err;

	if (learning->may_open && procdb_store_lock(learning->path, &learning->lock) == 0) {
		learning->may_open = false;
		learning->may_save = true;
		log_event(LOG_LEVEL_INFO, "state-writable", "%s is writable now", learning->path);
	}
	learning->saved_s = steady_time_s();
	if (!learning->may_save || !learning->changed)
		return;
	err = procdb_store_save(learning->db, learning->path);
	if (err < 0 && !learning->save_failed)
		log_event(LOG_LEVEL_ERROR, "save-failed",
			  "cannot save %s: %s; trying again every %d s", learning->path,
			  strerror(-err), SAVE_INTERVAL_S);
	if (err == 0 && learning->save_failed)
		log_event(LOG_LEVEL_INFO, "save-works", "saved %s again", learning->path);
	learning->save_failed = err < 0;
	learning->changed = err < 0;
}

static void on_observation(void *ctx, const struct procdb_observation *seen)
{
	struct learning *learning = ctx;

	learning->nr_observations++;
	procdb_merge(learning->db, &seen->key, seen->owner, &seen->record, wall_time_s());
	learning->changed = true;
}

static int predict(void *userdata, const struct procdb_key *key,
		   const struct procdb_record *prediction)
{
	struct learning *learning = userdata;

	/* Without a kernel there is nothing to do: learning_attach() sends all predictions. */
	return learning->kernel ? kernel_predict(learning->kernel, key, prediction) : 0;
}

int learning_attach(struct learning *learning, struct kernel *kernel)
{
	int err = kernel_open_learning(kernel, on_observation, learning);
	struct procdb_summary summary;

	if (err < 0)
		return err;
	learning->kernel = kernel;
	procdb_predict_again(learning->db);
	err = procdb_tick(learning->db, wall_time_s(), predict, learning);
	summary = procdb_summarize(learning->db);
	log_info("%zu profiles loaded, %zu predicted", summary.nr_profiles, summary.nr_confident);
	return err;
}

void learning_poll(struct learning *learning)
{
	u64 now_s = steady_time_s();

	if (learning->kernel)
		kernel_read_observations(learning->kernel);
	if (now_s == learning->ticked_s)
		return;
	learning->ticked_s = now_s;
	/* Predictions that fail now are sent again at the next tick. */
	procdb_tick(learning->db, wall_time_s(), predict, learning);
	if (now_s >= learning->saved_s + SAVE_INTERVAL_S)
		learning_save(learning);
}

void learning_detach(struct learning *learning)
{
	if (!learning->kernel)
		return;
	kernel_read_observations(learning->kernel);
	procdb_tick(learning->db, wall_time_s(), predict, learning);
	learning_save(learning);
	learning->kernel = NULL;
}

const struct procdb *learning_database(const struct learning *learning)
{
	return learning->db;
}

u64 learning_nr_observations(const struct learning *learning)
{
	return learning->nr_observations;
}

int learning_import(struct learning *learning, const struct procdb_profile *profile)
{
	int err = procdb_restore(learning->db, profile, wall_time_s());

	learning->changed |= err == 0;
	return err;
}

int learning_forget(struct learning *learning, const struct procdb_key *key)
{
	int err = procdb_forget(learning->db, key, predict, learning);

	learning->changed |= err == 0;
	return err;
}

struct learning *learning_free(struct learning *learning)
{
	if (!learning)
		return NULL;
	if (learning->db)
		learning_save(learning);
	cleanup_fd(&learning->lock);
	procdb_free(learning->db);
	free(learning->path);
	free(learning);
	return NULL;
}
