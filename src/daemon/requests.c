/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/requests.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "base/log.h"
#include "base/macros.h"
#include "daemon/control.h"

static void policy_get(struct requests *r, yyjson_val *params, struct reply *reply)
{
	size_t length = 0;
	char *text = control_policy_text(supervisor_policy(r->supervisor), &length);

	reply_accept(reply, text, length);
}

static void policy_set(struct requests *r, yyjson_val *params, struct reply *reply)
{
	struct sched_policy policy = *supervisor_policy(r->supervisor);
	const char *problem = NULL;

	if (control_policy_change(params, &policy, &problem) < 0) {
		reply_refuse(reply, PROTOCOL_INVALID, "%s", problem);
		return;
	}
	supervisor_set_policy(r->supervisor, &policy);
	policy_get(r, params, reply);
}

static void reply_state(struct requests *r, struct reply *reply)
{
	const struct supervisor_status *status = supervisor_status(r->supervisor);
	char *text = NULL;
	int length = asprintf(&text, "{\"state\":\"%s\",\"actuator\":\"%s\"}",
			      snapshot_sched_state_label(status->state),
			      snapshot_actuator_label(status->actuator));

	reply_accept(reply, length < 0 ? NULL : text, (size_t)length);
}

static void scheduler_attach(struct requests *r, yyjson_val *params, struct reply *reply)
{
	int err = supervisor_attach(r->supervisor);

	if (err < 0)
		reply_refuse(reply, err == -EOPNOTSUPP ? PROTOCOL_UNSUPPORTED : PROTOCOL_FAILED,
			     "%s", supervisor_status(r->supervisor)->reason);
	else
		reply_state(r, reply);
}

static void scheduler_detach(struct requests *r, yyjson_val *params, struct reply *reply)
{
	supervisor_detach(r->supervisor);
	reply_state(r, reply);
}

static void jobs_ended(struct requests *r, yyjson_val *params, struct reply *reply)
{
	yyjson_val *job = yyjson_obj_get(params, "job");
	int err;

	if (job && !yyjson_is_str(job)) {
		reply_refuse(reply, PROTOCOL_INVALID,
			     "job must be the name or the cgroup of a job");
		return;
	}
	err = snapshot_builder_ended(r->builder, r->uid, yyjson_get_str(job), &reply->result);
	if (err == -ENOENT)
		reply_refuse(
			reply, PROTOCOL_NOT_FOUND,
			"no ended job has this name or cgroup: run `zernel jobs` to list them");
	else if (err < 0)
		reply_refuse(reply, PROTOCOL_FAILED, "%s", strerror(-err));
}

/* Parameters of a method that watches a process. */
static bool read_watch(yyjson_val *params, u64 seconds_least, u64 seconds_most, pid_t *ret_pid,
		       u64 *ret_seconds, struct reply *reply)
{
	yyjson_val *pid = yyjson_obj_get(params, "pid"),
		   *seconds = yyjson_obj_get(params, "seconds");

	if (!yyjson_is_uint(pid) || !yyjson_get_uint(pid) || yyjson_get_uint(pid) > INT32_MAX ||
	    !yyjson_is_uint(seconds) || yyjson_get_uint(seconds) < seconds_least ||
	    yyjson_get_uint(seconds) > seconds_most) {
		reply_refuse(reply, PROTOCOL_INVALID,
			     "pid must be a process ID, and seconds a number from %llu to %llu",
			     seconds_least, seconds_most);
		return false;
	}
	*ret_pid = (pid_t)yyjson_get_uint(pid);
	*ret_seconds = yyjson_get_uint(seconds);
	return true;
}

static void watch_lines(struct requests *r, yyjson_val *params, struct reply *reply)
{
	pid_t pid;
	u64 seconds;

	if (!read_watch(params, 0, LINES_SECONDS_MAX, &pid, &seconds, reply))
		return;
	if (!seconds)
		stacks_look(r->stacks, r->uid, pid, reply);
	else
		lines_watch(r->lines, r->uid, pid, seconds, reply);
}

static void watch_usage(struct requests *r, yyjson_val *params, struct reply *reply)
{
	pid_t pid;
	u64 seconds;

	if (read_watch(params, 1, USAGE_SECONDS_MAX, &pid, &seconds, reply))
		usages_watch(r->usages, r->uid, pid, seconds, reply);
}

static void oom_stack(struct requests *r, yyjson_val *params, struct reply *reply)
{
	yyjson_val *pid = yyjson_obj_get(params, "pid"),
		   *time_ns = yyjson_obj_get(params, "time_ns");

	if (!yyjson_is_uint(pid) || !yyjson_get_uint(pid) || yyjson_get_uint(pid) > INT32_MAX ||
	    !yyjson_is_uint(time_ns)) {
		reply_refuse(reply, PROTOCOL_INVALID,
			     "pid must be a process ID, and time_ns the time of its "
			     "out-of-memory error");
		return;
	}
	oom_stacks_show(r->oom_stacks, r->uid, (u32)yyjson_get_uint(pid), yyjson_get_uint(time_ns),
			reply);
}

static const struct {
	const char *name;
	enum access needed;
	void (*run)(struct requests *r, yyjson_val *params, struct reply *reply);
} methods[] = {
	{ "jobs.ended", ACCESS_OWN, jobs_ended },
	{ "lines", ACCESS_OWN, watch_lines },
	{ "memory", ACCESS_OWN, watch_usage },
	{ "oom.stack", ACCESS_OWN, oom_stack },
	{ "policy.get", ACCESS_READ, policy_get },
	{ "policy.set", ACCESS_CHANGE, policy_set },
	{ "scheduler.attach", ACCESS_CHANGE, scheduler_attach },
	{ "scheduler.detach", ACCESS_CHANGE, scheduler_detach },
	{ "procdb.list", ACCESS_READ, procdb_list },
	{ "procdb.show", ACCESS_READ, procdb_show },
	{ "procdb.export", ACCESS_READ, procdb_export },
	{ "procdb.import", ACCESS_CHANGE, procdb_import },
	{ "procdb.forget", ACCESS_CHANGE, procdb_forget_named },
};
#define NR_METHODS ARRAY_SIZE(methods)

/* The log names the client of every change. */
static void log_change(const struct socket_peer *peer, const char *method,
		       const struct reply *reply)
{
	char who[64];

	access_describe(peer, who, sizeof(who));
	log_event(LOG_LEVEL_INFO, "change", "%s by %s: %s", method, who,
		  reply->error ? reply->explanation : "done");
}

void requests_answer(void *ctx, const struct socket_peer *peer, enum access access,
		     const struct protocol_request *request, struct reply *reply)
{
	struct requests *requests = ctx;
	size_t i = 0;

	while (i < NR_METHODS && strcmp(methods[i].name, request->method) != 0)
		i++;
	if (i == NR_METHODS) {
		reply_refuse(reply, PROTOCOL_UNKNOWN_METHOD, "unknown method");
		return;
	}
	if (access < ACCESS_READ && methods[i].needed > ACCESS_OWN) {
		reply_refuse(reply, PROTOCOL_FORBIDDEN, ACCESS_READ_REFUSED);
		return;
	}
	if (access < methods[i].needed) {
		reply_refuse(reply, PROTOCOL_FORBIDDEN,
			     "only root and members of group %s may make changes: "
			     "use sudo, or ask an administrator to add you to the group",
			     ACCESS_GROUP_CHANGE);
		return;
	}
	requests->uid = access == ACCESS_OWN ? peer->uid : SNAPSHOT_UID_UNKNOWN;
	methods[i].run(requests, request->params, reply);
	if (methods[i].needed == ACCESS_CHANGE)
		log_change(peer, methods[i].name, reply);
	else
		log_debug("%s by pid %d, user %u", methods[i].name, peer->pid, peer->uid);
}
